"""The screen Rollouts: the model's attempts, their verdicts, and each conversation in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from appliance.client import ApiClient, RolloutFilter, RolloutView, Status, ToolStatus
from tui.screens.conversation import Conversations, rollout_text
from tui.screens.rollout_filter import HINT, read_filter
from tui.widgets.signs import VERDICTS, signed
from tui.widgets.table import Row, Table
from tui.widgets.table_pane import PAGE, TablePane
from tui.widgets.text import BAD, CARE, DIM, plain
from tui.widgets.view import ApiQuestion


def row(view: RolloutView) -> Row:
    tiers = [call.tier for call in view.calls if call.tier is not None]
    answer = plain("none", DIM) if view.answer is None else plain(view.answer, limit=10)
    return Row(
        view.id,
        (
            signed(VERDICTS[view.verdict.outcome]),
            plain(view.family, limit=13),
            counted([call.status for call in view.calls]),
            plain(tiers[-1].value if tiers else "-", DIM),
            answer,
            plain(view.purpose.value, DIM),
        ),
    )


def counted(statuses: Sequence[ToolStatus]) -> Text:
    """Formats a rollout's number of tool calls as `3`, or as `3 1✗` if one failed."""
    failed = sum(status.failed for status in statuses)
    text = Text(str(len(statuses)))
    if failed:
        text.append(f" {failed}✗", BAD)
    return text


ROLLOUTS = Table(
    name="rollouts",
    columns=(("verdict", 7), ("taskset", 13), ("calls", 5), ("tier", 7), ("answer", 10), ("for", 10)),
    empty="No rollout yet: `assay cycle start` begins a night.",
    row=row,
    detail=lambda view, _status: rollout_text(view),
)


class RolloutsPane(TablePane):
    TABLE = ROLLOUTS
    FILTER = HINT
    BINDINGS: ClassVar[list[BindingType]] = [Binding("m", "mark", "mark"), Binding("v", "beside", "side by side")]
    ON_RECORD = frozenset({"mark", "beside"})
    KEYS = (
        *TablePane.KEYS,
        ("m", "mark the selected rollout"),
        ("v", "show the marked and the selected rollout side by side"),
        ("n, p", "in a conversation: next and previous in the tree"),
    )

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._where = RolloutFilter()
        self._marked = ""

    def page(self, client: ApiClient, status: Status, before: str | None) -> Sequence[RolloutView]:
        return client.rollouts(self._where.model_copy(update={"before": before}), limit=PAGE)

    def page_key(self) -> object:
        return self._where

    def detail_question(self, key: str) -> ApiQuestion | None:
        return ApiQuestion(("rollout", key), lambda client, _: client.rollout(key), fixed=True)

    def detail(self, record: Any, status: Status, more: Any) -> Text:
        return rollout_text(record, more)

    def line(self, status: Status) -> Text:
        text = plain("newest first", DIM)
        if self._marked:
            text.append_text(plain(f"  marked …{self._marked[-24:]}", CARE))
        return text

    @property
    def filters_rows(self) -> bool:
        return False

    def filter_by(self, text: str) -> str:
        found = read_filter(text)
        if isinstance(found, str):
            return found
        self._where = found
        return super().filter_by(text)

    def action_open_record(self) -> None:
        if self.table.selected is not None:
            self.app.push_screen(Conversations(self.host.client(), (self.table.selected,)))

    def action_mark(self) -> None:
        key = self.table.selected
        self._marked = "" if key is None or key == self._marked else key
        if self._status is not None:
            self._show_line()

    def action_beside(self) -> None:
        key = self.table.selected
        if not self._marked or key in (None, self._marked):
            self.host.say("Mark a rollout with m, select another, and press v.")
        else:
            self.app.push_screen(Conversations(self.host.client(), (self._marked, str(key))))
