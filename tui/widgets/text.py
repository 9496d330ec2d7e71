"""Text of the screen: its few colours, and everything from elsewhere as plain text.

What always holds: no text from elsewhere has markup or control characters, and none can pass for the screen's own.
Colour only repeats what a word or a sign already says.
"""

from __future__ import annotations

from rich.text import Text

from appliance.client import printable

GOOD, BAD, CARE, DIM, FAINT, STRONG = "good", "bad", "care", "dim-text", "faint", "bold"
"""Names of styles; `tui.theme` says what they look like in the light and in the dark."""
MAX_CHARACTERS = 4_000
"""Of one text; what is cut off is in the ledger."""
_BLOCKS = "▁▂▃▄▅▆▇█"


def plain(text: str, style: str = "", *, limit: int = 0, lines: bool = False) -> Text:
    """Text from anywhere as cells of the screen: no markup, no control characters."""
    return Text().append(printable(text, limit=limit, lines=lines), style)


def markup_safe(text: str) -> str:
    """Text from anywhere as a border's title, in which Textual reads markup."""
    return plain(text, limit=60).plain.replace("[", "(").replace("\\", "/")


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


def size(count: float) -> str:
    """Bytes, as people write them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit in ("B", "KiB") else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def bar(share: float, width: int, style: str = GOOD) -> Text:
    """A share from 0 to 1 as a bar; its rest is drawn thin, so that no colour is needed to see how far it goes."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    text = Text("█" * filled, style)
    text.append("░" * (width - filled), FAINT)
    return text


def wilson(passed: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927, JASA 22, page 209); everything for a count of 0."""
    if count == 0:
        return 0.0, 1.0
    z, share = 1.959964, passed / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count * count)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)
