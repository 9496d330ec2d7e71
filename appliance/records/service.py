"""A canary is a promoted model that answers beside the champion before it takes its place."""

from __future__ import annotations

from enum import StrEnum

from appliance.records.record import Record
from policies.canary import Counts
from policies.contract.rules import ServiceRules


class CanaryState(StrEnum):
    REPLAY = "replay"
    """It works earlier jobs again; people's are the champion's."""
    SHARE = "share"
    """It answers its share of people's jobs."""
    PASSED = "passed"
    """It is champion, or has been."""
    TAKEN_BACK = "taken_back"

    @property
    def ended(self) -> bool:
        return self in (CanaryState.PASSED, CanaryState.TAKEN_BACK)


class Canary(Record):
    """Is a promoted model beside the champion. What it says is done: whoever finds the aliases otherwise moves them."""

    id: str
    candidate: str
    champion: str
    decision: str
    """Id of the decision that promoted it."""
    rules: ServiceRules
    """Those in force when it began; a later edit of the policy is not about it."""
    state: CanaryState
    started: str
    share_since: str = ""
    ended: str = ""
    reason: str = ""
    """Why it ended."""
    counts: Counts = Counts()
    """As they were at the end."""
