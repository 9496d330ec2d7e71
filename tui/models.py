"""The table of models: each checkpoint, what it is in service as, and the gates' figures of its newest decision."""

from __future__ import annotations

from rich.text import Text

from appliance.client import CheckpointView, Status
from tui.decisions import decision_detail, figure_cell, finding_of, weakest_family
from tui.table import Row, Table
from tui.text import DECISIONS, DIM, STRONG, add_field, plain, short, signed

MOST = 30


def row(view: CheckpointView) -> Row:
    """A gate's figure stands under a short head; the detail has all of them with their reasons."""
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
            plain(view.checkpoint.stage, DIM),
        ),
    )


def detail(view: CheckpointView, status: Status | None = None) -> Text:
    """`status` says which model is tried beside the champion now."""
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
    if view.decision is None:
        add_field(text, "decision", "none yet: a cycle evaluates its candidate and decides")
    else:
        text.append_text(decision_detail(view.decision))
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
        ("age", 7),
        ("stage", 10),
    ),
    side="right",
    empty="No model yet: the first cycle makes one.",
    fetch=lambda client: client.checkpoints(limit=MOST),
    row=row,
    detail=detail,
)
