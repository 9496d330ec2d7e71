"""Gate `contamination`: no sealed question was in the candidate's training."""

from __future__ import annotations

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


def judge(evidence: Evidence, rules: Section, context: GateContext) -> GateFinding:
    """Fails if any sealed question was trained on; undecided without a comparison. The figure is their number."""
    report = evidence.measurements.contamination
    if report is None:
        missing = "a comparison of the sealed questions with the training"
        return GateFigure("contamination", None, 0.0, "questions").not_on_record(missing)
    seen = GateFigure("contamination", float(report.found), 0.0, "questions")
    if report.found:
        return seen.failed(
            f"{report.found} of {report.sealed} sealed questions were in the training",
            "a candidate that never saw them, or sealed questions that it never saw",
        )
    if not (report.sealed and report.trained):
        reason = f"{report.sealed} sealed and {report.trained} trained questions are on record: nothing to compare"
        return seen.undecided(reason, "a candidate whose training is on record")
    return seen.passed(f"none of {report.sealed} sealed questions is among its {report.trained} training questions")


GATE = Gate(
    "contamination",
    Section,
    judge,
    measures="contamination",
    never_missing="without it a candidate could be asked what it was trained on",
)
