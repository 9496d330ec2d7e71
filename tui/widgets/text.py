"""Text of the screen: its few colours, and conversion of foreign text to plain text.

Invariants: foreign text has no markup and no control characters, and cannot imitate the screen's own text. Colour only
repeats a word or sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rich.text import Text

from appliance.client import Decision, DecisionOutcome, GateFinding, GateOutcome, JobState, Outcome, printable

if TYPE_CHECKING:
    from appliance.client import ApiClient, Event, Status

GOOD, BAD, CARE, DIM, FAINT, STRONG = "good", "bad", "care", "dim-text", "faint", "bold"
"""Names of styles; `tui.theme` defines them for the light and the dark theme."""
MAX_CHARACTERS = 4_000
"""Maximum characters of one text; the ledger has the rest."""
_BLOCKS = "▁▂▃▄▅▆▇█"


def plain(text: str, style: str = "", *, limit: int = 0, lines: bool = False) -> Text:
    """Returns text from any source without markup or control characters."""
    return Text().append(printable(text, limit=limit, lines=lines), style)


def markup_safe(text: str) -> str:
    """Replaces markup characters in a border title, which Textual would interpret: `[` by `(`, a backslash by `/`. Cuts
    the text to 60 characters."""
    return plain(text, limit=60).plain.replace("[", "(").replace("\\", "/")


def add_field(text: Text, name: str, value: object, style: str = "") -> None:
    """Appends a line `name  value`; nothing for None or ""."""
    if value is None or value == "":
        return
    text.append_text(plain(f"{name}  ", DIM))
    text.append_text(plain(str(value), style, limit=MAX_CHARACTERS, lines=True))
    text.append("\n")


def add_block(text: Text, content: str, margin: str, style: str = "") -> None:
    """Appends lines behind a margin, so that no output can imitate the screen's own text."""
    for line in plain(content.rstrip("\n"), limit=MAX_CHARACTERS, lines=True).plain.split("\n"):
        text.append(f"   {margin}", DIM)
        text.append(f"{line}\n", style)


def short(digest: str | None) -> str:
    """Returns the first eight digits of a digest, which are accepted wherever a model is named."""
    return "-" if digest is None else digest[:8]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def sparkline(values: list[float], width: int) -> str:
    """Draws the last `width` values from 0 to 1 as a line of blocks."""
    shown = [min(max(value, 0.0), 1.0) for value in values[-width:]] if width > 0 else []
    return "".join(_BLOCKS[min(int(value * len(_BLOCKS)), len(_BLOCKS) - 1)] for value in shown)


def clock(moment: str) -> str:
    """Returns hours and minutes of an ISO 8601 time."""
    return printable(moment[11:16], limit=5)


def size(count: float) -> str:
    """Formats a number of bytes with a binary unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit in ("B", "KiB") else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def bar(share: float, width: int, style: str = GOOD) -> Text:
    """Draws a share from 0 to 1 as a bar; the rest is drawn thin, so that it reads without colour."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    text = Text("█" * filled, style)
    text.append("░" * (width - filled), FAINT)
    return text


def wilson(passed: int, count: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927, JASA 22, page 209); 0 to 1 for a count of 0."""
    if count == 0:
        return 0.0, 1.0
    z, share = 1.959964, passed / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


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
    JobState.SET_ASIDE: ("~ set aside", BAD),
}


def signed(sign: tuple[str, str]) -> Text:
    """Returns a status sign as text in its colour."""
    return Text().append(*sign)


MOST = 500
Numbered: TypeAlias = "tuple[int, Event]"


class EventFeed:
    """Event cache for one thread; each `read` fetches only new events."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._data = ""
        self._known: tuple[Numbered, ...] = ()

    def read(self, client: ApiClient, status: Status) -> tuple[Numbered, ...]:
        """Fetches the daemon's new events; returns the newest, old and new, in ascending order. Raises ApiError."""
        if status.data != self._data or (self._known and status.last_event < self._known[-1][0]):
            self._known, self._data = (), status.data
        after = max(self._known[-1][0] if self._known else 0, status.last_event - self._most)
        if status.last_event > after:
            found = client.events(after=after, limit=self._most)
            self._known = (*self._known, *((one.number, one.event) for one in found))[-self._most :]
        return self._known


def decision_detail(decision: Decision) -> Text:
    text = Text()
    text.append("decision  ", DIM)
    text.append_text(signed(DECISIONS[decision.outcome]))
    text.append_text(plain(f"  {decision.reason}"))
    text.append("\n")
    for finding in decision.findings:
        sign, style = GATES[finding.outcome]
        text.append(f"  {sign} ", style)
        figure, reason = figure_text(finding), finding.reason.removeprefix(f"{finding.gate.partition('/')[2]}: ")
        said = reason.startswith(figure)  # what the reason begins with is not said twice
        text.append_text(plain(f"{finding.gate:<26} {'' if said else f'{figure:>8}  '}"))
        text.append_text(plain(reason, DIM))
        text.append("\n")
    add_field(text, "would change it", decision.would_change)
    add_field(text, "made", f"{decision.made_at}, policy {short(decision.policy)}, {decision.id}")
    return text


def figure_text(finding: GateFinding) -> str:
    """Formats a gate's figure: `+31.2`, `0`, `1.2 h`, `3.0 %`; `-` without one."""
    if finding.figure is None:
        return "-"
    if finding.unit == "points":
        return f"{finding.figure:+.1f}"
    if finding.unit == "hours":
        return f"{finding.figure:.1f} h"
    if finding.unit == "percent":
        return f"{finding.figure:.1f} %"
    return f"{finding.figure:g}" if finding.unit == "people" else f"{finding.figure:.3g} {finding.unit}"


def figure_cell(finding: GateFinding | None) -> Text:
    if finding is None:
        return plain("-", DIM)
    sign, style = GATES[finding.outcome]
    figure = figure_text(finding)
    return plain(sign if figure == "-" else f"{sign} {figure}", style, limit=9)


def finding_of(decision: Decision | None, gate: str) -> GateFinding | None:
    return next((finding for finding in decision.findings if finding.gate == gate), None) if decision else None


def weakest_family(decision: Decision | None) -> GateFinding | None:
    """Returns the decision's finding about the taskset with the smallest gain, or None."""
    families = [one for one in decision.findings if one.gate.startswith("non_regression")] if decision else []
    return min(families, key=lambda one: 0.0 if one.figure is None else one.figure, default=None)
