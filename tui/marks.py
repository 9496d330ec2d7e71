"""The few signs and colours of the screen. Colour only repeats what a word or a sign already says."""

from __future__ import annotations

from rich.text import Text

from appliance.client import DecisionOutcome, GateOutcome, JobState, Outcome, ToolStatus
from appliance.client.printable import printable

GOOD, BAD, CARE, DIM, STRONG = "#8fbf8f", "#d98880", "#d7b46a", "#8a929e", "bold"
_BLOCKS = "▁▂▃▄▅▆▇█"

VERDICTS = {
    Outcome.PASS: ("✓ pass", GOOD),
    Outcome.FAIL: ("✗ fail", BAD),
    Outcome.HACK_SUSPECTED: ("! hack?", CARE),
    Outcome.INFRA_ERROR: ("~ infra", DIM),
}
DECISIONS = {
    DecisionOutcome.PROMOTE: ("promote", GOOD),
    DecisionOutcome.HOLD: ("hold", CARE),
    DecisionOutcome.REJECT: ("reject", BAD),
    DecisionOutcome.QUARANTINE: ("quarantine", BAD),
}
GATES = {
    GateOutcome.PASSED: ("✓", GOOD),
    GateOutcome.FAILED: ("✗", BAD),
    GateOutcome.UNDECIDED: ("?", CARE),
}
JOBS = {
    JobState.QUEUED: ("queued", DIM),
    JobState.RUNNING: ("running", CARE),
    JobState.SOLVED: ("✓ solved", GOOD),
    JobState.UNSOLVED: ("✗ unsolved", BAD),
    JobState.FAILED: ("~ failed", DIM),
    JobState.CANCELLED: ("cancelled", DIM),
}


def plain(text: str, style: str = "", *, limit: int = 0, lines: bool = False) -> Text:
    """Text from anywhere as cells of the screen: no markup, no control characters."""
    return Text(printable(text, limit=limit, lines=lines), style=style)


def marked(mark: tuple[str, str]) -> Text:
    return Text(mark[0], style=mark[1])


def short(digest: str | None) -> str:
    """The first eight digits: enough to tell models apart, and accepted wherever one is asked for."""
    return "-" if digest is None else digest[:8]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def sparkline(values: list[float], width: int) -> str:
    """The last `width` values from 0 to 1 as a line of blocks."""
    shown = [min(max(value, 0.0), 1.0) for value in values[-width:]] if width > 0 else []
    return "".join(_BLOCKS[min(int(value * len(_BLOCKS)), len(_BLOCKS) - 1)] for value in shown)


def call_marks(statuses: list[ToolStatus]) -> Text:
    """`3` calls, `3 1✗` when one of them failed."""
    failed = sum(status.failed for status in statuses)
    text = Text(str(len(statuses)))
    if failed:
        text.append(f" {failed}✗", BAD)
    return text


def clock(moment: str) -> str:
    """Hours and minutes of a time in ISO 8601."""
    return printable(moment[11:16], limit=5)
