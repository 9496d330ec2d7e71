"""The screen Checkpoints: each model with its aliases, decision, lineage and evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from appliance.client import ApiClient, CheckpointView, ModelLineage, Status
from tui.screens.evaluation import EvaluationScreen
from tui.widgets.signs import DECISIONS, decision_detail, figure_cell, finding_of, signed, weakest_family
from tui.widgets.table_pane import PAGE, TablePane
from tui.widgets.text import CARE, DIM, GOOD, STRONG, Row, Table, add_field, plain, short
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
        text.append_text(plain(status.candidate_waits_for, CARE))
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
    empty="No model yet: the first cycle makes one.",
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
    ]
    ON_RECORD = frozenset({"evaluation"})
    KEYS = (*TablePane.KEYS, ("e", "show its evaluation beside the champion, item by item"))

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
            waits = status.candidate_waits_for or "is the candidate"
            text.append_text(plain(f"  {short(candidate)} {waits}", CARE))
        return text

    def action_evaluation(self) -> None:
        decision = self.selected.decision if self.selected is not None else None
        if decision is None:
            self.host.say("This model has no decision, and so no evaluation.")
        else:
            self.app.push_screen(EvaluationScreen(self.host.client(), decision))
