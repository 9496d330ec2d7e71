"""Commands of `assay policy` that read a policy file without the daemon: check, show."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, in_data_folder, prints, show_fields, show_line
from appliance.settings.policy_files import in_force_file, load_policy, read_policy
from appliance.text.printable import printable
from policies.contract.rules import DataRules, ServiceRules
from policies.gates import evidence, improvement
from policies.gates.evidence import odds
from policies.policy import Policy, policy_model, read_content
from policies.statistics import needed

PolicyFile = Annotated[
    Path | None, typer.Argument(help="Policy file (default: policy.toml in the data folder, else the policy in force).")
]


def _returned() -> Any:
    """Returns the output's type: a policy with the sections of every gate."""
    from policies.gates.registry import GATES

    model: Any = policy_model(GATES)
    return Output[model]


@partial(prints, returned=_returned)
def check(file: PolicyFile = None) -> Output[Policy]:
    """Summarize a policy file, or report its fault (exit code 2). Without the daemon.

    Example: assay policy check policy.toml
    """
    folder = data_folder()
    policy, name = read_policy(folder, file)
    return Output(policy, lambda: _show_checked(folder, policy, name))


def _show_checked(folder: Path, policy: Policy, name: str) -> None:
    show_line(f"{name} is valid; {policy.digest}")
    show_fields(summary(policy))
    if policy.digest != load_policy(folder, outside=False).digest:
        show_line("not in force here: put it into force with `assay policy sign`")


@in_data_folder
def show(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write it to this file for editing; must not exist.")
    ] = None,
) -> None:
    """Print the policy file in force, or write it to a file for editing. Without the daemon.

    Example: assay policy show --out policy.toml
    """
    in_force = in_force_file(data_folder())
    content, _ = read_content(in_force if in_force.exists() else None)
    if out is None:
        typer.echo(printable(content.decode(), lines=True), nl=False)
        return
    try:
        with out.open("xb") as made:
            made.write(content)
    except OSError as error:
        raise typer.BadParameter(f"{out} cannot be written: {error.strerror}", param_hint="--out") from error
    show_line(
        f"wrote {out}; check it with `assay policy check {out}`, put it into force with `assay policy sign {out}`"
    )


def summary(policy: Policy) -> list[tuple[str, str]]:
    """Returns the main rules of a policy in words."""
    rules, quarter, gain = policy.promotion, policy.rules_of(evidence.GATE), policy.rules_of(improvement.GATE)
    jobs = ", ".join(f"{rule.then} {rule.check}" for rule in policy.jobs.rules) or "none allowed"
    share = f"{quarter.alpha:g} shared by {quarter.candidates} candidates"
    asked = odds(needed(quarter.alpha, quarter.candidates))
    count, who = policy.approval.people, policy.approval.who
    whose = "whose key is known here" if "*" in who else f"among {', '.join(who)}"
    people = f"{count} {'person' if count == 1 else 'people'} {whose}" if policy.approval.required else "nobody's"
    return [
        ("gates", ", ".join(sorted(gate.name for gate in policy.gates.asked))),
        ("rules", "; ".join(f"{rule.when} {rule.is_}: {rule.then}" for rule in rules.rules) + "; else: hold"),
        ("gain", f"at least {gain.min_gain:g} points on {gain.min_items} questions or more"),
        ("quarter", f"{share}: odds of {asked:.0f} to 1 each, over at most {quarter.nights} nights"),
        ("approval", people),
        ("service", _service(policy.service)),
        ("data", _data(policy.data)),
        ("model code", f"in {policy.sandboxes.model_code}; the verifiers' tools in {policy.sandboxes.tools}"),
        ("jobs", jobs),
    ]


def _service(rules: ServiceRules) -> str:
    if not rules.canary:
        return "a promoted model becomes champion immediately"
    return (
        f"{rules.replay} earlier jobs, then {100 * rules.share:g} % of the jobs for {rules.window_hours:g} h and "
        f"{rules.min_jobs} jobs, at most {rules.max_hours:g} h, before a promoted model is champion; odds of "
        f"{1 / rules.alpha:g} to 1 roll it back"
    )


def _data(rules: DataRules) -> str:
    families = "every family" if "*" in rules.families else ", ".join(rules.families)
    less = "".join(f", {name} {share:g} %" for name, share in rules.shares.items())
    before = "the night before" if rules.fresh_nights == 1 else f"the {rules.fresh_nights} nights before"
    fresh = f"; nothing that {before} asked" if rules.fresh_nights else ""
    return f"{families}, each at most {rules.max_share:g} % of a step{less}{fresh}"
