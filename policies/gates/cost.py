"""Gate `cost`: tokens and tool calls of the candidate on the same questions."""

from __future__ import annotations

from pydantic import Field

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


class CostRules(Section):
    max_tokens: float = Field(gt=0)
    """Largest token use as a factor of the champion's on the same questions."""
    max_calls: float = Field(gt=0)
    """Largest number of tool calls as a factor of the champion's, counted as at least one per answer."""


def judge(evidence: Evidence, rules: CostRules, context: GateContext) -> GateFinding:
    """Fails if the candidate uses too many tokens or tool calls; undecided if the cost is not on record. The figure is
    its tokens as a factor of the champion's."""
    report = evidence.cost
    if report is None or not report.answers or not report.tokens_champion:
        return GateFigure("cost", None, rules.max_tokens, "times").not_on_record("the cost of both models")
    tokens = report.tokens / report.tokens_champion
    calls = report.calls / max(report.calls_champion, report.answers)
    seen = GateFigure("cost", tokens, rules.max_tokens, "times")
    figures = (
        f"{tokens:.2f} times the champion's tokens; {report.calls} calls ({report.calls_champion} by the champion) on "
        f"{report.answers} questions"
    )
    if tokens <= rules.max_tokens and calls <= rules.max_calls:
        return seen.passed(figures)
    allowed = f"at most {rules.max_tokens:g} times the tokens and {rules.max_calls:g} times the calls"
    return seen.failed(f"{figures}; {allowed}", "a candidate with lower cost")


GATE = Gate("cost", CostRules, judge)
