"""The parts of the one screen: the line on top, the cycle, tables, the detail, and the page that waits for a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import DataTable, Static

from appliance.client import ApiError, DaemonNotRunning, Status
from tui.progress import cycle_text
from tui.snapshot import StatusSnapshot
from tui.table import Row, Table
from tui.text import BAD, CARE, DIM, STRONG, clock, plain, short


class PlainText(Static):
    """Text without markup, drawn again only when it changed."""

    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(Text(text), id=id, classes=classes, markup=False)
        self.text = Text(text)

    @classmethod
    def of(cls, text: Text) -> Self:
        shown = cls()
        shown.show(text)
        return shown

    def show(self, text: Text) -> None:
        if text != self.text:
            self.text = text
            self.update(text)


class TopLine(PlainText):
    """What is in service, what waits for a decision, what the daemon does."""

    def show_status(self, status: Status) -> None:
        text = Text()
        text.append(" assay ", STRONG)
        text.append("  champion ", DIM)
        text.append(short(status.aliases.get("champion")), STRONG)
        canary = status.aliases.get("canary")
        if canary is not None:
            text.append("  canary ", DIM)
            text.append(short(canary), CARE)
        candidate = status.aliases.get("candidate")
        if candidate is not None:
            text.append("  candidate ", DIM)
            text.append(short(candidate), CARE)
        text.append("  ")
        text.append_text(_doing(status))
        if status.next_cycle:
            text.append(f"  next {clock(status.next_cycle)} UTC", DIM)
        self.show(text)


def _doing(status: Status) -> Text:
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


class CyclePanel(PlainText):
    def show_cycle(self, snapshot: StatusSnapshot) -> None:
        self.show(cycle_text(snapshot, max(40, self.content_size.width)))


class RecordTable(DataTable[Text]):
    """Rows with keys: when they change, the cursor stays on its record."""

    def __init__(self, table: Table) -> None:
        super().__init__(id=table.name, cursor_type="row", cell_padding=1, show_cursor=True)
        self.table = table
        self._shown: tuple[Row, ...] = ()
        self.border_title = table.name

    def on_mount(self) -> None:
        for name, width in self.table.columns:
            self.add_column(Text(name, DIM), key=name, width=width)

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
                self.add_row(*row.cells, key=row.key)
            keys = [row.key for row in rows]
            if selected in keys and not at_top:
                self.move_cursor(row=keys.index(selected), animate=False)


class Detail(VerticalScroll):
    """The record under the cursor, whole."""

    def compose(self) -> ComposeResult:
        yield PlainText(id="detail-text")

    def show_detail(self, text: Text, *, moved: bool) -> None:
        """`moved`: it is another record now, so reading begins at its top."""
        self.query_one("#detail-text", PlainText).show(text)
        if moved:
            self.scroll_home(animate=False)


class Absent(Vertical):
    """The page that is there while the daemon is not."""

    def compose(self) -> ComposeResult:
        yield PlainText("Asking the daemon …", id="absent-text")

    def show_error(self, error: ApiError, socket: Path, retry_seconds: float) -> None:
        text = Text()
        if isinstance(error, DaemonNotRunning):
            text.append("The daemon is not running.\n\n", STRONG)
            text.append_text(plain(f"Nobody listens on {socket}", DIM))
            text.append("\n\nStart it in another terminal:\n\n")
            text.append("    assay serve\n", STRONG)
            text.append("\nWith another data folder: add --data DIR, there and here.\n", DIM)
        else:
            text.append("The daemon does not answer.\n\n", STRONG)
            text.append_text(plain(f"{error}\n\n{error.hint}\n", lines=True))
        text.append(f"\nTrying again every {retry_seconds:g} s. q quits.", DIM)
        self.query_one("#absent-text", PlainText).show(text)
