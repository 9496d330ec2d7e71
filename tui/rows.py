"""Records as table rows: pure, one function for each table."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from appliance.client import CheckpointView, Decision, Finding, Job, RolloutView
from tui.marks import DECISIONS, DIM, GATES, JOBS, VERDICTS, call_marks, marked, plain, short

ROLLOUT_COLUMNS = (("verdict", 7), ("family", 11), ("calls", 5), ("tier", 7), ("answer", 10), ("for", 10))
MODEL_COLUMNS = (
    ("model", 8),
    ("as", 9),
    ("decision", 10),
    ("gain", 7),
    ("worst", 7),
    ("words", 5),
    ("infra", 7),
    ("age", 7),
    ("stage", 10),
)
JOB_COLUMNS = (("job", 8), ("kind", 8), ("prio", 4), ("state", 10), ("question", 36), ("now, or by", 20))


@dataclass(frozen=True)
class Row:
    key: str
    cells: tuple[Text, ...]


def rollout_row(view: RolloutView) -> Row:
    tiers = [call.tier for call in view.calls if call.tier is not None]
    answer = plain("none", DIM) if view.answer is None else plain(view.answer, limit=10)
    return Row(
        view.id,
        (
            marked(VERDICTS[view.verdict.outcome]),
            plain(view.family, limit=11),
            call_marks([call.status for call in view.calls]),
            plain(tiers[-1].value if tiers else "-", DIM),
            answer,
            plain(view.purpose.value, DIM),
        ),
    )


def model_row(view: CheckpointView) -> Row:
    """A gate's figure stands under its short name; the detail has all of them with their reasons."""
    decision = view.decision
    return Row(
        view.checkpoint.manifest,
        (
            plain(short(view.checkpoint.manifest)),
            plain(", ".join(view.aliases) or "-"),
            plain("-", DIM) if decision is None else marked(DECISIONS[decision.outcome]),
            _figure(_named(decision, "improvement")),
            _figure(_worst(decision)),
            _figure(_named(decision, "approval")),
            _figure(_named(decision, "integrity")),
            _figure(_named(decision, "freshness")),
            plain(view.checkpoint.stage, DIM),
        ),
    )


def job_row(job: Job) -> Row:
    return Row(
        job.id,
        (
            plain(job.id.removeprefix("job-")[:8]),
            plain(job.kind.value, DIM),
            plain(str(job.priority), DIM),
            marked(JOBS[job.state]),
            plain(job.question, limit=60),
            plain(job.step or job.solved_by, DIM, limit=40),
        ),
    )


def figure_text(finding: Finding) -> str:
    """`+31.2`, `0 people`, `1.2 hours`; `-` when the gate had nothing to measure."""
    if finding.figure is None:
        return "-"
    if finding.unit == "points":
        return f"{finding.figure:+.1f}"
    if finding.unit == "hours":
        return f"{finding.figure:.1f} h"
    if finding.unit == "percent":
        return f"{finding.figure:.1f} %"
    return f"{finding.figure:g}" if finding.unit == "people" else f"{finding.figure:.3g} {finding.unit}"


def _figure(finding: Finding | None) -> Text:
    if finding is None:
        return plain("-", DIM)
    sign, style = GATES[finding.outcome]
    figure = figure_text(finding)
    return plain(sign if figure == "-" else f"{sign} {figure}", style, limit=9)


def _named(decision: Decision | None, gate: str) -> Finding | None:
    return next((finding for finding in decision.findings if finding.gate == gate), None) if decision else None


def _worst(decision: Decision | None) -> Finding | None:
    """The family that lost most: the one that a person would ask about."""
    families = (
        [finding for finding in decision.findings if finding.gate.startswith("non_regression")] if decision else []
    )
    return min(families, key=lambda finding: 0.0 if finding.figure is None else finding.figure, default=None)
