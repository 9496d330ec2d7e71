"""Schedule settings, `[schedule]`: when nights begin and end, and what keeps them from running."""

from __future__ import annotations

import ipaddress
import re
from datetime import time, tzinfo
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

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


_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*-\s*([01]\d|2[0-3]):([0-5]\d)")


def parse_window(text: str) -> tuple[time, time]:
    """Parses a nightly window, `HH:MM-HH:MM`, into its start and end. Raises ValueError."""
    found = _WINDOW.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a valid window: write it as 01:00-06:30, or 22:00-06:00 past midnight")
    hour, minute, to_hour, to_minute = map(int, found.groups())
    begins, ends = time(hour, minute), time(to_hour, to_minute)
    if begins == ends:
        raise ValueError(f"{text!r} is an empty window: name another end")
    return begins, ends


def parse_cron(line: str, zone: tzinfo) -> Any:
    """Parses a cron line of five fields into a `CronTrigger`; imports its library only here. Raises ValueError."""
    from apscheduler.triggers.cron import CronTrigger

    return CronTrigger.from_crontab(line, timezone=zone)


class EmailSettings(FrozenModel):
    host: str = ""
    """SMTP server; empty sends no e-mail."""
    port: Annotated[int, UnitName("TCP port")] = Field(587, ge=1, le=65_535)
    """Port of the SMTP server."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """Protection of the connection. `none` is only for a server on this machine, or without a password."""
    sender: str = ""
    """Sender address."""
    to: tuple[str, ...] = ()
    """Recipient addresses."""
    user: str = ""
    """User name for the server; empty skips the login."""
    password: str = ""
    """Location of the password: a file, or the name of a systemd credential."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.host and not (self.sender and self.to):
            raise ValueError("e-mail needs a sender and at least one address in `to`")
        if self.user and not self.password:
            raise ValueError("a user needs a password: name the file, or the credential, that has it")
        if self.security == "none" and self.user and not is_local(self.host):
            raise ValueError("a password is never sent unprotected: set security to starttls or tls")
        return self


class ReportSettings(FrozenModel):
    webhook: str = ""
    """URL that receives a POST with JSON after each night; empty disables it."""
    webhook_token: str = ""
    """Location of the webhook's bearer token: a file, or the name of a systemd credential; empty sends none."""
    ntfy: str = ""
    """URL of an ntfy topic, such as https://ntfy.example.org/nights; empty disables it."""
    ntfy_token: str = ""
    """Location of the ntfy access token: a file, or the name of a systemd credential; empty sends none."""
    email: EmailSettings = EmailSettings()
    timeout: Annotated[float, UnitName("seconds")] = Field(20.0, gt=0, le=120)
    """Time limit per notice, in seconds."""

    @field_validator("webhook", "ntfy")
    @classmethod
    def _is_url(cls, url: str) -> str:
        if not url:
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write a URL that begins with https:// or http://")
        if parts.username or parts.password:
            raise ValueError("leave the password out of the URL: name a file that has it, as the token")
        return url

    @model_validator(mode="after")
    def _tokens_are_protected(self) -> Self:
        for url, token in ((self.webhook, self.webhook_token), (self.ntfy, self.ntfy_token)):
            parts = urlsplit(url)
            if token and parts.scheme == "http" and not is_local(parts.hostname or ""):
                raise ValueError("a token is never sent over http to another machine: write https://")
        return self


def is_local(host: str) -> bool:
    """True if the host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
