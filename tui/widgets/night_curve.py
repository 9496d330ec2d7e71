"""Held-out success by night as a chart of a few text lines, with its axes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from tui.widgets.text import BAD, CARE, DIM, GOOD, STRONG, percent, plain, wilson

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client.nights import HeldOutNight

TITLE = "held-out success: ● candidate, 95 % interval; ○ champion"
NONE_YET = (
    "No night was evaluated yet. Each one adds a point here: the success of its candidate on held-out questions, "
    "beside the champion's. `assay cycle start` begins a night."
)
NIGHT, WIDEST, AXIS = 4, 12, 7
"""Least and greatest width of a night, and width of the vertical axis, in cells."""
GRID = 10
"""Percentage points to which the ends of the vertical axis are rounded."""
SIGNS = {"promote": ("↑", GOOD), "hold": ("·", DIM), "reject": ("✗", BAD), "quarantine": ("✗", BAD)}
LEGEND = "↑ promoted  · held  ✗ rejected"
DATE = 5
"""Cells of a month and day."""


def night_curve(nights: Sequence[HeldOutNight] | None, width: int, rows: int) -> Text:
    """Draws the newest nights that fit: a sentence about the last one, `rows` lines of points, then the decisions and
    the dates of the first and last night."""
    if nights is None:
        return plain("reading …", DIM)
    if not nights:
        return plain(NONE_YET, DIM)
    shown = nights[-max(1, (width - AXIS - 1) // NIGHT) :]
    newest, cells = shown[-1], max(NIGHT, min(WIDEST, (width - AXIS - 1) // len(shown)))
    text = plain(newest.summary, GOOD if newest.interval[0] > 0 else BAD if newest.interval[1] < 0 else CARE)
    text.append_text(plain(f"   {percent(newest.before / newest.items)} → {percent(newest.after / newest.items)}", DIM))
    text.truncate(width, overflow="ellipsis")
    text.append("\n")
    low, high = _ends(shown)
    columns = [_column(night, low, high, rows, cells) for night in shown]
    for row in reversed(range(rows)):
        label = f"{high if row == rows - 1 else low} %" if row in (0, rows - 1) else ""
        text.append(f"{label:>{AXIS - 2}} {'┤' if label else '│'}", DIM)
        for column in columns:
            text.append_text(column[row])
        text.append("\n")
    text.append(f"{'└':>{AXIS}}", DIM)
    for night in shown:
        text.append("─", DIM)
        text.append(*SIGNS.get(night.decision or "", ("─", DIM)))
        text.append("─" * (cells - 2), DIM)
    text.append(f"\n{' ' * AXIS}", DIM)
    first, last = (plain(night.at[5:10], limit=DATE).plain for night in (shown[0], newest))
    dates = last if len(shown) == 1 else f"{first}{last:>{max(DATE + 1, cells * len(shown) - DATE)}}"
    text.append(dates, DIM)
    return text


def _ends(nights: Sequence[HeldOutNight]) -> tuple[int, int]:
    """Returns the ends of the vertical axis in percent: the intervals' ends, rounded outwards."""
    bounds = [100 * end for night in nights for end in wilson(night.after, night.items)]
    bounds += [100 * night.before / night.items for night in nights]
    low = GRID * int(min(bounds) // GRID)
    return low, max(low + GRID, GRID * -int(-max(bounds) // GRID))


def _column(night: HeldOutNight, low: int, high: int, rows: int, width: int) -> list[Text]:
    """Draws one night from the lowest row up: the champion's point, beside it the candidate's on its interval."""

    def row_of(share: float) -> int:
        return round((100 * share - low) / (high - low) * (rows - 1))

    bottom, top = map(row_of, wilson(night.after, night.items))
    after, before = row_of(night.after / night.items), row_of(night.before / night.items)
    cells = []
    for row in range(rows):
        cell = Text("○" if row == before else " ", DIM)
        cell.append("●" if row == after else "│" if bottom <= row <= top else " ", STRONG if row == after else CARE)
        cells.append(cell.append(" " * (width - 2)))
    return cells
