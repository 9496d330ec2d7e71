"""The screen Checkpoints: each model with its aliases, decision and lineage, and its evaluation item by item.

Invariants: an item with an infrastructure error on either side counts for neither, as in the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer

from appliance.client import ApiClient, ApiError, CheckpointView, Decision, Evaluation, ItemResult, ModelLineage, Status
from tui.screens.history import HistoryScreen
from tui.widgets.panels import Detail, RecordTable
from tui.widgets.signs import DECISIONS, decision_detail, figure_cell, finding_of, signed, weakest_family
from tui.widgets.table_pane import PAGE, TablePane
from tui.widgets.text import (
    BAD,
    CARE,
    DIM,
    GOOD,
    STRONG,
    Row,
    Table,
    add_field,
    percent,
    plain,
    short,
    wilson,
    with_keys,
)
from tui.widgets.view import ApiQuestion


def row(view: CheckpointView) -> Row:
    """Returns a model's table row with the main gate figures; the detail view has all gates with their reasons."""
    decision = view.decision
    return Row(
        view.checkpoint.manifest,
        (
            plain(short(view.checkpoint.manifest)),
            plain(", ".join(view.aliases) or "-"),
            plain("-", DIM) if decision is None else signed(DECISIONS[decision.outcome]),
            figure_cell(finding_of(decision, "improvement")),
            figure_cell(weakest_family(decision)),
            figure_cell(finding_of(decision, "approval")),
            figure_cell(finding_of(decision, "integrity")),
            figure_cell(finding_of(decision, "freshness")),
        ),
    )


def detail(view: CheckpointView, status: Status | None = None) -> Text:
    """Describes a model: origin, aliases, metrics and decision. `status` adds the canary in progress and the
    candidate's waiting reason."""
    checkpoint = view.checkpoint
    text = plain(checkpoint.manifest, STRONG)
    origin = f"{checkpoint.stage}, step {checkpoint.step}, cycle {checkpoint.cycle}, from {short(checkpoint.parent)}"
    text.append("\n")
    text.append_text(plain(f"{origin}, made {checkpoint.created}", DIM))
    text.append("\n")
    add_field(text, "in use as", ", ".join(view.aliases))
    canary = status.canary if status is not None else None
    if canary is not None and canary.canary.candidate == checkpoint.manifest:
        add_field(text, "beside the champion", canary.summary)
    for name, value in checkpoint.metrics.items():
        add_field(text, name.replace("_", " "), f"{value:.4g}")
    if status is not None and status.candidate_waits_for and status.aliases.get("candidate") == checkpoint.manifest:
        text.append("now  ", DIM)
        text.append_text(plain(with_keys(status.candidate_waits_for), CARE))
        text.append("\n")
    if view.decision is None:
        add_field(text, "decision", "none yet: a cycle evaluates its candidate and decides")
    else:
        text.append_text(decision_detail(view.decision))
    return text


def lineage_text(lineage: ModelLineage) -> Text:
    """Lists the model and its ancestors, each with the decision about it."""
    text = plain("\nlineage\n", DIM, lines=True)
    for place, view in enumerate(lineage.models):
        one = view.checkpoint
        text.append("  " if place == 0 else f"  {'   ' * min(place - 1, 6)}└─ ", DIM)
        text.append_text(plain(short(one.manifest), STRONG))
        text.append_text(plain(f"  {one.stage}, step {one.step}, {one.cycle}", DIM))
        if view.decision is not None:
            text.append("  ")
            text.append_text(signed(DECISIONS[view.decision.outcome]))
        if view.aliases:
            text.append_text(plain(f"  {', '.join(view.aliases)}", GOOD))
        text.append("\n")
    if lineage.cut:
        text.append("  and more: assay model provenance has all of it\n", DIM)
    return text


MODELS = Table(
    name="models",
    columns=(
        ("model", 8),
        ("in use as", 9),
        ("decision", 10),
        ("gain", 7),
        ("weakest", 7),
        ("signed", 6),
        ("errors", 7),
        ("fresh", 7),
    ),
    empty="No model yet. Each night adds one, with the decision about it: `assay cycle start` begins a night.",
    row=row,
    detail=detail,
)


class ModelsPane(TablePane):
    TABLE = MODELS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "app.judge('approve')", "approve"),
        Binding("r", "app.judge('reject')", "reject"),
        Binding("b", "app.rollback", "roll back"),
        Binding("e", "evaluation", "items"),
        Binding("h", "history", "history"),
    ]
    ON_RECORD = frozenset({"evaluation"})
    KEYS = (
        *TablePane.KEYS,
        ("e", "show its evaluation beside the champion, item by item"),
        ("h", "show what each promotion gained and lost, by taskset"),
    )

    def page(self, client: ApiClient, status: Status, before: str | None) -> Sequence[CheckpointView]:
        return client.checkpoints(before=before, limit=PAGE)

    def detail_question(self, key: str) -> ApiQuestion | None:
        return ApiQuestion(("lineage", key), lambda client, _: client.lineage(key, limit=12))

    def detail(self, record: Any, status: Status, more: Any) -> Text:
        text = detail(record, status)
        if more is not None:
            text.append_text(lineage_text(more))
        return text

    def line(self, status: Status) -> Text:
        text = plain("newest first", DIM)
        candidate = status.aliases.get("candidate")
        if candidate is not None:
            waits = with_keys(status.candidate_waits_for) or "is the candidate"
            text.append_text(plain(f"  {short(candidate)} {waits}", CARE))
        return text

    def action_evaluation(self) -> None:
        decision = self.selected.decision if self.selected is not None else None
        if decision is None:
            self.host.say("This model has no decision, and so no evaluation.")
        else:
            self.app.push_screen(EvaluationScreen(self.host.client(), decision))

    def action_history(self) -> None:
        self.app.push_screen(HistoryScreen(self.host.client()))


