"""Schedule settings, `[schedule]`: when nights begin and end, and what keeps them from running."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from appliance.nights.parsing import parse_cron, parse_window
from runtime.model import FrozenModel, UnitName

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
CatchUp = Literal["none", "same_night", "next_start"]
DEFAULT_WINDOW = "01:00-06:30"


class IdleSettings(FrozenModel):
    """Conditions under which the machine counts as free for a night."""

    gpu: bool = True
    """Hold the night while another program computes on a GPU."""
    max_load: Annotated[float | None, UnitName("processors")] = Field(None, gt=0)
    """One-minute load average above which no night begins or resumes; unset means no limit."""
    session: Annotated[float | None, UnitName("minutes")] = Field(None, gt=0)
    """Minutes without input at this machine before a night may run; unset ignores input."""
    quiet: Annotated[float, UnitName("minutes")] = Field(5.0, ge=0)
    """Minutes that the machine must be free again before a night resumes."""


class ScheduleSettings(FrozenModel):
    enabled: bool = True
    """Begin nights by the clock; when false, only `assay cycle start` begins a cycle."""
    nightly: str | None = None
    """Window in which a night works, such as 22:00-06:00; unset means 01:00-06:30, unless `cron` is set."""
    weekdays: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    """Days on which a window opens."""
    cron: str | None = None
    """Cron line that begins nights, instead of `nightly`: minute, hour, day, month, weekday. Such a night has no end.
    """
    timezone: str | None = None
    """Time zone of `nightly` and `cron`, such as Europe/Berlin; unset means the machine's."""
    catch_up: CatchUp = "same_night"
    """Treatment of a night that could not begin on time: `none` gives up after half an hour, `same_night` begins while
    its window is open, `next_start` may also make it up later, by day, for the length of its window."""
    max_hours: Annotated[float | None, UnitName("hours")] = Field(None, gt=0)
    """Longest working time of a night."""
    max_energy: Annotated[float | None, UnitName("kWh")] = Field(None, gt=0)
    """Most energy of processors and GPUs per night, if this machine measures it."""
    stop_within: Annotated[float, UnitName("minutes")] = Field(10.0, gt=0)
    """Time that a stopping night may take to finish its step."""
    idle: IdleSettings = IdleSettings()

    @field_validator("nightly")
    @classmethod
    def _is_window(cls, nightly: str | None) -> str | None:
        if nightly is not None:
            parse_window(nightly)
        return nightly

    @field_validator("weekdays")
    @classmethod
    def _some_day(cls, weekdays: tuple[Weekday, ...]) -> tuple[Weekday, ...]:
        if not weekdays:
            raise ValueError('name at least one day, or set schedule.enabled to false; such as ["mon", "fri"]')
        return tuple(dict.fromkeys(weekdays))

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str | None) -> str | None:
        if cron is not None:
            parse_cron(cron, ZoneInfo("UTC"))
        return cron

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, timezone: str | None) -> str | None:
        if timezone is not None:
            try:
                ZoneInfo(timezone)
            except (ZoneInfoNotFoundError, ValueError, OSError) as error:
                raise ValueError(f"unknown time zone {timezone!r}") from error
        return timezone

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.nightly is not None and self.cron is not None:
            raise ValueError("nightly and cron exclude each other: set one of them")
        return self
