"""`assay policy`: what the written policy says, why it decided as it did, and how it would do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from appliance.cli.model_options import parameters_of, read_options, with_options
from appliance.cli.models import show_decision
from appliance.cli.options import Data, Json, client_of, settings_of
from appliance.cli.policy_sign import sign
from appliance.cli.show import short, show_fields, show_json, show_line, show_table
from appliance.client import ApiError, BacktestRow, BudgetView, Decision
from appliance.policy_files import in_force_file, load_policy, parse_policy, read_policy
from policies.contract.rules import DataRules, ServiceRules
from policies.decide import rule_that_fits
from policies.gates import evidence, improvement
from policies.gates.evidence import odds
from policies.migration import migrate as migrated
from policies.policy import VERSION, Policy, parse, read_content, version_of
from policies.simulate import Assumed
from policies.simulate import simulate as simulated
from policies.statistics.sequential import needed

app = typer.Typer(help="Check, explain, try out and sign the written policy.", no_args_is_help=True)
app.command("sign")(sign)

PolicyFile = Annotated[
    Path | None,
    typer.Argument(help="The file; without it policy.toml in the data folder, else the policy in force there."),
]
FileOrInForce = Annotated[Path | None, typer.Argument(help="The file; the policy in force without it.")]
ModelOrId = Annotated[
    str, typer.Argument(help="champion, candidate, previous, the first digits of a digest, or a decision's id.")
]


@app.command("check")
def check(context: typer.Context, file: PolicyFile = None, data: Data = None, as_json: Json = False) -> None:
    """Read a policy file and say what it asks for, or what is wrong with it (exit code 2). Without the daemon.

    Example: assay policy check policy.toml
    """
    folder = settings_of(context, data).data
    policy, name = read_policy(folder, file)
    if as_json:
        show_json(policy)
        return
    show_line(f"{name} holds; {policy.digest}")
    show_fields(summary(policy))
    if policy.digest != load_policy(folder).digest:
        show_line("it is not in force here: `assay policy sign` puts it there")
    elif (in_force := in_force_file(folder)).exists() and version_of(in_force.read_bytes()) != VERSION:
        show_line("it is of an earlier version: `assay policy migrate` writes it as one of this version")


@app.command("migrate")
def migrate(
    context: typer.Context,
    file: FileOrInForce = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write it as policy.toml into the data folder; a file there is kept beside.")
    ] = False,
    data: Data = None,
) -> None:
    """Show a policy file of an earlier version as one of this version, and what differs. Sign it to put it in force.

    Example: assay policy migrate --write policy.toml
    """
    folder = settings_of(context, data).data
    content, name = read_content(file or in_force_file(folder))
    found = migrated(content, name)
    if write:
        path = folder / "policy.toml"
        if path.exists():
            path.replace(path.with_name("policy.toml.before"))
        path.write_text(found.text)
        show_line(f"{path} is written; `assay policy sign` puts it in force")
    else:
        typer.echo(found.text)
    for difference in found.differences:
        typer.echo(difference, err=True)


def summary(policy: Policy) -> list[tuple[str, str]]:
    """What a person wants to know first."""
    rules, quarter, gain = policy.promotion, policy.rules_of(evidence.GATE), policy.rules_of(improvement.GATE)
    jobs = ", ".join(f"{rule.then} {rule.check}" for rule in policy.jobs.rules) or "none is allowed"
    share = f"{quarter.alpha:g} shared by {quarter.candidates} candidates"
    asked = odds(needed(quarter.alpha, quarter.candidates))
    people = f"{policy.approval.people} of {', '.join(policy.approval.who)}" if policy.approval.required else "nobody's"
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
        return "a promoted model is champion at once"
    return (
        f"{rules.replay} earlier jobs, then {100 * rules.share:g} % of the jobs for {rules.window_hours:g} h and "
        f"{rules.min_jobs} jobs, at most {rules.max_hours:g} h, before a promoted model is champion; odds of "
        f"{1 / rules.alpha:g} to 1 take it back"
    )


def _data(rules: DataRules) -> str:
    families = "every family" if "*" in rules.families else ", ".join(rules.families)
    less = "".join(f", {name} {share:g} %" for name, share in rules.shares.items())
    before = "the night before" if rules.fresh_nights == 1 else f"the {rules.fresh_nights} nights before"
    fresh = f"; nothing that {before} asked" if rules.fresh_nights else ""
    return f"{families}, each at most {rules.max_share:g} % of a step{less}{fresh}"


@app.command("explain")
def explain(context: typer.Context, model: ModelOrId = "candidate", data: Data = None, as_json: Json = False) -> None:
    """Why the newest decision about a model, or the one of that id, came out as it did.

    Example: assay policy explain candidate
    """
    api = client_of(context, data)
    decision = next((one for one in api.decisions(limit=1000) if one.id == model), None)
    found = [decision] if decision else api.decisions(candidate=model, limit=1)
    policy = parse(api.policy().content.encode(), "the policy in force", in_force=True)
    if not found:
        raise ApiError(
            f"there is no decision about {model}", hint="a cycle evaluates its candidate and decides", exit_code=2
        )
    if as_json:
        show_json(found[0])
        return
    show_decision(found[0])
    show_fields([("because", because(found[0], policy)), ("made", f"{found[0].made_at}, {found[0].id}")])


def because(decision: Decision, policy: Policy) -> str:
    """Names the rule that decided, or says that the decision was made under another policy."""
    if decision.policy != policy.digest:
        return f"the rules of another policy than the one in force now, {decision.policy[:12]}"
    rule = rule_that_fits(decision.findings, policy.promotion)
    if rule is None:
        return "no rule of [promotion] fits, so the candidate is held"
    number = policy.promotion.rules.index(rule) + 1
    return f"rule {number} of [promotion] is the first that fits: when {rule.when} is {rule.is_}, then {rule.then}"


@app.command("backtest")
def backtest(context: typer.Context, file: FileOrInForce = None, data: Data = None, as_json: Json = False) -> None:
    """What a policy file, or the one in force, would have decided about every candidate so far. Changes nothing.

    Example: assay policy backtest policy.toml
    """
    content = b""
    if file is not None:
        content, name = read_content(file)
        parse_policy(content, name)
    found = client_of(context, data).backtest(content)
    if as_json:
        show_json(found)
        return
    show_table(
        ("evaluated", "candidate", "was decided", "this file decides", "reason"),
        [_row(row) for row in found.rows],
        empty="no candidate was evaluated yet",
    )
    counts = Counter(row.now.outcome.value for row in found.rows)
    changed = sum(row.recorded is not None and row.recorded is not row.now.outcome for row in found.rows)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    show_line(f"under {found.policy[:12]}: {outcomes or 'nothing'}; {changed} differ from what was decided")


def _row(row: BacktestRow) -> tuple[str, str, str, str, str]:
    recorded = row.recorded.value if row.recorded else "-"
    return row.created[:16], short(row.candidate), recorded, row.now.outcome.value, row.now.reason


@app.command("budget")
def budget(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """What is left of the quarter's chance of a false promotion, each candidate's evidence, and the nights to go."""
    found = client_of(context, data).budget()
    if as_json:
        show_json(found)
    else:
        _show_budget(found)


def _show_budget(found: BudgetView) -> None:
    show_fields(
        [
            ("quarter", found.quarter),
            (
                "chance of a false promotion",
                f"{100 * found.alpha:g} % at most, shared by {found.candidates} candidates",
            ),
            ("candidates left", found.left),
            ("odds that each needs", f"{found.needed:.0f} to 1, over at most {found.nights} nights"),
        ]
    )
    show_table(
        ("candidate", "champion", "nights", "questions", "gained", "lost", "odds", "nights to go"),
        [
            (
                short(one.candidate),
                short(one.champion),
                one.nights,
                one.items,
                one.gained,
                one.lost,
                f"{one.odds:.3g}",
                "0" if one.odds >= found.needed else "many" if one.nights_to_go is None else one.nights_to_go,
            )
            for one in found.evidence
        ],
        empty="no candidate met a champion this quarter",
    )


@app.command("simulate")
@with_options(parameters_of(Assumed))
def simulate(
    context: typer.Context, file: PolicyFile = None, data: Data = None, as_json: Json = False, **values: Any
) -> None:
    """How often a policy promotes what is no better, and finds what is better. Made-up nights, without the daemon.

    Example: assay policy simulate policy.toml
    """
    assumed = read_options(Assumed, values)
    policy, name = read_policy(settings_of(context, data).data, file)
    found = simulated(policy, assumed, lambda text: typer.echo(text, err=True))
    if as_json:
        show_json(found)
        return
    fresh, held = 100 * found.null_promoted_share_fresh, 100 * found.null_promoted_share_held
    fooled = (
        f"{_interval(found.null_promoted_share, found.null_promoted_low, found.null_promoted_high)} of the quarters "
        f"promote such a candidate; {fresh:.2f} % with a new one every night, {held:.2f} % with held ones asked again"
    )
    power = (
        f"{_interval(found.power, found.power_low, found.power_high)} are promoted within {assumed.within} nights, "
        f"{100 * found.rejected_share:.1f} % rejected"
    )
    show_fields(
        [
            ("policy", f"{name}, {policy.digest[:12]}"),
            ("no better", fooled),
            (f"{assumed.gain:g} points better", power),
            ("by night", ", ".join(f"{100 * share:.0f} %" for share in found.found_by_night)),
        ]
    )
    show_line("every other gate passes here, and a person approves of everything: a real owner is fooled less often")


def _interval(value: float, low: float, high: float) -> str:
    return f"{100 * value:.2f} % ({100 * low:.2f} to {100 * high:.2f})"
