"""The gate that asks whether enough people approved of the decision that they were shown."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from policies.contract.decision import GateFinding
from policies.contract.evidence import Evidence
from policies.contract.rules import Section
from policies.contract.times import hours_between
from policies.gates.gate import Gate, GateContext, GateFigure


class ApprovalRules(Section):
    required: bool
    """With false nobody has to approve; a person's rejection counts all the same."""
    people: int = Field(ge=1, le=20)
    """Who must approve; also sign an edit of the policy, and admit a key."""
    who: Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=100)]
    """Names of registered persons whose approval counts; `*` for everybody in the register."""
    max_age_hours: float = Field(gt=0)
    """An approval that is older does not count."""


def judge(evidence: Evidence, rules: ApprovalRules, context: GateContext) -> GateFinding:
    """Fails for a rejection that its person did not take back. The figure is the number of people who approve.

    A person's last statement counts, and only statements on this evaluation under this policy; an approval that is
    older than the policy allows does not.
    """
    last = {one.person: one for one in evidence.approvals if one.decision in evidence.shown}
    rejecting = sorted(person for person, one in last.items() if one.verdict == "reject")
    willing = sorted(person for person, one in last.items() if one.verdict == "approve")
    approving = [person for person in willing if hours_between(last[person].at, context.now) <= rules.max_age_hours]
    seen = GateFigure("approval", float(len(approving)), float(rules.people if rules.required else 0), "people")
    if rejecting:
        return seen.failed(f"rejected by {', '.join(rejecting)}", "an approval by the person who rejected")
    if not rules.required:
        return seen.passed("the policy asks for no person's approval")
    missing = rules.people - len(approving)
    if missing <= 0:
        return seen.passed(f"approved by {', '.join(approving)}")
    expired = ", ".join(person for person in willing if person not in approving)
    late = f"; the approval of {expired} is more than {rules.max_age_hours:g} hours old" if expired else ""
    reason = f"{len(approving)} of {rules.people} people approved{late}"
    return seen.undecided(reason, f"the approval of {missing} more {'person' if missing == 1 else 'people'}")


GATE = Gate("approval", ApprovalRules, judge, never_missing="without it a person's rejection would count for nothing")
