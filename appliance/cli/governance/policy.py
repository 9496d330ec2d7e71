"""Commands of `assay policy` that ask the daemon: reasons for decisions, and decisions under another policy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.models.look import show_decision
from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, prints, short, show_fields, show_line, show_table
from appliance.client.failures import ApiError
from appliance.client.messages import Backtest, BacktestRow, BudgetView
from policies.contract.decision import Decision
from policies.policy import Policy, parse, read_content

FileOrInForce = Annotated[Path | None, typer.Argument(help="Policy file (default: the policy in force).")]
ModelOrId = Annotated[
    str, typer.Argument(help="champion, candidate, previous, a digest's first digits, or a decision's id.")
]


@prints
def explain(model: ModelOrId = "candidate") -> Output[Decision]:
    """Explain the newest decision about a model, or the decision of an id.

    Example: assay policy explain candidate
    """
    api = api_client()
    decision = next((one for one in api.decisions(limit=1000) if one.id == model), None)
    found = [decision] if decision else api.decisions(candidate=model, limit=1)
    policy = parse(api.policy().content.encode(), "the policy in force")
    if not found:
        raise ApiError(f"no decision about {model}", hint="wait for a cycle to evaluate its candidate", exit_code=2)
    return Output(found[0], lambda: _show_reason(found[0], policy))


def _show_reason(decision: Decision, policy: Policy) -> None:
    show_decision(decision)
    show_fields([("because", because(decision, policy)), ("made", f"{decision.made_at}, {decision.id}")])


def because(decision: Decision, policy: Policy) -> str:
    """Names the promotion rule that led to a decision, or says that none applied or that it was another policy's."""
    from policies.decide import rule_that_fits

    if decision.policy != policy.digest:
        return f"the rules of an earlier policy, {decision.policy[:12]}"
    rule = rule_that_fits(decision.findings, policy.promotion)
    if rule is None:
        return "no rule of [promotion] applies, so the candidate is held"
    number = policy.promotion.rules.index(rule) + 1
    return f"rule {number} of [promotion] is the first that applies: when {rule.when} is {rule.is_}, then {rule.then}"


@prints
def backtest(file: FileOrInForce = None) -> Output[Backtest]:
    """Show past decisions about every candidate under a policy file, or the one in force. Changes nothing.

    Example: assay policy backtest policy.toml
    """
    from appliance.client.messages import PolicyText

    content = b""
    if file is not None:
        from appliance.settings.policy_files import parse_policy

        content, name = read_content(file)
        parse_policy(content, name, outside=False)
    found = api_client().backtest(PolicyText(content=content.decode()))
    return Output(found, lambda: _show_backtest(found))


def _show_backtest(found: Backtest) -> None:
    show_table(
        ("evaluated", "candidate", "recorded", "this file", "reason"),
        [_row(row) for row in found.rows],
        empty="no candidate was evaluated yet",
    )
    counts = Counter(row.now.outcome.value for row in found.rows)
    changed = sum(row.recorded is not None and row.recorded is not row.now.outcome for row in found.rows)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    show_line(f"under {found.policy[:12]}: {outcomes or 'nothing'}; {changed} differ from recorded decisions")


def _row(row: BacktestRow) -> tuple[str, str, str, str, str]:
    recorded = row.recorded.value if row.recorded else "-"
    return row.created[:16], short(row.candidate), recorded, row.now.outcome.value, row.now.reason


@prints
def budget() -> Output[BudgetView]:
    """Show the rest of the quarter's chance of a false promotion, each candidate's evidence, and the nights to go."""
    found = api_client().budget()
    return Output(found, lambda: _show_budget(found))


def _show_budget(found: BudgetView) -> None:
    show_fields(
        [
            ("quarter", found.quarter),
            (
                "chance of a false promotion",
                f"{100 * found.alpha:g} % at most, shared by {found.candidates} candidates",
            ),
            ("candidates left", found.left),
            ("required odds", f"{found.needed:.0f} to 1, over at most {found.nights} nights"),
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
        empty="no candidate was compared this quarter",
    )
