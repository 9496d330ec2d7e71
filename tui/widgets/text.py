"""Text of the screen: its few colours, and conversion of foreign text to plain text.

Invariants: foreign text has no markup and no control characters, and cannot imitate the screen's own text. Colour only
repeats a word or sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.text import Text

from appliance.client import printable

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


KEYS = {
    "waits for you: `assay model approve candidate`": "waits: a approves, r rejects, 5 shows why",
    "`assay model show candidate`": "5",
    "`assay model ls`": "5",
    "`assay cycle watch`": "1",
}
"""Commands of the daemon's advice that a key of the screen replaces."""


def with_keys(text: str) -> str:
    """Replaces the commands in the daemon's advice by the screen's keys."""
    for command, key in KEYS.items():
        text = text.replace(command, key)
    return text


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def sparkline(values: list[float], width: int) -> str:
    """Draws the last `width` values as a line of blocks, from the lowest to the highest of them."""
    shown = values[-width:] if width > 0 else []
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    return "".join(_BLOCKS[round((value - low) / ((high - low) or 1.0) * (len(_BLOCKS) - 1))] for value in shown)


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


@dataclass(frozen=True)
class Row:
    key: str
    cells: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    name: str
    columns: tuple[tuple[str, int], ...]
    """Heading and width in cells."""
    empty: str
    """Text shown without records."""
    row: Callable[[Any], Row]
    detail: Callable[[Any, Status], Text]
