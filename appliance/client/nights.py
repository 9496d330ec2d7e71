"""Messages about nights: the schedule, a pause, the promotion history, notices."""

from __future__ import annotations

from pydantic import Field

from appliance.client.gate_figures import change_in_words
from appliance.records.nights import Night
from policies.contract.decision import DecisionOutcome
from runtime.model import FrozenModel


class ComingNight(FrozenModel):
    key: str
    opens: str
    closes: str
    """UTC, ISO 8601; empty without an end."""


class ScheduleView(FrozenModel):
    enabled: bool
    calendar: str
    """The schedule in words, with its time zone."""
    zone: str
    """Name of the time zone; empty without one."""
    paused: bool
    until: str
    """End of the pause; empty: until a person resumes."""
    holds: str
    """Reason why no night works now; empty while one does."""
    coming: tuple[ComingNight, ...]
    nights: tuple[Night, ...]
    """Recorded nights, newest first."""
    unknown: tuple[str, ...]
    """Rules that this machine cannot evaluate."""


class PauseSchedule(FrozenModel):
    until: str = Field(default="", max_length=64)
    """ISO 8601 with time zone; empty: until a person resumes."""


class TasksetChange(FrozenModel):
    family: str
    items: int
    """Questions that both models answered without an infrastructure error."""
    gained: int
    """Wrong with the champion, right with the promoted model."""
    lost: int
    anchor: str = ""
    """Best champion of the taskset before, which the gate `retention` compared with; empty if not on record."""
    anchor_items: int = 0
    """Questions that the anchor and the promoted model answered; the next two count of these."""
    anchor_gained: int = 0
    anchor_lost: int = 0

    @property
    def to_anchor(self) -> str:
        """Gain over the anchor in points and words; empty if nothing compares them."""
        if not self.anchor_items:
            return "not asked" if self.anchor else ""
        return f"{100 * (self.anchor_gained - self.anchor_lost) / self.anchor_items:+.1f}"


class PromotionView(FrozenModel):
    """A promoted model with its gains and losses by taskset."""

    at: str
    candidate: str
    champion: str
    """Model that it was compared with."""
    cycle: str
    evaluation: str
    reason: str
    taken_back: str = ""
    """Reason why it left service again; empty if it did not."""
    nights: int = 1
    """Nights of comparison; gains and losses count the questions of all of them."""
    families: tuple[TasksetChange, ...]


class HeldOutNight(FrozenModel):
    """Success of a night's candidate and champion on the held-out questions that both answered."""

    cycle: str
    at: str
    candidate: str
    champion: str
    items: int
    before: int
    after: int
    """Questions passed by the candidate; `before` is the champion's."""
    change: float
    """Change from champion to candidate, in percentage points."""
    interval: tuple[float, float]
    """95 % interval of the change, in percentage points."""
    decision: DecisionOutcome | None
    """Newest decision about the candidate; None before the first."""

    @property
    def summary(self) -> str:
        """Answers in one sentence if the candidate is better."""
        open_yet = self.decision in (None, DecisionOutcome.HOLD)
        return change_in_words(self.change, self.interval, self.items, more_may_come=open_yet)


class NoticesTried(FrozenModel):
    failed: dict[str, str]
    """Reason of failure by configured way; empty on success."""
