"""`assay policy`: what the written policy says, why it decided as it did, and how it would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.models import show_decision
from appliance.cli.options import Data, Json, client_of, settings_of
from appliance.cli.policy_sign import sign
from appliance.cli.policy_simulate import simulate

if TYPE_CHECKING:
    from appliance.client import BacktestRow, BudgetView, Decision
    from policies.policy import Policy
    from policies.rules import DataRules, ServiceRules

app = typer.Typer(help="Check, explain, try out and sign the written policy.", no_args_is_help=True)
app.command("simulate")(simulate)
app.command("sign")(sign)

PolicyFile = Annotated[Path | None, typer.Argument(help="The file; policy.toml in the data folder without it.")]
ModelOrId = Annotated[
    str, typer.Argument(help="champion, candidate, previous, the first digits of a digest, or a decision's id.")
]


@app.command("check")
def check(context: typer.Context, file: PolicyFile = None, data: Data = None, as_json: Json = False) -> None:
    """Read a policy file and say what it asks for, or what is wrong with it (exit code 2). Without the daemon."""
    from appliance.cli.show import show_fields, show_json, show_line
    from appliance.places import parse_policy, written_policy
    from policies.policy import read_content

    folder = settings_of(context, data).data
    content, told = read_content(file) if file is not None else written_policy(folder)
    policy = parse_policy(content, told)
    if as_json:
        show_json(policy)
        return
    show_line(f"{told} holds; {policy.digest}")
    show_fields(summary(policy))
    if policy.digest != _in_force(folder):
        show_line("it is not in force here: `assay policy sign` puts it there")


def summary(policy: Policy) -> list[tuple[str, str]]:
    """What a person wants to know first."""
    from policies.decide import asked_for
    from policies.gates_gain import odds
    from policies.sequential import needed

    rules = policy.promotion
    jobs = ", ".join(f"{rule.then} {rule.check}" for rule in policy.jobs.rules) or "none is allowed"
    share = f"{rules.evidence.alpha:g} shared by {rules.evidence.candidates} candidates"
    asked = odds(needed(rules.evidence.alpha, rules.evidence.candidates))
    people = (
        f"{rules.approval.people} of {', '.join(rules.approval.who)}" if rules.approval.required else "nobody's word"
    )
    return [
        ("gates", ", ".join(sorted(asked_for(rules)))),
        ("rules", "; ".join(f"{rule.when} {rule.is_}: {rule.then}" for rule in rules.rules) + "; else: hold"),
        ("gain", f"at least {rules.improvement.min_gain:g} points on {rules.improvement.min_items} questions or more"),
        ("quarter", f"{share}: odds of {asked:.0f} to 1 each, over at most {rules.evidence.nights} nights"),
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


def _in_force(folder: Path) -> str:
    from appliance.places import load_policy

    return load_policy(folder).digest


@app.command("explain")
def explain(context: typer.Context, model: ModelOrId = "candidate", data: Data = None, as_json: Json = False) -> None:
    """Why the newest decision about a model, or the one of that id, came out as it did."""
    from appliance.cli.show import show_fields, show_json
    from appliance.client import ApiError
    from policies.policy import parse

    with client_of(context, data) as api:
        decision = next((one for one in api.decisions(limit=1000) if one.id == model), None)
        found = [decision] if decision else api.decisions(candidate=model, limit=1)
        policy = parse(api.policy().content.encode(), "the policy in force")
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
    """Which rule decided, in words; or that the decision was made under another policy."""
    from policies.decide import rule_that_fits

    if decision.policy != policy.digest:
        return f"the rules of another policy than the one in force now, {decision.policy[:12]}"
    rule = rule_that_fits(decision.findings, policy.promotion)
    if rule is None:
        return "no rule of [promotion] fits, so the candidate is held"
    number = policy.promotion.rules.index(rule) + 1
    return f"rule {number} of [promotion] is the first that fits: when {rule.when} is {rule.is_}, then {rule.then}"


@app.command("backtest")
def backtest(context: typer.Context, file: PolicyFile = None, data: Data = None, as_json: Json = False) -> None:
    """What a policy file, or the one in force, would have decided about every candidate so far. Changes nothing."""
    from collections import Counter

    from appliance.cli.show import show_json, show_line, show_table
    from appliance.places import parse_policy
    from policies.policy import read_content

    content = b""
    if file is not None:
        content, told = read_content(file)
        parse_policy(content, told)
    with client_of(context, data) as api:
        found = api.backtest(content)
    if as_json:
        show_json(found)
        return
    show_table(
        ("evaluated", "candidate", "decided", "would be", "reason"),
        [_row(row) for row in found.rows],
        empty="no candidate was evaluated yet",
    )
    counts = Counter(row.now.outcome.value for row in found.rows)
    changed = sum(row.recorded is not None and row.recorded is not row.now.outcome for row in found.rows)
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    show_line(f"under {found.policy[:12]}: {told or 'nothing'}; {changed} otherwise than decided")


def _row(row: BacktestRow) -> tuple[str, str, str, str, str]:
    from appliance.cli.show import short

    recorded = row.recorded.value if row.recorded else "-"
    return row.created[:16], short(row.candidate), recorded, row.now.outcome.value, row.now.reason


@app.command("budget")
def budget(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """What is left of the quarter's chance of a false promotion, each candidate's evidence, and the nights to go."""
    from appliance.cli.show import show_json

    with client_of(context, data) as api:
        found = api.budget()
    if as_json:
        show_json(found)
    else:
        _show_budget(found)


def _show_budget(found: BudgetView) -> None:
    from appliance.cli.show import short, show_fields, show_table

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
            for one in found.standings
        ],
        empty="no candidate met a champion this quarter",
    )
