"""`assay schedule`: coming and past nights, and pauses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from appliance.cli.shell.options import Data, Json, client_of
from appliance.cli.show.printing import short_cycle, show_fields, show_json, show_line, show_table
from appliance.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from appliance.client.nights import ScheduleView

app = typer.Typer(help="Show, pause and resume the schedule of nights.", no_args_is_help=True)


@app.command("show")
def show(
    context: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="Number of coming and of past nights.")] = 7,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the next and the last nights, in the schedule's time zone."""
    found = client_of(context, data).schedule(limit)
    show_json(found) if as_json else _show(found)


@app.command("pause")
def pause(
    context: typer.Context,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="8h, 3d, or an ISO 8601 time (default: until you resume)."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Pause all nights. A running one stops at the end of its step; its cycle continues when nights resume.

    Example: assay schedule pause --until 3d
    """
    from appliance.cli.jobs.request import deadline_of
    from appliance.client.nights import PauseSchedule

    moment = deadline_of(until, datetime.now().astimezone(), "the end of the pause")
    found = client_of(context, data).pause_schedule(PauseSchedule(until=moment or ""))
    if as_json:
        show_json(found)
    else:
        show_line(
            f"nights are paused until {found.until}"
            if found.until
            else "nights are paused: end it with `assay schedule resume`"
        )


@app.command("resume")
def resume(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """End the pause."""
    found = client_of(context, data).resume_schedule()
    if as_json:
        show_json(found)
    else:
        next_one = found.coming[0].opens if found.coming else ""
        show_line(f"nights resume; the next opens at {next_one}" if next_one else "nights resume; none is scheduled")


@app.command("notify")
def notify(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """Send a test notice each way that `[report]` configures. Exit code 0 if all arrived, 2 if none is configured, 5 if
    one failed."""
    failed = client_of(context, data).try_notices().failed
    if not failed:
        raise UsageError("[report] configures no notices", "see docs/nights.md, Notices, for examples")
    if as_json:
        from appliance.cli.documents.data import NoticesDocument

        show_json(NoticesDocument(dict(failed)))
    else:
        rows = [(name, why or "sent") for name, why in failed.items()]
        show_table(("way", "result"), rows, empty="")
    if any(failed.values()):
        raise typer.Exit(ExitCode.INFRASTRUCTURE)


def _show(found: ScheduleView) -> None:
    zone = _zone(found.zone)
    paused = "until a person resumes them" if found.paused and not found.until else _local(found.until, zone)
    show_fields(
        [
            ("nights", found.calendar if found.enabled else "disabled: schedule.enabled is false"),
            ("paused", paused if found.paused else ""),
            ("now", "nights are paused" if found.paused else found.holds or "a night works"),
            ("not measurable", "; ".join(found.unknown)),
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
