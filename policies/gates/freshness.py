"""Gate `freshness`: the evaluation is recent, against the champion in service, and made under this policy."""

from __future__ import annotations

from pydantic import Field

from policies.contract.decision import GateFinding, hours_between
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


class FreshnessRules(Section):
    max_age_hours: float = Field(gt=0)
    """Largest age of the evaluation, in hours."""


def judge(evidence: Evidence, rules: FreshnessRules, context: GateContext) -> GateFinding:
    """Undecided if the evaluation is too old, dated in the future, or against another champion or policy. Never fails,
    because old evidence says nothing against a candidate. The figure is the evaluation's age in hours."""
    age = hours_between(evidence.evaluated_at, context.now)
    seen = GateFigure("freshness", age, rules.max_age_hours, "hours")
    if evidence.in_service is not None and evidence.in_service != evidence.champion:
        return seen.undecided(
            "another champion is in service now", "evaluate the candidate against the champion in service"
        )
    if evidence.other_policies:
        return seen.undecided(
            f"the candidate was evaluated under another policy ({evidence.other_policies[0][:12]})",
            "a candidate evaluated under this policy only: an edit never applies to earlier candidates",
        )
    if age < 0:
        reason = "the evaluation is dated in the future"
        return seen.undecided(reason, "set the clock right and evaluate again")
    if age > rules.max_age_hours:
        reason = f"the evaluation is {age:.0f} hours old, more than the {rules.max_age_hours:g} allowed"
        return seen.undecided(reason, "evaluate again")
    return seen.passed(f"evaluated {age:.1f} hours before this decision, against the champion in service")


GATE = Gate(
    "freshness", FreshnessRules, judge, never_missing="without it an old evaluation, or an edited policy, could promote"
)
