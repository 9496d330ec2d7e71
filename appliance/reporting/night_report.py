"""The morning report on a cycle, gathered from its records. Pure.

Invariants: an unmeasured figure is omitted, never shown as zero. Items lost to infrastructure errors count for neither
model. Model texts are passed on unchanged; the renderer escapes them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.client.gate_figures import change_in_words
from appliance.client.messages import CycleDetail, RolloutDetail
from appliance.client.nights import HeldOutNight
from appliance.promotion.anchors import paired
from appliance.records.cycles import Cycle, Event
from appliance.records.evaluations import Evaluation
from policies.contract.decision import Decision, DecisionOutcome, GateFinding, GateOutcome
from policies.contract.evidence import PairedItem, pairs
from policies.statistics import paired_difference, wilson

ALPHA = 0.05
EXAMPLES = 3
"""Examples of gained, and of lost, questions."""
MACHINES = ("placed", "worker", "broker", "resume")
"""Kinds of events about placement, ended processes and replacements."""
MOST_HAPPENED = 40
"""Maximum event lines; the rest is counted."""
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
    """Results of champion and candidate on one taskset, over the questions that both answered."""

    name: str
    items: int
    before: int
    after: int
    """Number passed by the candidate; `before` is the champion's."""
    gained: int
    lost: int

    @property
    def change(self) -> float:
        """Change of the pass rate from champion to candidate, in percentage points."""
        return 100 * (self.gained - self.lost) / self.items

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the pass rate's change (Tango), in percentage points."""
        low, high = paired_difference(self.gained, self.lost, self.items, alpha=ALPHA)
        return 100 * low, 100 * high

    def share(self, passed: int) -> str:
        return share_text(passed, self.items)


def share_text(passed: int, items: int) -> str:
    """Formats the share of questions passed in percent, with its Wilson interval."""
    low, high = wilson(passed, items, alpha=ALPHA)
    return f"{100 * passed / items:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


@dataclass(frozen=True)
class ChangedTask:
    """A sealed question on which champion and candidate differ, with their recorded rollouts if any."""

    task: str
    family: str
    gained: bool
    before: RolloutDetail | None
    after: RolloutDetail | None

    @property
    def question(self) -> str:
        """Text of the question on which the models differ; empty if not kept."""
        return next((one.rollout.question for one in (self.before, self.after) if one and one.rollout.question), "")


@dataclass(frozen=True)
class NightReport:
    cycle: Cycle
    rollouts: Mapping[str, int]
    curves: Mapping[str, tuple[tuple[float, float], ...]]
    """(step, value) by name."""
    seconds: Mapping[str, float]
    """Time spent by phase, and by part of training."""
    families: tuple[FamilyChange, ...]
    """All tasksets together first, then each."""
    decision: Decision | None
    changed: tuple[ChangedTask, ...]
    happened: tuple[Event, ...] = ()
    """Events on other machines, in order: placement, ended or lost processes, and replacements."""
    more_happened: int = 0
    """Number of omitted events of this kind."""
    unmeasured: str = ""
    """Reason why tasksets are missing; empty if present, or still possible."""

    nights: tuple[HeldOutNight, ...] = ()
    """Held-out success up to this night, oldest first."""

    @property
    def findings(self) -> list[GateFinding]:
        """The decision's gates; those that did not pass come first."""
        found = self.decision.findings if self.decision is not None else ()
        return sorted(found, key=lambda one: one.outcome is GateOutcome.PASSED)

    @property
    def headline(self) -> str:
        """Summary of a cycle in short sentences: state, failure, change on held-out questions, decision."""
        state = self.cycle.state.value if self.cycle.state.ended else f"unfinished, in {self.cycle.phase}"
        said = [f"{self.cycle.id} is {state}{f': {self.cycle.failure}' if self.cycle.failure else ''}."]
        made = self.decision
        if self.families:
            whole, open_yet = self.families[0], made is None or made.outcome is DecisionOutcome.HOLD
            words = change_in_words(whole.change, whole.interval, whole.items, more_may_come=open_yet)
            said.append(f"{words[0].upper()}{words[1:]}.")
        return " ".join([*said, *([f"Decision: {made.outcome.value}."] if made is not None else [])])


def changed_items(evaluation: Evaluation) -> list[PairedItem]:
    """Returns the first few questions that only the candidate has right, then those that only the champion has."""
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
    nights: Sequence[HeldOutNight] = (),
) -> NightReport:
    """Builds the report on a cycle. `figures` are those of the cycle's training steps in ascending order, each with its
    `step`; `events` are those during the cycle; `nights` are all evaluated ones, oldest first."""
    cycle = detail.cycle
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
        nights=tuple(one for one in nights if one.cycle == cycle.id or one.at <= cycle.updated),
        unmeasured="" if families else _unmeasured(detail.cycle, evaluation),
    )


def _unmeasured(cycle: Cycle, evaluation: Evaluation | None) -> str:
    if evaluation is not None:
        lost = len(evaluation.champion.items)
        return f"Both models answered none of {lost} questions: every pair was lost to infrastructure errors."
    return "No candidate was evaluated." if cycle.state.ended else ""


def family_changes(evaluation: Evaluation) -> tuple[FamilyChange, ...]:
    """Returns the changes from champion to candidate over all tasksets, then for each taskset."""
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
    """Merges the recorded figures of each training step with the reported ones, in the order of steps."""
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
            ("held-out success", "held_out_success"),
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
