"""A screen with a table of records, page by page, and the record under the cursor beside it.

What always holds: a page is one question, however many records there are; the detail is asked for only where the page
does not have it; enter shows it on the whole screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from appliance.client import ApiClient, Status
from tui.widgets.dialogs import ReadingScreen
from tui.widgets.panels import WIDE, Detail, PlainText, RecordTable
from tui.widgets.table import Row, Table
from tui.widgets.text import DIM, plain
from tui.widgets.view import Answers, ApiQuestion, Pane

PAGE = 100
"""Records."""
WIDE_SHARE = 66
"""Per cent of the width that the table has there at most, as assay.tcss says."""
SCROLLBAR = 1


class TablePane(Pane):
    """`TABLE` says how records look; `page` reads them; `detail_question` may ask for more of one."""

    TABLE: ClassVar[Table]
    PAGED: ClassVar[bool] = True
    """Whether there are older pages."""
    SECONDS: ClassVar[float] = 0.0
    ON_RECORD: ClassVar[frozenset[str]] = frozenset()
    """Actions on the record under the cursor: where there is none, there are no keys for them."""
    FILTER = "text that a row has"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_record", "read"),
        Binding("right_square_bracket,n", "older", "older", key_display="n"),
        Binding("left_square_bracket,p", "newer", "newer", key_display="p"),
    ]
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("up, down", "another record"),
        ("enter", "the record on the whole screen"),
        ("tab", "between the table and the text beside it, which then scrolls"),
        ("n, p", "the next page, of older records, and the one before"),
    )

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._before: list[str] = []
        self._records: Sequence[Any] = ()
        self._rows: tuple[Sequence[Any], list[Row]] = (), []
        """Of which records these are the rows."""
        self._status: Status | None = None
        self._answers: Answers = {}
        self._detailed: str | None = None
        self._pages = (False, 0, False)

    def compose(self) -> ComposeResult:
        yield PlainText(classes="pane-line")
        with Horizontal(classes="pane-body"):
            yield RecordTable(self.TABLE)
            yield Detail()

    def on_resize(self) -> None:
        width = self.size.width
        if self._status is not None:
            self._show_line()
        self.table.fit((width * WIDE_SHARE // 100 if self.app.size.width >= WIDE else width) - SCROLLBAR)

    # what subclasses say
    def page(self, client: ApiClient, status: Status, before: str | None) -> Sequence[Any]:
        """Newest first, at most `PAGE`; those before that record. Raises ApiError."""
        raise LookupError(before)

    def page_key(self) -> object:
        """What else than its place makes a page another one."""
        return ""

    def detail_question(self, key: str) -> ApiQuestion | None:
        """What is to be read about the record under the cursor beside its row."""
        return None

    def detail(self, record: Any, status: Status, more: Any) -> Text:
        """`more` is the answer to that question, None as long as there is none."""
        return self.TABLE.detail(record, status)

    def line(self, status: Status) -> Text:
        """What stands over the table."""
        return plain("")

    # what happens
    @property
    def table(self) -> RecordTable:
        return self.query_one(RecordTable)

    @property
    def selected(self) -> Any:
        """The record under the cursor."""
        key = self.table.selected
        return next((one for one, row in zip(*self._rows, strict=True) if row.key == key), None)

    def questions(self) -> Mapping[str, ApiQuestion]:
        before = self._before[-1] if self._before else None
        asked = {
            "page": ApiQuestion(
                (self.TABLE.name, self.page_key(), before),
                lambda client, status: self.page(client, status, before),
                seconds=self.SECONDS,
            )
        }
        key = self.table.selected if self.is_mounted else None
        more = self.detail_question(key) if key is not None else None
        return asked if more is None else {**asked, "detail": more}

    def show(self, status: Status, answers: Answers) -> None:
        self._status, self._answers = status, answers
        self._records = answers.get("page", self._records if "page" in answers else ())
        self.show_records()

    def show_records(self) -> None:
        """Shows those that fit the filter."""
        assert self._status is not None
        if self._records is not self._rows[0]:
            self._rows = self._records, [self.TABLE.row(one) for one in self._records]
        rows = self._rows[1]
        wanted = self.filtered_by.casefold() if self.filters_rows else ""
        self.table.show_rows(
            [row for row in rows if wanted in " ".join(cell.plain for cell in row.cells).casefold()] if wanted else rows
        )
        self._show_line()
        self.show_detail()
        pages = (len(self._records) == PAGE, len(self._before), bool(self.table.rows_shown))
        if pages != self._pages:
            self._pages = pages
            self.refresh_bindings()

    @property
    def filters_rows(self) -> bool:
        """Whether the filter is looked for in the rows of the page, and not by the daemon."""
        return True

    def _show_line(self) -> None:
        assert self._status is not None
        text, more = self.line(self._status), Text()
        if self.filtered_by:
            more.append_text(plain(f"  / {self.filtered_by}", "bold", limit=60))
        if self._before:
            more.append(f"  page {len(self._before) + 1}", DIM)
        line = self.query_one(".pane-line", PlainText)
        width = line.content_size.width or self.app.size.width - 2
        text.truncate(max(0, width - more.cell_len), overflow="ellipsis")
        line.show(text.append_text(more))

    def show_detail(self) -> None:
        if self._status is None:
            return
        record, key = self.selected, self.table.selected
        moved, self._detailed = key != self._detailed, key
        if record is None:
            waits = "page" not in self._answers
            more = self.PAGED and len(self._records) == PAGE
            nothing = f"nothing on this page fits{'; n looks on the next' if more else ''}"
            nothing = nothing if self.filters_rows and (more or self._before) else "nothing fits"
            text = plain("reading …" if waits else nothing if self.filtered_by else self.TABLE.empty, DIM)
        else:
            text = self.detail(record, self._status, self._answers.get("detail"))
        self.query_one(Detail).show_detail(text, moved=moved)

    @on(RecordTable.RowHighlighted)
    def _highlighted(self) -> None:
        if self.table.selected != self._detailed:
            self._answers = {name: answer for name, answer in self._answers.items() if name != "detail"}
        self.show_detail()
        self.host.ask()

    @on(RecordTable.RowSelected)
    def _opened(self) -> None:
        self.action_open_record()

    def action_open_record(self) -> None:
        if self._status is not None and self.selected is not None:
            text = self.detail(self.selected, self._status, self._answers.get("detail"))
            self.app.push_screen(ReadingScreen(self.TABLE.name, text))

    def filter_by(self, text: str) -> str:
        super().filter_by(text)
        self._before = []
        if self._status is not None:
            self.show_records()
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """There are only keys for pages and records that there are."""
        if action in self.ON_RECORD and not self._pages[-1]:
            return False
        if action == "older":
            return self.PAGED and len(self._records) == PAGE
        if action == "newer":
            return bool(self._before)
        return super().check_action(action, parameters)

    def action_older(self) -> None:
        if self._records:
            self._before.append(self.TABLE.row(self._records[-1]).key)
            self._turn()

    def action_newer(self) -> None:
        if self._before:
            self._before.pop()
            self._turn()

    def _turn(self) -> None:
        self.table.move_cursor(row=0, animate=False)
        self.host.ask()
