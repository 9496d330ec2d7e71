"""A report as JSON has it, for `assay report --json` and for webhooks. Pure."""

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
    """Empty where it is not kept."""
    gained: bool
    champion: str | None
    """The rollout."""
    candidate: str | None


class HappenedFigures(FrozenModel):
    at: str
    kind: str
    text: str


class ReportFigures(FrozenModel):
    """The report without the examples' conversations, which `assay rollouts show` has."""

    cycle: Cycle
    rollouts: dict[str, int]
    curves: dict[str, tuple[tuple[float, float], ...]]
    """By name: step, value."""
    seconds: dict[str, float]
    families: tuple[FamilyFigures, ...]
    decision: Decision | None
    changed: tuple[ChangedFigures, ...]
    happened: tuple[HappenedFigures, ...]
    """Where it ran on other machines, what ended or was lost, and what took its place."""


def as_figures(made: NightReport) -> ReportFigures:
    """The report as JSON has it."""
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
