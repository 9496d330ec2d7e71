"""A night report as JSON, for `assay report --json` and for webhooks. Pure."""

from __future__ import annotations

from appliance.records.cycles import Cycle
from appliance.reporting.night_report import NightReport
from policies.contract.decision import Decision
from runtime.model import FrozenModel


class FamilyFigures(FrozenModel):
    family: str
    items: int
    passed_before: int
    passed_after: int
    gained: int
    lost: int
    change_points: float
    interval_points: tuple[float, float]


class ChangedFigures(FrozenModel):
    task: str
    family: str
    question: str
    """Text of the question; empty if not kept."""
    gained: bool
    champion: str | None
    """Id of the rollout."""
    candidate: str | None


class HappenedFigures(FrozenModel):
    at: str
    kind: str
    text: str


class ReportFigures(FrozenModel):
    """Night report as JSON, without the examples' conversations, which `assay rollouts show` prints."""

    cycle: Cycle
    rollouts: dict[str, int]
    curves: dict[str, tuple[tuple[float, float], ...]]
    """(step, value) by name."""
    seconds: dict[str, float]
    families: tuple[FamilyFigures, ...]
    decision: Decision | None
    changed: tuple[ChangedFigures, ...]
    happened: tuple[HappenedFigures, ...]
    """Events on other machines: placement, ended or lost processes, and replacements."""


def as_figures(made: NightReport) -> ReportFigures:
    """Converts a night report to its JSON form."""
    return ReportFigures(
        cycle=made.cycle,
        rollouts=dict(made.rollouts),
        curves=dict(made.curves),
        seconds=dict(made.seconds),
        families=tuple(
            FamilyFigures(
                family=one.name,
                items=one.items,
                passed_before=one.before,
                passed_after=one.after,
                gained=one.gained,
                lost=one.lost,
                change_points=one.change,
                interval_points=one.interval,
            )
            for one in made.families
        ),
        decision=made.decision,
        changed=tuple(
            ChangedFigures(
                task=one.task,
                family=one.family,
                question=one.question,
                gained=one.gained,
                champion=one.before.rollout.id if one.before is not None else None,
                candidate=one.after.rollout.id if one.after is not None else None,
            )
            for one in made.changed
        ),
        happened=tuple(HappenedFigures(at=one.created, kind=one.kind, text=one.text) for one in made.happened),
    )
