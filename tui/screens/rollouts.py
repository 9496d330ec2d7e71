"""The screen Rollouts: the model's attempts, their verdicts, and each conversation in full.

Invariants: every word of a model, guest or verifier is plain text behind a margin.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer

from appliance.client import (
    ApiClient,
    ApiError,
    Outcome,
    Purpose,
    Role,
    RolloutDetail,
    RolloutFilter,
    RolloutView,
    Status,
    ToolCall,
    ToolStatus,
    TreeRollout,
    TurnText,
)
from tui.widgets.panels import PlainText
from tui.widgets.signs import VERDICTS, signed
from tui.widgets.table_pane import PAGE, TablePane
from tui.widgets.text import (
    BAD,
    CARE,
    DIM,
    GOOD,
    STRONG,
    Row,
    Table,
    add_block,
    add_field,
    markup_safe,
    percent,
    plain,
    short,
)
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


WHO = {Role.USER: ("task", DIM), Role.ASSISTANT: ("model", STRONG), Role.TOOL: ("tool", DIM)}


def rollout_text(view: RolloutView, detail: RolloutDetail | None = None) -> Text:
    """Describes a rollout: with the conversation if it was read, else with its tool calls."""
    text = signed(VERDICTS[view.verdict.outcome])
    text.append_text(
        plain(f"  {view.family}, {view.purpose.value}, step {view.step}, sample {view.sample}\n", DIM, lines=True)
    )
    add_field(text, "question", view.question or f"not kept; task {view.task}")
    none = f"none: {view.answers} final answers, ended by {view.ended.value}"
    add_field(text, "answer", none if view.answer is None else view.answer or " ")
    verdict = view.verdict
    by = f"{verdict.verifier} {verdict.version}, score {percent(verdict.score)}"
    add_field(text, "verdict", f"{verdict.reason}  ({by})")
    if verdict.evidence:
        add_field(text, "evidence", json.dumps(verdict.evidence, ensure_ascii=False, sort_keys=True))
    weights = short(view.weights) if len(view.weights) == 64 else view.weights
    tokens = f"{view.tokens} tokens, " if view.tokens else ""  # not kept any more, which is said below
    add_field(
        text,
        "cost",
        f"{view.turns} turn{'' if view.turns == 1 else 's'}, {tokens}{view.seconds:.2f} s, weights {weights}",
    )
    add_field(text, "used", _used(view))
    add_field(text, "rollout", view.id)
    if detail is not None and detail.tree:
        text.append_text(tree_text(detail.tree, view.id))
    if detail is not None and detail.turns:
        _add_turns(text, detail)
        return text
    if detail is not None and detail.unread:
        add_field(text, "no text", detail.unread)
    for number, call in enumerate(view.calls, 1):
        _add_call(text, number, call)
    return text


def tree_text(tree: tuple[TreeRollout, ...], here: str) -> Text:
    """Draws a tree of rollouts, the attempt and its branches, each with verdict, sampled tokens and advantage."""
    text = plain("\nthe attempt and its branches\n", DIM, lines=True)
    for place, one in enumerate(tree):
        limb = "" if one.leaves_at is None else "└─ " if place == len(tree) - 1 else "├─ "
        text.append("▸ " if one.id == here else "  ", STRONG)
        text.append(limb, DIM)
        text.append_text(signed(VERDICTS[one.outcome]))
        where = "" if one.leaves_at is None else f"  from turn {one.leaves_at}, {one.shared_tokens} tokens shared"
        own = "" if one.advantage is None else f", advantage {one.advantage:+.3f}"
        text.append_text(plain(f"{where}  {one.sampled_tokens} sampled{own}  …{one.id[-28:]}"))
        text.append("\n")
    return text


def _add_turns(text: Text, detail: RolloutDetail) -> None:
    calls = iter(detail.rollout.calls)
    for turn in detail.turns:
        name, style = WHO[turn.role]
        text.append(f"\n── {name} ", style)
        if turn.role is Role.TOOL and (call := next(calls, None)) is not None:
            text.append(call.status.value, BAD if call.status.failed else GOOD)
            text.append(_ran(call), DIM)
        text.append("\n")
        _add_turn(text, turn)


def _add_turn(text: Text, turn: TurnText) -> None:
    for line in plain(turn.text.strip("\n"), limit=20_000, lines=True).plain.split("\n"):
        text.append("│ ", DIM)
        text.append(f"{line}\n", "" if turn.role is Role.ASSISTANT else DIM)


def _ran(call: ToolCall) -> str:
    return f" in {call.tier.value}, {1000 * call.seconds:.1f} ms" if call.tier is not None else ""


def _add_call(text: Text, number: int, call: ToolCall) -> None:
    text.append(f"call {number}  ", DIM)
    text.append(call.status.value, BAD if call.status.failed else GOOD)
    text.append(f"{_ran(call)}\n", DIM)
    add_block(text, call.asked if call.code or call.arguments else call.tool, "> ")
    if call.output:
        add_block(text, call.output, "  ")
    if call.error:
        add_block(text, call.error, "  ", BAD)


def _used(view: RolloutView) -> str:
    """Describes the resource use of a rollout's session, as the host measured it; empty without calls."""
    usage = view.usage
    if not usage.calls:
        return ""
    parts = [
        f"{usage.calls} call{'' if usage.calls == 1 else 's'} in {usage.seconds:.2f} s",
        f"{usage.output_bytes:,} bytes printed",
    ]
    if usage.moves:
        parts.append(f"moved {usage.moves} times")
    if usage.cpu_seconds is not None:
        parts.append(f"{usage.cpu_seconds:.2f} s of processor")
    if usage.peak_memory_mib is not None:
        parts.append(f"{usage.peak_memory_mib:.0f} MiB at most")
    return ", ".join(parts)


