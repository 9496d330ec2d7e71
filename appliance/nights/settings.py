"""When nights begin and end, and what keeps them from running, as it is configured in `[schedule]`."""

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
    """When the machine is free for a night."""

    gpu: bool = True
    """Nothing of a night runs while another program computes on a GPU."""
    max_load: Annotated[float | None, UnitName("processors")] = Field(None, gt=0)
    """The load average of one minute above which no night begins or goes on; otherwise none is too high."""
    session: Annotated[float | None, UnitName("minutes")] = Field(None, gt=0)
    """Nothing of a night runs until nobody has typed at this machine for so long; otherwise nobody is asked about."""
    quiet: Annotated[float, UnitName("minutes")] = Field(5.0, ge=0)
    """How long the machine has to be free again before a night goes on."""


class ScheduleSettings(FrozenModel):
    enabled: bool = True
    """Whether nights begin by the clock; otherwise only with `assay cycle start`."""
    nightly: str | None = None
    """The window in which a night works, such as 22:00-06:00; otherwise 01:00-06:30, unless `cron` says when."""
    weekdays: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    """The days on which a window opens."""
    cron: str | None = None
    """When a night begins, instead of `nightly`: minute, hour, day, month, weekday. Such a night has no end."""
    timezone: str | None = None
    """The time zone of `nightly` and `cron`, such as Europe/Berlin; otherwise the machine's."""
    catch_up: CatchUp = "same_night"
    """What becomes of a night that could not begin on time: `none` is given up after half an hour, `same_night` begins
    while its window is open, `next_start` is also made up later, by day, for as long as its window is."""
    max_hours: Annotated[float | None, UnitName("hours")] = Field(None, gt=0)
    """The most that a night works."""
    max_energy: Annotated[float | None, UnitName("kWh")] = Field(None, gt=0)
    """The most that processors and GPUs take in a night, where this machine measures it."""
    stop_within: Annotated[float, UnitName("minutes")] = Field(10.0, gt=0)
    """How long a night that has to stop may take to come to the end of its step."""
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
                raise ValueError(f"{timezone!r} is no time zone that this machine knows") from error
        return timezone

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.nightly is not None and self.cron is not None:
            raise ValueError("nightly and cron both say when a night begins: keep one of them")
        return self
