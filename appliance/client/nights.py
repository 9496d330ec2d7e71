"""What goes over the control API about nights, and how a client asks: the schedule, a pause, what promotions gained."""

from __future__ import annotations

from pydantic import Field

from appliance.client.connection import ApiConnection
from appliance.records.nights import Night
from runtime.model import FrozenModel


class ComingNight(FrozenModel):
    key: str
    opens: str
    closes: str
    """UTC, ISO 8601; empty where it has no end."""


class ScheduleView(FrozenModel):
    enabled: bool
    calendar: str
    """In words, with the time zone."""
    zone: str
    """The time zone's name; empty where it has none."""
    paused: bool
    until: str
    """When the pause ends; empty: when a person says so."""
    holds: str
    """Why no night works now; empty while one does."""
    coming: tuple[ComingNight, ...]
    nights: tuple[Night, ...]
    """Those on record, newest first."""
    unknown: tuple[str, ...]
    """Rules that cannot be kept on this machine."""


class PauseSchedule(FrozenModel):
    until: str = Field(default="", max_length=64)
    """ISO 8601, with its zone; empty: until a person ends it."""


class TasksetChange(FrozenModel):
    family: str
    items: int
    """Questions that both models answered without an infrastructure error."""
    gained: int
    """Wrong before, right with the promoted model."""
    lost: int


class PromotionView(FrozenModel):
    """A model that the policy promoted, and what that gained and forgot."""

    at: str
    candidate: str
    champion: str
    """What it was compared with."""
    cycle: str
    evaluation: str
    reason: str
    taken_back: str = ""
    """Why it was taken out of service again; empty where it was not."""
    nights: int = 1
    """On which the two met until then: what was gained and forgotten is of the questions of all of them."""
    families: tuple[TasksetChange, ...]


class NoticesTried(FrozenModel):
    failed: dict[str, str]
    """By way: why it failed, empty where it did not. Those that are configured."""


def schedule(api: ApiConnection, limit: int = 7) -> ScheduleView:
    """The schedule, with as many of the next and of the last nights."""
    return api.get("/v1/schedule", ScheduleView, limit=limit)


def pause_schedule(api: ApiConnection, until: str = "") -> ScheduleView:
    """Nothing of a night works until then."""
    return api.post("/v1/schedule/pause", PauseSchedule(until=until), ScheduleView)


def resume_schedule(api: ApiConnection) -> ScheduleView:
    return api.read(api.request("POST", "/v1/schedule/resume", {}, b"{}"), ScheduleView)


def promotions(api: ApiConnection, limit: int = 100) -> list[PromotionView]:
    """Newest first."""
    return api.get("/v1/promotions", list[PromotionView], limit=limit)


def try_notices(api: ApiConnection) -> dict[str, str]:
    """Sends a trial each way that is configured; why each failed, empty where it did not."""
    return api.read(api.request("POST", "/v1/notices/try", {}, b"{}"), NoticesTried).failed
