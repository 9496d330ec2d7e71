"""`assay schedule`: coming and past nights, and pauses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer
from pydantic import RootModel

from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, prints, short_cycle, show_fields, show_table
from appliance.errors import ExitCode, UsageError
from appliance.settings.config_layers import user_file

if TYPE_CHECKING:
    from appliance.client.nights import ScheduleView

KEYS = 'nightly = "22:00-06:00" or enabled = false'

app = typer.Typer(help="Show, pause and resume the schedule of nights.", no_args_is_help=True)


class NoticesDocument(RootModel[dict[str, str]]):
    """Reason for each channel why a notice did not arrive; empty for one that did."""


@app.command("show")
@prints
def show(
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="Number of coming and of past nights.")] = 7,
) -> Output[ScheduleView]:
    """Show the next and the last nights, in the schedule's time zone, and the configuration keys that set them.

    Example: assay schedule show --limit 3
    """
    found = api_client().schedule(limit)
    return Output(found, lambda: _show(found))


@app.command("pause")
@prints
def pause(
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="8h, 3d, or an ISO 8601 time (default: until you resume)."),
    ] = None,
) -> Output[ScheduleView]:
    """Pause all nights. A running one stops at the end of its step; its cycle continues when nights resume.

    Example: assay schedule pause --until 3d
    """
    from appliance.cli.jobs.limits import deadline_of
    from appliance.client.nights import PauseSchedule

    moment = deadline_of(until, datetime.now().astimezone(), "the end of the pause")
    found = api_client().pause_schedule(PauseSchedule(until=moment or ""))
    until_when = f" until {found.until}" if found.until else ": end it with `assay schedule resume`"
    return Output(found, f"nights are paused{until_when}")


@app.command("resume")
@prints
def resume() -> Output[ScheduleView]:
    """End the pause."""
    found = api_client().resume_schedule()
    then = (
        f"the next opens at {found.coming[0].opens}" if found.coming and found.coming[0].opens else "none is scheduled"
    )
    return Output(found, f"nights resume; {then}")


@app.command("notify")
@prints
def notify() -> Output[NoticesDocument]:
    """Send a test notice each way that `[report]` configures. Exit code 0 if all arrived, 2 if none is configured, 5 if
    one failed."""
    failed = api_client().try_notices().failed
    if not failed:
        raise UsageError("[report] configures no notices", "see docs/nights.md, Notices, for examples")
    rows = [(name, why or "sent") for name, why in failed.items()]
    code = ExitCode.INFRASTRUCTURE if any(failed.values()) else ExitCode.OK
    return Output(NoticesDocument(dict(failed)), lambda: show_table(("way", "result"), rows, empty=""), code)


def _show(found: ScheduleView) -> None:
    zone = _zone(found.zone)
    paused = "until a person resumes them" if found.paused and not found.until else _local(found.until, zone)
    show_fields(
        [
            ("nights", found.calendar if found.enabled else "disabled: schedule.enabled is false"),
            ("paused", paused if found.paused else ""),
            ("now", "nights are paused" if found.paused else found.holds or "a night works"),
            ("not measurable", "; ".join(found.unknown)),
            ("set by", f"[schedule] in {user_file()}, such as {KEYS}; restart the daemon after a change"),
            ("all keys", "`assay config show --explain schedule`"),
        ]
    )
    show_table(
        ("next", "opens", "closes"),
        [(one.key, _local(one.opens, zone), _local(one.closes, zone) or "when its cycle ends") for one in found.coming],
        empty="no night scheduled: nights are paused" if found.paused else "no night scheduled",
    )
    show_table(
        ("night", "state", "hours", "kWh", "cycle", "reason"),
        [
            (
                one.key,
                one.state.value,
                f"{one.seconds / 3600:.1f}",
                "" if one.joules is None else f"{one.joules / 3.6e6:.2f}",
                one.cycle or "-",
                one.reason,
            )
            for one in found.nights
        ],
        empty="no night yet",
        narrow={"cycle": short_cycle},
    )


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _local(text: str, zone: ZoneInfo | None) -> str:
    if not text:
        return ""
    return datetime.fromisoformat(text).astimezone(zone or UTC).isoformat(sep=" ", timespec="minutes")
