"""The screen Rollouts: the model's attempts, their verdicts, and each conversation in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from appliance.client import ApiClient, Outcome, Purpose, RolloutFilter, RolloutView, Status, ToolStatus
from tui.screens.conversation import Conversations, rollout_text
from tui.widgets.signs import VERDICTS, signed
from tui.widgets.table_pane import PAGE, TablePane
from tui.widgets.text import BAD, CARE, DIM, Row, Table, plain
from tui.widgets.view import ApiQuestion

FIELDS = ("family", "verdict", "purpose", "cycle", "job", "step")
HINT = "pass fail hack infra, train validation evaluation job, family=… cycle=… job=… step=…"
_WORDS = {"pass": Outcome.PASS, "fail": Outcome.FAIL, "hack": Outcome.HACK_SUSPECTED, "infra": Outcome.INFRA_ERROR}
_VERDICTS = {**_WORDS, **{one.value: one for one in Outcome}}
_PURPOSES = {one.value: one for one in Purpose}


def read_filter(text: str) -> RolloutFilter | str:
    """Parses the typed filter of the list of rollouts; returns a message that says what to correct if it is invalid."""
    given: dict[str, object] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals:
            name = "verdict" if word in _VERDICTS else "purpose" if word in _PURPOSES else "family"
            value = word
        if name not in FIELDS or not value:
            return f"invalid filter {word!r}: use {HINT}"
        if name in given:
            return f"{name} is given twice: keep one"
        given[name] = value
    if "verdict" in given:
        verdict = _VERDICTS.get(str(given.pop("verdict")))
        if verdict is None:
            return f"invalid verdict: use one of {', '.join(_WORDS)}"
        given["outcome"] = verdict
    if "purpose" in given and given["purpose"] not in _PURPOSES:
        return f"invalid purpose: use one of {', '.join(_PURPOSES)}"
    if "step" in given and not (str(given["step"]).isascii() and str(given["step"]).isdigit()):
        return "invalid step: use a whole number"
    return RolloutFilter.model_validate(given, strict=False)


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
