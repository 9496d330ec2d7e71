"""Signs for outcomes: each has a word beside its colour."""

from __future__ import annotations

from rich.text import Text

from appliance.client import Decision, DecisionOutcome, GateFinding, GateOutcome, JobState, Outcome
from tui.widgets.text import BAD, CARE, DIM, GOOD, add_field, plain, short

VERDICTS = {
    Outcome.PASS: ("✓ pass", GOOD),
    Outcome.FAIL: ("✗ fail", BAD),
    Outcome.HACK_SUSPECTED: ("! hack?", CARE),
    Outcome.INFRA_ERROR: ("~ infra", DIM),
}
DECISIONS = {
    DecisionOutcome.PROMOTE: ("promote", GOOD),
    DecisionOutcome.HOLD: ("hold", CARE),
    DecisionOutcome.REJECT: ("reject", BAD),
    DecisionOutcome.QUARANTINE: ("quarantine", BAD),
}
GATES = {GateOutcome.PASSED: ("✓", GOOD), GateOutcome.FAILED: ("✗", BAD), GateOutcome.UNDECIDED: ("?", CARE)}
JOB_STATES = {
    JobState.QUEUED: ("queued", DIM),
    JobState.RUNNING: ("running", CARE),
    JobState.SOLVED: ("✓ solved", GOOD),
    JobState.UNSOLVED: ("✗ unsolved", BAD),
    JobState.FAILED: ("~ failed", DIM),
    JobState.CANCELLED: ("cancelled", DIM),
    JobState.SET_ASIDE: ("~ set aside", BAD),
}


def signed(sign: tuple[str, str]) -> Text:
    """Returns a status sign as text in its colour."""
    return Text().append(*sign)


def decision_detail(decision: Decision) -> Text:
    """Describes a decision; gates that did not pass come first."""
    text = Text()
    text.append("decision  ", DIM)
    text.append_text(signed(DECISIONS[decision.outcome]))
    text.append_text(plain(f"  {decision.reason}"))
    text.append("\n")
    for finding in sorted(decision.findings, key=lambda one: one.outcome is GateOutcome.PASSED):
        sign, style = GATES[finding.outcome]
        text.append(f"  {sign} ", style)
        figure, reason = figure_text(finding), finding.reason.removeprefix(f"{finding.gate.partition('/')[2]}: ")
        said = reason.startswith(figure)  # what the reason begins with is not said twice
        text.append_text(plain(f"{finding.gate:<26} {'' if said else f'{figure:>8}  '}"))
        text.append_text(plain(reason, DIM))
        text.append("\n")
    add_field(text, "would change it", decision.would_change)
    add_field(text, "made", f"{decision.made_at}, policy {short(decision.policy)}, {decision.id}")
    return text


def figure_text(finding: GateFinding) -> str:
    """Formats a gate's figure: `+31.2`, `0`, `1.2 h`, `3.0 %`; `-` without one."""
    if finding.figure is None:
        return "-"
    if finding.unit == "points":
        return f"{finding.figure:+.1f}"
    if finding.unit == "hours":
        return f"{finding.figure:.1f} h"
    if finding.unit == "percent":
        return f"{finding.figure:.1f} %"
    return f"{finding.figure:g}" if finding.unit == "people" else f"{finding.figure:.3g} {finding.unit}"


def figure_cell(finding: GateFinding | None) -> Text:
    if finding is None:
        return plain("-", DIM)
    sign, style = GATES[finding.outcome]
    figure = figure_text(finding)
    return plain(sign if figure == "-" else f"{sign} {figure}", style, limit=9)


def finding_of(decision: Decision | None, gate: str) -> GateFinding | None:
    return next((finding for finding in decision.findings if finding.gate == gate), None) if decision else None


def weakest_family(decision: Decision | None) -> GateFinding | None:
    """Returns the decision's finding about the taskset with the smallest gain, or None."""
    gates = ("non_regression/", "retention/")
    families = [one for one in decision.findings if one.gate.startswith(gates)] if decision else []
    return min(families, key=lambda one: 0.0 if one.figure is None else one.figure, default=None)
