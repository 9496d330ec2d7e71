"""Parses schedule settings: a window of local time, and a cron line. Pure."""

from __future__ import annotations

import re
from datetime import time, tzinfo
from typing import Any

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