class Conversations(ModalScreen[None]):
    """Shows one rollout on the whole screen, or two side by side."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "leave", "back"),
        Binding("right_square_bracket,n", "along(1)", "next in tree", key_display="n"),
        Binding("left_square_bracket,p", "along(-1)", "previous in tree", key_display="p"),
        Binding("tab", "other", "other side"),
    ]

    def __init__(self, client: ApiClient, rollouts: tuple[str, ...]) -> None:
        super().__init__()
        self._client = client
        self._rollouts = [*rollouts]
        self._trees: dict[int, tuple[TreeRollout, ...]] = {}

    def compose(self) -> ComposeResult:
        with Horizontal(id="conversations"):
            for side in range(len(self._rollouts)):
                with VerticalScroll(id=f"side-{side}", classes="side"):
                    yield PlainText("reading …")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        if self.query_one_optional("#side-0") is None:
            return  # the program ends while it opens
        self.query_one("#side-0").focus()
        for side in range(len(self._rollouts)):
            self._read(side, self._rollouts[side])

    @work(thread=True)
    def _read(self, side: int, rollout: str) -> None:
        try:
            found: RolloutDetail | ApiError = self._client.rollout(rollout)
        except ApiError as error:
            found = error
        self.app.call_from_thread(self._show, side, rollout, found)

    def _show(self, side: int, rollout: str, found: RolloutDetail | ApiError) -> None:
        if not self.is_mounted or self._rollouts[side] != rollout:
            return
        pane = self.query_one(f"#side-{side}", VerticalScroll)
        if isinstance(found, ApiError):
            pane.query_one(PlainText).show(plain(f"{found}: {found.hint}", BAD, lines=True))
            return
        self._trees[side] = found.tree
        pane.border_title = markup_safe(f"{VERDICTS[found.rollout.verdict.outcome][0]}  {found.rollout.family}")
        pane.query_one(PlainText).show(rollout_text(found.rollout, found))
        pane.scroll_home(animate=False)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enables the keys for the other rollout and for the tree only if there is one."""
        if action == "other":
            return len(self._rollouts) > 1
        return action != "along" or any(len(tree) > 1 for tree in self._trees.values())

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_other(self) -> None:
        self.focus_next(".side")

    def action_along(self, step: int) -> None:
        """Moves to the next or previous rollout of the tree."""
        side = next((side for side in range(len(self._rollouts)) if self.query_one(f"#side-{side}").has_focus), 0)
        names = [one.id for one in self._trees.get(side, ())]
        if self._rollouts[side] in names:
            self._rollouts[side] = names[(names.index(self._rollouts[side]) + step) % len(names)]
            self._read(side, self._rollouts[side])
