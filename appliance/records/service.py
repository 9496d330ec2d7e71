"""Canaries: promoted models that answer beside the champion before they replace it."""

from __future__ import annotations

from enum import StrEnum

from appliance.records.record import Record
from policies.canary import Counts
from policies.contract.rules import ServiceRules


class CanaryState(StrEnum):
    REPLAY = "replay"
    """The canary replays earlier jobs; people's jobs go to the champion."""
    SHARE = "share"
    """The canary answers its share of people's jobs."""
    PASSED = "passed"
    """The canary became champion."""
    TAKEN_BACK = "taken_back"

    @property
    def ended(self) -> bool:
        return self in (CanaryState.PASSED, CanaryState.TAKEN_BACK)


class Canary(Record):
    """A promoted model on trial beside the champion. The record is authoritative: aliases that disagree are moved."""

    id: str
    candidate: str
    champion: str
    decision: str
    """Id of the decision that promoted it."""
    rules: ServiceRules
    """Rules in force when it began; later policy edits do not apply to it."""
    state: CanaryState
    started: str
    share_since: str = ""
    ended: str = ""
    reason: str = ""
    """Reason for its end."""
    counts: Counts = Counts()
    """Counts at its end."""
