"""The clock: at the times of a cron line it says that a cycle is due. What that leads to is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from appliance.config import ScheduleSettings


class ScheduleClock:
    """A schedule that is not enabled is never due. A time missed by at most an hour (suspend) counts once."""

    def __init__(self, schedule: ScheduleSettings, due: Callable[[], object]) -> None:
        self._scheduler = BackgroundScheduler(daemon=True)
        self._job = None
        if schedule.enabled:
            trigger = CronTrigger.from_crontab(schedule.cron, timezone=schedule.timezone)
            self._job = self._scheduler.add_job(due, trigger, max_instances=1, coalesce=True, misfire_grace_time=3600)

    def start(self) -> None:
        if self._job is not None:
            self._scheduler.start()

    def close(self) -> None:
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    @property
    def next_time(self) -> str | None:
        """UTC, ISO 8601."""
        if self._job is None or not self._scheduler.running:
            return None
        moment: datetime | None = self._job.next_run_time
        return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")
