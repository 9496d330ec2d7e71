"""A screen with a paged table of records and the selected record beside it.

Invariants: a page is one question, regardless of its number of records; details are requested only if the page lacks
them; enter shows the record on the whole screen.
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
from tui.widgets.text import DIM, Row, Table, plain
from tui.widgets.view import Answers, ApiQuestion, Pane

PAGE = 100
"""Records per page."""
WIDE_SHARE = 66
"""Maximum width of the table, in percent of the screen; must match assay.tcss."""
SCROLLBAR = 1


class TablePane(Pane):
    """Screen with the table `TABLE` and a text about the selected record. Subclasses implement `page`, and
    `detail_question` if a record needs more."""

    TABLE: ClassVar[Table]
    PAGED: ClassVar[bool] = True
    """True if older pages can exist."""
    SECONDS: ClassVar[float] = 0.0
    ON_RECORD: ClassVar[frozenset[str]] = frozenset()
    """Actions on the selected record; their keys are disabled without one."""
    FILTER = "text that a row has"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_record", "read"),
        Binding("right_square_bracket,n", "older", "older", key_display="n"),
        Binding("left_square_bracket,p", "newer", "newer", key_display="p"),
    ]
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("up, down", "select a record"),
        ("enter", "show the record on the whole screen"),
        ("tab", "move between the table and the text, which then scrolls"),
        ("n, p", "next page (older records) and previous page"),
    )

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._before: list[str] = []
        self._records: Sequence[Any] = ()
        self._rows: tuple[Sequence[Any], list[Row]] = (), []
        """The records, and the table rows made from them."""
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
        """Reads up to `PAGE` of the table's records, newest first, older than `before`. Raises ApiError."""
        raise LookupError(before)

    def page_key(self) -> object:
        """Returns everything beside its position that identifies a page of the table, such as a filter."""
        return ""

    def detail_question(self, key: str) -> ApiQuestion | None:
        """Returns the question to the daemon for more about the selected record; None if its row suffices."""
        return None

    def detail(self, record: Any, status: Status, more: Any) -> Text:
        """Describes a record as text; `more` is the answer to `detail_question`, or None."""
        return self.TABLE.detail(record, status)

    def line(self, status: Status) -> Text:
        """Returns the text above the table."""
        return plain("")

    # what happens
    @property
    def table(self) -> RecordTable:
        return self.query_one(RecordTable)

    @property
    def selected(self) -> Any:
        """Record under the table's cursor, or None."""
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
        """Shows those records of the page in the table that match the filter."""
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
        """True if the filter is applied here, to the rows of the page; False if the daemon applies it."""
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
            nothing = f"nothing on this page matches{'; n searches the next' if more else ''}"
            nothing = nothing if self.filters_rows and (more or self._before) else "nothing matches"
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
        """Enables paging and record keys only if there are pages and records."""
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
