"""Parts of screens: plain text, record tables, scrolling text, top lines, and the page shown without a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import DataTable, Static

from appliance.client import ApiError, DaemonNotRunning
from tui.widgets.text import BAD, CARE, DIM, STRONG, Row, Table, clock, plain, short
from tui.widgets.view import View

if TYPE_CHECKING:  # loaded with the first answer
    from appliance.client import Status


class PlainText(Static):
    """Widget that shows text without markup and redraws it only when it changed."""

    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(Text(text), id=id, classes=classes, markup=False)
        self.text = Text(text)

    @classmethod
    def of(cls, text: Text, *, id: str | None = None) -> Self:  # noqa: A002
        shown = cls(id=id)
        shown.text = text
        return shown

    def on_mount(self) -> None:
        self.draw()

    def show(self, text: Text) -> None:
        if text != self.text:
            self.text = text
            self.draw()

    def draw(self) -> None:
        """Redraws the widget's text in the current theme."""
        self.update(self.text)


class TopLine(PlainText):
    """Line at the top with the models in service, the candidate, the worker's state and the next cycle."""

    def show_status(self, status: Status, *, read_only: bool, now: datetime) -> None:
        text = Text()
        text.append(" assay ", STRONG)
        if read_only:
            text.append(" read-only ", CARE)
        text.append("  champion ", DIM)
        text.append(short(status.aliases.get("champion")), STRONG)
        for name in ("canary", "candidate"):
            digest = status.aliases.get(name)
            if digest is not None:
                text.append(f"  {name} ", DIM)
                text.append(short(digest), CARE)
        text.append("  ")
        text.append_text(doing(status))
        if status.next_cycle:
            text.append(f"  next {due(status.next_cycle, now)} UTC", DIM)
        self.show(text)


def due(moment: str, now: datetime) -> str:
    """Formats a future time as hours and minutes, with the date if it is a day or more away."""
    far = datetime.fromisoformat(moment) - now >= timedelta(days=1)
    return f"{plain(moment[5:10]).plain} {clock(moment)}" if far else clock(moment)


def doing(status: Status) -> Text:
    """Describes the worker's state, or the reason why it is idle."""
    worker = status.worker
    if status.tampered:
        return plain(f"tampered with: {status.tampered}", BAD, limit=60)
    if worker.waits_for:
        return plain(f"waits: {worker.waits_for}", CARE, limit=60)
    if worker.state == "backing_off":
        return plain(f"worker failed {worker.failures}×: {worker.last_failure}", BAD, limit=60)
    if worker.state == "running":
        return plain("working on jobs" if worker.doing == "jobs" else "running a cycle", CARE)
    if status.cycles_wait_for:
        return plain(f"cycles wait: {status.cycles_wait_for}", CARE, limit=60)
    return plain("idle", DIM)


class ViewLine(PlainText):
    """Bar of the screens with their number keys; a click opens one."""

    class Clicked(Message):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, views: Sequence[View]) -> None:
        super().__init__(id="views")
        self._views = views
        self._places: list[tuple[int, int, str]] = []

    def show_current(self, name: str) -> None:
        """Highlights the current screen in the bar of screens; uses brief titles if the full ones do not fit."""
        width = self.app.size.width
        long = sum(len(f" {view.key} {view.title} ") for view in self._views) <= width
        text = Text()
        self._places = []
        for view in self._views:
            start = len(text)
            here = view.name == name
            text.append(f" {view.key} " if long else f"{view.key} ", "bold" if here else DIM)
            text.append(f"{view.title if long else view.brief} ", "bold reverse" if here else "")
            self._places.append((start, len(text), view.name))
        self.show(text)

    def on_click(self, event: events.Click) -> None:
        for start, end, name in self._places:
            if start <= event.x < end:
                self.post_message(self.Clicked(name))


WIDE = 100
"""Minimum terminal width, in columns, for a text beside a table."""
TALL = 30
"""Minimum terminal height, in lines, for a border around input lines."""
LEAST_CELLS = 6
"""Minimum width of the last column, in cells."""


def last_width(columns: Sequence[tuple[str, int]], room: int) -> int:
    """Returns the width of the last column for a table of `room` cells."""
    others = sum(width for _, width in columns[:-1]) + 2 * len(columns)
    return max(LEAST_CELLS, min(columns[-1][1], room - others))


class RecordTable(DataTable[Text]):
    """Table of keyed rows; the cursor stays on its record when rows change. Long cells end with `…`."""

    def __init__(self, table: Table) -> None:
        super().__init__(id=table.name, cursor_type="row", cell_padding=1, show_cursor=True)
        self.table = table
        self._shown: tuple[Row, ...] = ()

    def on_mount(self) -> None:
        for name, width in self.table.columns:
            self.add_column(Text(name, DIM), key=name, width=width)

    @property
    def rows_shown(self) -> tuple[Row, ...]:
        return self._shown

    @property
    def selected(self) -> str | None:
        """Key of the record under the cursor."""
        return self._shown[self.cursor_row].key if 0 <= self.cursor_row < len(self._shown) else None

    def show_rows(self, rows: Sequence[Row]) -> None:
        if tuple(rows) == self._shown:
            return
        selected, at_top = self.selected, self.cursor_row == 0
        self._shown = tuple(rows)
        with self.app.batch_update():
            self.clear()
            for row in rows:
                self.add_row(*map(_in_one_line, row.cells), key=row.key)
            keys = [row.key for row in rows]
            if selected in keys and not at_top:
                self.move_cursor(row=keys.index(selected), animate=False)

    def fit(self, room: int) -> None:
        """Narrows the table's last column to the available room, or widens it again."""
        column = next(reversed(self.columns.values()), None)
        width = last_width(self.table.columns, room)
        if column is not None and column.width != width:
            column.width = width
            self._require_update_dimensions = True
            self.draw()

    def draw(self) -> None:
        """Redraws the table of records in the current theme."""
        self._clear_caches()
        self.refresh()


def _in_one_line(cell: Text) -> Text:
    shown = cell.copy()
    shown.no_wrap, shown.overflow = True, "ellipsis"
    return shown


class Detail(VerticalScroll):
    """Scrolling text that describes the selected record."""

    def compose(self) -> ComposeResult:
        yield PlainText(classes="detail-text")

    def show_detail(self, text: Text, *, moved: bool) -> None:
        """Shows a record's text; `moved` means that the record changed, so scroll to the top."""
        self.query_one(".detail-text", PlainText).show(text)
        if moved:
            self.scroll_home(animate=False)


class Absent(Vertical):
    """Page shown while the daemon does not answer."""

    def compose(self) -> ComposeResult:
        yield PlainText("Asking the daemon …", id="absent-text")

    def show_error(self, error: ApiError, socket: Path, retry_seconds: float) -> None:
        text = Text()
        if isinstance(error, DaemonNotRunning):
            starts = error.exit_code == 6
            text.append(f"The daemon {'starts or ends' if starts else 'is not running'}.\n\n", STRONG)
            text.append_text(plain(str(error) if starts else f"No process listens on {socket}", DIM))
            text.append("\n\nStart it in another terminal:\n\n")
            text.append("    assay serve\n", STRONG)
            text.append("\nWith another data folder: add --data DIR, there and here.\n", DIM)
        else:
            text.append("The daemon has not answered yet.\n\n", STRONG)
            text.append_text(plain(f"{error}\n\n{error.hint}\n", lines=True))
        text.append(f"\nTrying again every {retry_seconds:g} s. q quits.", DIM)
        self.query_one("#absent-text", PlainText).show(text)
