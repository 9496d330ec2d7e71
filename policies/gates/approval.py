"""Gate `approval`: enough people approved the decision they were shown."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from policies.contract.decision import GateFinding, hours_between
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.gates.gate import Gate, GateContext, GateFigure


class ApprovalRules(Section):
    required: bool
    """If false, no approval is needed; a rejection still counts."""
    people: int = Field(ge=1, le=20)
    """Number of approvals required; policy edits and key admissions need as many signatures."""
    who: Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=100)]
    """Registered persons whose approval counts; `*` means everybody in the register."""
    max_age_hours: float = Field(gt=0)
    """Age above which an approval no longer counts, in hours."""


def judge(evidence: Evidence, rules: ApprovalRules, context: GateContext) -> GateFinding:
    """Fails on a rejection that its person did not take back; undecided while too few people have approved. The figure
    is the number of approving people.

    A person's last statement counts, and only statements on this evaluation under this policy; approvals older than the
    policy allows do not count.
    """
    last = {one.person: one for one in evidence.approvals if one.decision in evidence.shown}
    rejecting = sorted(person for person, one in last.items() if one.verdict == "reject")
    willing = sorted(person for person, one in last.items() if one.verdict == "approve")
    approving = [person for person in willing if hours_between(last[person].at, context.now) <= rules.max_age_hours]
    seen = GateFigure("approval", float(len(approving)), float(rules.people if rules.required else 0), "people")
    if rejecting:
        return seen.failed(f"rejected by {', '.join(rejecting)}", "an approval by the person who rejected")
    if not rules.required:
        return seen.passed("the policy requires no approval")
    missing = rules.people - len(approving)
    if missing <= 0:
        return seen.passed(f"approved by {', '.join(approving)}")
    expired = ", ".join(person for person in willing if person not in approving)
    late = f"; the approval of {expired} is more than {rules.max_age_hours:g} hours old" if expired else ""
    reason = f"{len(approving)} of {rules.people} people approved{late}"
    return seen.undecided(reason, f"the approval of {missing} more {'person' if missing == 1 else 'people'}")


GATE = Gate("approval", ApprovalRules, judge, never_missing="without it a person's rejection would be ignored")
