"""What a person wants to know of a cycle in the morning, gathered from its records. Pure.

What always holds: what was not measured is left out, and never a zero; items that the infrastructure lost count for
neither model; texts of models are carried as they are and escaped by whoever shows them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.client.messages import CycleDetail, RolloutDetail
from appliance.promotion.evidence import paired
from appliance.records.cycles import Cycle
from appliance.records.evaluations import Evaluation
from appliance.records.events import Event
from policies.contract.decision import Decision
from policies.contract.evidence import PairedItem, pairs
from policies.statistics.intervals import paired_difference, wilson

ALPHA = 0.05
EXAMPLES = 3
"""Of each sort."""
MACHINES = ("placed", "worker", "broker", "resume")
"""Kinds of events that say where something ran, what ended there, and what took its place."""
MOST_HAPPENED = 40
"""Lines of them; the rest is counted."""
TIMES = (
    "watch_seconds",
    "checkpoint_seconds",
    "push_seconds",
    "sampling_seconds",
    "verifying_seconds",
    "tool_seconds",
    "learning_seconds",
    "ledger_seconds",
)


@dataclass(frozen=True)
class FamilyChange:
    """One taskset with both models, on the questions that both answered."""

    name: str
    items: int
    before: int
    after: int
    """Passed by the champion, and by the candidate."""
    gained: int
    lost: int

    @property
    def change(self) -> float:
        """Points of 100."""
        return 100 * (self.gained - self.lost) / self.items

    @property
    def interval(self) -> tuple[float, float]:
        """Of the change, at 95 % (Tango)."""
        low, high = paired_difference(self.gained, self.lost, self.items, alpha=ALPHA)
        return 100 * low, 100 * high

    def share(self, passed: int) -> str:
        """In percent, with its interval (Wilson)."""
        low, high = wilson(passed, self.items, alpha=ALPHA)
        return f"{100 * passed / self.items:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


@dataclass(frozen=True)
class ChangedTask:
    """A sealed question on which the two models differ, with what they wrote where that is on record."""

    task: str
    family: str
    gained: bool
    before: RolloutDetail | None
    after: RolloutDetail | None

    @property
    def question(self) -> str:
        """What was asked; empty where that is not kept."""
        return next((one.rollout.question for one in (self.before, self.after) if one and one.rollout.question), "")


@dataclass(frozen=True)
class NightReport:
    cycle: Cycle
    rollouts: Mapping[str, int]
    curves: Mapping[str, tuple[tuple[float, float], ...]]
    """By name: step, value."""
    seconds: Mapping[str, float]
    """Where the time went: by phase, and within training by what was done."""
    families: tuple[FamilyChange, ...]
    """All together first."""
    decision: Decision | None
    changed: tuple[ChangedTask, ...]
    happened: tuple[Event, ...] = ()
    """Where it ran on other machines, what ended or was lost, and what took its place; in order."""
    more_happened: int = 0
    """Of such, those that are left out."""
    unmeasured: str = ""
    """Why there are no tasksets before and after; empty where there are, or where the cycle may still come to it."""

    @property
    def headline(self) -> str:
        """One sentence."""
        state = self.cycle.state.value if self.cycle.state.ended else f"unfinished, in {self.cycle.phase}"
        said = f"{self.cycle.id} is {state}"
        if self.cycle.failure:
            said += f": {self.cycle.failure}"
        if self.decision is not None:
            said += f"; decision: {self.decision.outcome.value}, {self.decision.reason}"
        return said


def changed_items(evaluation: Evaluation) -> list[PairedItem]:
    """Of each sort the first few: what was gained, then what was lost."""
    items = [item for item in paired(evaluation.champion.items, evaluation.candidate.items) if item.counts]
    gained, lost = ([item for item in items if item.gained], [item for item in items if item.lost])
    return [*gained[:EXAMPLES], *lost[:EXAMPLES]]


def evaluation_of(detail: CycleDetail) -> Evaluation | None:
    return next((one for one in detail.evaluations if one.cycle == detail.cycle.id), None)


def night_report(
    detail: CycleDetail,
    figures: Sequence[Mapping[str, float]],
    changed: Sequence[ChangedTask] = (),
    events: Sequence[Event] = (),
) -> NightReport:
    """`figures` are those of the cycle's training steps, with `step` among them, ascending; `events` are those of its
    time."""
    happened = [event for event in events if event.kind in MACHINES]
    evaluation, steps = evaluation_of(detail), _together(detail.steps, figures)
    own = [one for one in detail.decisions if evaluation is not None and one.evaluation == evaluation.id]
    families = () if evaluation is None else family_changes(evaluation)
    return NightReport(
        cycle=detail.cycle,
        rollouts=detail.rollouts,
        curves=_curves(steps, detail.rollouts.get("train", 0)),
        seconds=_seconds(detail.cycle, steps),
        families=families,
        decision=next(iter(own), None),
        changed=tuple(changed),
        happened=tuple(happened[:MOST_HAPPENED]),
        more_happened=len(happened[MOST_HAPPENED:]),
        unmeasured="" if families else _unmeasured(detail.cycle, evaluation),
    )


def _unmeasured(cycle: Cycle, evaluation: Evaluation | None) -> str:
    if evaluation is not None:
        lost = len(evaluation.champion.items)
        return f"None of {lost} questions was answered by both models: the infrastructure lost every pair."
    return "No candidate was evaluated in it." if cycle.state.ended else ""


def family_changes(evaluation: Evaluation) -> tuple[FamilyChange, ...]:
    """All together, and then by taskset."""
    items = [item for item in paired(evaluation.champion.items, evaluation.candidate.items) if item.counts]
    if not items:
        return ()
    families = dict(sorted(Counter(item.family for item in items).items()))
    return tuple(
        _family(name, [item for item in items if name == "all" or item.family == name]) for name in ("all", *families)
    )


def _family(name: str, items: Sequence[PairedItem]) -> FamilyChange:
    counts = pairs(items)
    before, after = (
        sum(item.champion_passed is True for item in items),
        sum(item.candidate_passed is True for item in items),
    )
    return FamilyChange(name, counts.items, before, after, counts.gained, counts.lost)


def _together(
    recorded: Sequence[Mapping[str, float]], said: Sequence[Mapping[str, float]]
) -> list[Mapping[str, float]]:
    """By step what is on record of it, and what was said once it was learned from."""
    found: dict[float, dict[str, float]] = defaultdict(dict)
    for one in (*recorded, *said):
        if "step" in one:
            found[one["step"]].update(one)
    return [found[step] for step in sorted(found)]


def _curves(figures: Sequence[Mapping[str, float]], rollouts: int) -> dict[str, tuple[tuple[float, float], ...]]:
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    each = rollouts / len(figures) if figures else 0.0  # of a step that does not say how many it has
    for one in figures:
        step = one["step"]
        for name, key in (
            ("success", "success"),
            ("tool errors in correct rollouts", "tool_errors_in_correct"),
            ("entropy", "learning_entropy"),
        ):
            if key in one:
                found[name].append((step, one[key]))
        if "tokens" in one and (of := one.get("rollouts", each)):
            found["tokens of a rollout"].append((step, one["tokens"] / of))
    return {name: tuple(points) for name, points in found.items()}


def _seconds(cycle: Cycle, figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
    parts = {name.removesuffix("_seconds"): sum(one.get(name, 0.0) for one in figures) for name in TIMES}
    within = {f"training: {name}": seconds for name, seconds in parts.items() if seconds > 0}
    return {**cycle.seconds, **within}
