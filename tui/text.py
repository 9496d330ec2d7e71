"""Text of the screen: its few signs and colours, and everything from elsewhere as plain text.

What always holds: no text from elsewhere has markup or control characters, and none can pass for the screen's own.
Colour only repeats what a word or a sign already says.
"""

from __future__ import annotations

from rich.text import Text

from appliance.client import DecisionOutcome, GateOutcome, JobState, Outcome, printable

GOOD, BAD, CARE, DIM, STRONG = "#8fbf8f", "#d98880", "#d7b46a", "#8a929e", "bold"
MAX_CHARACTERS = 4_000
"""Of one text; what is cut off is in the ledger."""
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
GATES = {GateOutcome.PASSED: ("✓", GOOD), GateOutcome.FAILED: ("✗", BAD), GateOutcome.UNDECIDED: ("?", CARE)}
JOB_STATES = {
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


def signed(sign: tuple[str, str]) -> Text:
    """A sign in its colour."""
    return Text(sign[0], style=sign[1])


def add_field(text: Text, name: str, value: object, style: str = "") -> None:
    """Appends a line `name  value`; nothing for a value of None or ""."""
    if value is None or value == "":
        return
    text.append_text(plain(f"{name}  ", DIM))
    text.append_text(plain(str(value), style, limit=MAX_CHARACTERS, lines=True))
    text.append("\n")


def add_block(text: Text, content: str, margin: str, style: str = "") -> None:
    """Appends lines, each behind a margin, so that no output can pass for the screen's own words."""
    for line in plain(content.rstrip("\n"), limit=MAX_CHARACTERS, lines=True).plain.split("\n"):
        text.append(f"   {margin}", DIM)
        text.append(f"{line}\n", style)


def short(digest: str | None) -> str:
    """The first eight digits: enough to tell models apart, and accepted wherever one is asked for."""
    return "-" if digest is None else digest[:8]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def sparkline(values: list[float], width: int) -> str:
    """The last `width` values from 0 to 1 as a line of blocks."""
    shown = [min(max(value, 0.0), 1.0) for value in values[-width:]] if width > 0 else []
    return "".join(_BLOCKS[min(int(value * len(_BLOCKS)), len(_BLOCKS) - 1)] for value in shown)


def clock(moment: str) -> str:
    """Hours and minutes of a time in ISO 8601."""
    return printable(moment[11:16], limit=5)
