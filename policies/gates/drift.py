"""Gate `drift`: the candidate still behaves like its predecessors."""

from __future__ import annotations

import math

from pydantic import Field

from policies.contract.decision import GateFinding
from policies.contract.evidence import DriftReport, Evidence
from policies.contract.rules import Section
from policies.gates.gate import EVALUATE_AGAIN, Gate, GateContext, GateFigure


class DriftRules(Section):
    max_kl_champion: float = Field(gt=0)
    """Largest divergence from the champion, in nats per token."""
    max_kl_base: float = Field(gt=0)
    """Largest divergence from the first model of the line, in nats per token."""
    min_entropy: float = Field(ge=0)
    """Factor of the champion's entropy; the next two are factors of its length and tool calls."""
    max_length: float = Field(gt=1)
    min_tool_use: float = Field(ge=0, le=1)


def judge(evidence: Evidence, rules: DriftRules, context: GateContext) -> GateFinding:
    """Fails if divergence, entropy, length or tool use is out of bounds; undecided if they are not on record or not
    finite. The figure is the divergence from the champion in nats per token."""
    report = evidence.measurements.drift
    unit = "nats a token"
    if report is None or not report.tokens:
        missing = "the candidate's drift from the champion"
        return GateFigure("drift", None, rules.max_kl_champion, unit).not_on_record(missing)
    if not all(map(math.isfinite, report.model_dump().values())):
        unknown = GateFigure("drift", None, rules.max_kl_champion, unit)
        return unknown.undecided("a figure of the drift is not finite", EVALUATE_AGAIN)
    seen = GateFigure("drift", report.kl_champion, rules.max_kl_champion, unit)
    figures = (
        f"{report.kl_champion:.3f} nats a token from the champion, {report.kl_base:.3f} from the first of its line; "
        f"entropy {report.entropy:.3f} (champion {report.entropy_champion:.3f}), {report.length:.0f} tokens "
        f"({report.length_champion:.0f}) and {report.calls:.2f} calls ({report.calls_champion:.2f}) an answer"
    )
    if out := _out_of_bounds(report, rules):
        advice = "a candidate that stays closer to the champion: fewer steps, or a lower learning rate"
        return seen.failed(f"{figures}; out of bounds: {'; '.join(out)}", advice)
    return seen.passed(figures)


def _out_of_bounds(report: DriftReport, rules: DriftRules) -> list[str]:
    least_entropy = rules.min_entropy * report.entropy_champion
    most_length = rules.max_length * report.length_champion
    least_calls = rules.min_tool_use * report.calls_champion
    checks = (
        (report.kl_champion <= rules.max_kl_champion, f"at most {rules.max_kl_champion:g} nats from the champion"),
        (report.kl_base <= rules.max_kl_base, f"at most {rules.max_kl_base:g} nats from the first"),
        (report.entropy >= least_entropy, f"entropy of at least {least_entropy:.3f}"),
        (report.length <= most_length, f"at most {most_length:.0f} tokens an answer"),
        (report.calls >= least_calls, f"at least {least_calls:.2f} calls an answer"),
    )
    return [bound for holds, bound in checks if not holds]


GATE = Gate("drift", DriftRules, judge, measures="drift")
