"""Gate `egress`: code in a sandbox like the candidate's has no way out."""

from __future__ import annotations

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.gates.gate import EVALUATE_AGAIN, Gate, GateContext, GateFigure


def judge(evidence: Evidence, rules: Section, context: GateContext) -> GateFinding:
    """Fails if any probe got out of the sandbox; undecided if a probe gave no result or none is on record. The figure
    is the number of open ways out."""
    report = evidence.measurements.egress
    if report is None or not report.tried:
        return GateFigure("egress", None, 0.0, "ways").not_on_record("a probe of the sandboxes")
    unknown = len(report.unknown)
    found_open = max(report.tried - report.held - unknown, len(report.open))
    seen = GateFigure("egress", float(found_open), 0.0, "ways")
    if found_open:
        return seen.failed(
            f"{found_open} of {report.tried} egress probes got out: {', '.join(report.open)}",
            "sandboxes without egress: run `assay doctor`, then evaluate again",
        )
    if unknown:
        return seen.undecided(
            f"{unknown} of {report.tried} egress probes gave no result: {'; '.join(report.unknown)}",
            f"a result of every egress probe: run `assay doctor`; {EVALUATE_AGAIN}",
        )
    return seen.passed(f"all {report.tried} egress probes were blocked")


GATE = Gate("egress", Section, judge, measures="egress")