CHANGES = {
    (False, True): ("+ gained", GOOD),
    (True, False): ("- lost", BAD),
    (True, True): ("= both", DIM),
    (False, False): ("· neither", DIM),
}
SHOWN = ("all", "gained", "lost", "both", "neither", "broken")


class ItemPair(NamedTuple):
    candidate: ItemResult
    champion: ItemResult

    @property
    def change(self) -> tuple[str, str]:
        before, after = self.champion.passed, self.candidate.passed
        return ("~ broken", CARE) if before is None or after is None else CHANGES[before, after]


def pairs_of(evaluation: Evaluation) -> list[ItemPair]:
    """Pairs both models' results on each sealed question that both answered, in the order of the sealed set."""
    champion = {item.task: item for item in evaluation.champion.items}
    return [ItemPair(item, champion[item.task]) for item in evaluation.candidate.items if item.task in champion]


def summary_text(pairs: Sequence[ItemPair]) -> Text:
    """Counts gained and lost items over all tasksets, then shows both models' passes for each taskset. A taskset's line
    has the candidate's share with its 95 % interval, and the difference; broken items are left out."""
    text = Text()
    counts = {name: sum(one.change[0].endswith(name) for one in pairs) for name in SHOWN[1:]}
    text.append_text(plain(f"{len(pairs)} items: ", STRONG))
    text.append_text(plain(", ".join(f"{count} {name}" for name, count in counts.items() if count)))
    text.append("\n")
    families = sorted({one.candidate.family for one in pairs})
    for family in families:
        own = [one for one in pairs if one.candidate.family == family and not one.change[0].endswith("broken")]
        before, after = (sum(bool(getattr(one, side).passed) for one in own) for side in ("champion", "candidate"))
        low, high = wilson(after, len(own))
        text.append_text(plain(f"  {family:<14} ", DIM, limit=20))
        if not own:
            text.append("no item that both answered\n", DIM)
            continue
        text.append(f"{before:>4} → {after:>4} of {len(own):<4}", STRONG)
        text.append(f"  {percent(after / len(own)):>7} [{percent(low)}, {percent(high)}]  ")
        gained = after - before
        text.append(f"{gained:+d}\n", GOOD if gained > 0 else BAD if gained < 0 else DIM)
    return text


def _row(pair: ItemPair) -> Row:
    item = pair.candidate
    sides = [
        ("~ broken", CARE) if one.passed is None else ("✓ right", GOOD) if one.passed else ("✗ wrong", BAD)
        for one in (pair.champion, pair.candidate)
    ]
    calls = f"{pair.champion.calls} → {item.calls}"
    return Row(
        item.task,
        (
            plain(*pair.change),
            plain(item.family, limit=14),
            *(plain(*side) for side in sides),
            plain(calls, DIM),
            plain(item.task, DIM, limit=24),
        ),
    )


ITEMS = Table(
    name="items",
    columns=(("change", 9), ("taskset", 14), ("champion", 8), ("candidate", 9), ("calls", 8), ("item", 24)),
    empty="No item.",
    row=_row,
    detail=lambda pair, _status: plain(pair.candidate.task),
)


class EvaluationScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back"),
        Binding("g", "show('gained')", "gained"),
        Binding("l", "show('lost')", "lost"),
        Binding("a,e", "show('all')", "all"),
        Binding("tab", "app.focus_next", "table, gates"),
    ]

    def __init__(self, client: ApiClient, decision: Decision) -> None:
        super().__init__()
        self._client = client
        self._decision = decision
        self._pairs: list[ItemPair] = []

    def compose(self) -> ComposeResult:
        with Vertical(id="evaluation") as whole:
            whole.border_title = (
                f"candidate {short(self._decision.candidate)} beside champion {short(self._decision.champion)}"
            )
            yield Detail(id="evaluation-summary")
            yield RecordTable(ITEMS)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        if (table := self.query_one_optional(RecordTable)) is None:
            return  # the program ends while it opens
        table.focus()
        self._read()

    @work(thread=True)
    def _read(self) -> None:
        try:
            found: Evaluation | ApiError = self._client.evaluation(self._decision.evaluation)
        except ApiError as error:
            found = error
        self.app.call_from_thread(self._arrived, found)

    def _arrived(self, found: Evaluation | ApiError) -> None:
        if not self.is_mounted:
            return
        if isinstance(found, ApiError):
            text = plain(f"{found}: {found.hint}\n\n", BAD, lines=True)
        else:
            self._pairs = pairs_of(found)
            text = summary_text(self._pairs)
        text.append_text(decision_detail(self._decision))
        self.query_one("#evaluation-summary", Detail).show_detail(text, moved=True)
        self.action_show("all")

    def action_show(self, which: str) -> None:
        rows = [_row(one) for one in self._pairs if which == "all" or one.change[0].endswith(which)]
        self.query_one(RecordTable).show_rows(rows)

    def action_leave(self) -> None:
        self.dismiss(None)
