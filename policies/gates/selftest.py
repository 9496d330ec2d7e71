"""Gate `selftest`: the verifiers that judged refused every known attack and accepted honest work."""

from __future__ import annotations

from pydantic import Field

from policies.contract.decision import GateFinding, hours_between
from policies.contract.evidence import Evidence, SelfTestReport
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


class SelfTestRules(Section):
    max_age_hours: float = Field(gt=0)
    """Largest age of the self-test at the time of the evaluation, in hours."""


def judge(evidence: Evidence, rules: SelfTestRules, context: GateContext) -> GateFinding:
    """Fails if any self-test case of the verifiers went wrong; undecided if the report is missing or does not cover the
    evaluation. The figure is the number of wrong cases."""
    report = evidence.measurements.selftest
    if report is None:
        return GateFigure("selftest", None, 0.0, "cases").not_on_record("the verifiers' self-test")
    wrong = report.accepted + report.rejected + report.unsuspected
    seen = GateFigure("selftest", float(wrong), 0.0, "cases")
    if wrong:
        reason = (
            f"{report.accepted} attacks accepted, {report.unsuspected} not suspected, {report.rejected} honest "
            "submissions refused: the verdicts cannot be relied on"
        )
        return seen.failed(reason, "fix what `assay check selftest` reports, then evaluate again")
    if gap := _gap(report, rules, evidence.evaluated_at):
        return seen.undecided(gap, "run `assay check selftest`, fix what it reports, then evaluate again")
    reason = (
        f"{', '.join(report.verifiers)} refused {report.attacks} attacks and accepted {report.controls} honest "
        "submissions"
    )
    return seen.passed(reason)


def _gap(report: SelfTestReport, rules: SelfTestRules, evaluated_at: str) -> str:
    """Returns the reason why a faultless self-test does not cover the evaluation; empty if it does."""
    age = hours_between(report.made_at, evaluated_at)
    if not report.verifiers:
        return "no verifier was tested"
    if report.untested and not report.missing:
        return f"no cases for {', '.join(report.untested)}"
    if report.untested:
        total = report.missing + report.attacks + report.controls
        return f"{report.missing} of {total} cases got no verdict ({', '.join(report.untested)}): {report.why}"
    if report.tested != report.installed:
        return "the self-test covers other verifier versions than those that judged"
    if age < 0:
        return "the self-test is dated after the evaluation"
    if age > rules.max_age_hours:
        return f"the self-test is {age:.0f} hours older than the evaluation (limit: {rules.max_age_hours:g})"
    return ""


GATE = Gate(
    "selftest",
    SelfTestRules,
    judge,
    measures="selftest",
    never_missing="without it a verifier that accepts anything could promote",
)
