"""Outcome of each taskset in a cycle: what was learned from, and why the rest was not. Pure.

Invariants: every taskset of the recipe has one outcome, in the recipe's order. Reasons state figures about how rollouts
ended, not about their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from appliance.records.cycles import Cycle, CycleState
from appliance.records.evaluations import Evaluation, ModelResults
from appliance.records.rollouts import Purpose
from appliance.records.training import PassCount
from runtime.model import FrozenModel

MOST_REASONS = 2
ENDED = {CycleState.FAILED: "failed", CycleState.CANCELLED: "was cancelled"}
Limits = tuple[int, str, str]
"""Tokens of a conversation; then, in words, the point where it is cut, and its tool calls."""


class OutcomeState(StrEnum):
    LEARNED = "learned"
    """Some of its groups were learned from."""
    SOLVED = "always solved"
    UNSOLVED = "never solved"
    UNEVEN = "nothing to learn from"
    """Some tasks always solved, the others never."""
    BROKEN = "lost"
    """Every rollout was lost to the infrastructure."""
    WAITING = "not yet asked"
    """The training has not ended."""
    NOT_ASKED = "not asked"
    LEFT_OUT = "left out"


class TasksetOutcome(FrozenModel):
    name: str
    state: OutcomeState
    reason: str
    """Sentences without a final full stop; may be empty."""
    rollouts: int = 0
    """Training rollouts with a verdict."""
    passed: int = 0
    broken: int = 0
    groups: int = 0
    learned: int = 0
    """Groups that were learned from."""
    unsolved_levels: tuple[int, ...] = ()
    """Levels that were asked but never solved."""
    sealed: int = 0
    """Sealed questions that both models answered."""
    champion: int = 0
    candidate: int = 0
    """Sealed questions the candidate answered correctly; `champion` likewise."""

    @property
    def said(self) -> str:
        return f"{self.state.value}: {self.reason}" if self.reason else self.state.value


def outcomes_of(cycle: Cycle, counts: Sequence[PassCount], evaluations: Sequence[Evaluation]) -> list[TasksetOutcome]:
    """Returns the outcome of each taskset in the cycle's recipe. Empty if nothing is trained, or before the tasksets
    are chosen."""
    plan = cycle.plan
    if cycle.kind == "evaluation" or "tasksets" not in plan:
        return []
    recipe, left_out = plan.get("recipe", {}), plan.get("left_out", {})
    agent = recipe.get("agent", {})
    training = recipe.get("training", {})
    calls, first = int(agent.get("max_calls", 0)), int(training.get("turns", {}).get("first", 0))
    tokens = int(agent.get("max_tokens", 0))
    recipes = [recipe, *(stage.get("recipe", {}) for stage in plan.get("stages", ()))]
    cuts = any(one.get("training", {}).get("stragglers", {}).get("past") for one in recipes)
    cut = f"{tokens} tokens" + (" or was cut as a straggler" if cuts else "")
    limits = (tokens, cut, f"{first} to {calls}" if 0 < first < calls else str(calls))
    trained = [one for one in counts if one.purpose is Purpose.TRAIN]
    sealed = _sealed(evaluations)
    none_asked = _none_asked(cycle)
    names = dict.fromkeys([*recipe.get("tasksets", ()), *plan["tasksets"], *(one.family for one in trained)])
    return [
        TasksetOutcome(name=name, state=OutcomeState.LEFT_OUT, reason=left_out[name])
        if name in left_out
        else _outcome(name, [one for one in trained if one.family == name], limits, none_asked, sealed.get(name, {}))
        for name in names
    ]


def _none_asked(cycle: Cycle) -> tuple[OutcomeState, str]:
    """Returns the outcome and reason for a taskset without any asked task; only an ended training gives a reason."""
    if "candidate" in cycle.plan or cycle.state is CycleState.DONE:
        return OutcomeState.NOT_ASKED, (
            "none of its tasks was drawn: the policy's [data] and recipe.training set their number, "
            "and copies of sealed or held-out questions are removed"
        )
    if cycle.state.ended:
        return OutcomeState.NOT_ASKED, f"the cycle {ENDED[cycle.state]} before one of its tasks was drawn"
    return OutcomeState.WAITING, ""


def _outcome(
    name: str,
    counts: Sequence[PassCount],
    limits: Limits,
    none_asked: tuple[OutcomeState, str],
    sealed: Mapping[str, int],
) -> TasksetOutcome:
    rollouts, passed = sum(one.rollouts for one in counts), sum(one.passed for one in counts)
    broken, learned = sum(one.broken for one in counts), sum(one.learned for one in counts)
    unsolved = [one for one in counts if one.rollouts and not one.passed]
    levels = tuple(one.level for one in unsolved if one.level is not None)
    if not rollouts:
        state = OutcomeState.BROKEN if broken else none_asked[0]
    elif learned:
        state = OutcomeState.LEARNED
    elif passed in (0, rollouts):
        state = OutcomeState.SOLVED if passed else OutcomeState.UNSOLVED
    else:
        state = OutcomeState.UNEVEN
    match state:
        case OutcomeState.BROKEN:
            reason = f"all {broken} rollouts were lost to infrastructure errors: run `assay doctor`"
        case OutcomeState.NOT_ASKED | OutcomeState.WAITING:
            reason = none_asked[1]
        case OutcomeState.UNSOLVED:
            reason = why_unsolved(counts, limits)
        case OutcomeState.LEARNED | OutcomeState.UNEVEN if levels:
            listed = ", ".join(map(str, levels))
            reason = f"level{'s' if len(levels) > 1 else ''} {listed} never solved: {why_unsolved(unsolved, limits)}"
        case _:
            reason = ""
    return TasksetOutcome(
        name=name,
        state=state,
        reason=reason,
        rollouts=rollouts,
        passed=passed,
        broken=broken,
        groups=sum(one.groups for one in counts),
        learned=learned,
        unsolved_levels=levels,
        **sealed,
    )


def why_unsolved(counts: Sequence[PassCount], limits: Limits) -> str:
    """Names the most frequent ways in which rollouts ended without passing, such as too many tool calls."""
    rollouts = sum(one.rollouts for one in counts)
    tokens, cut, calls = limits
    ways = {
        f"the question exceeds {tokens} tokens": sum(one.no_room for one in counts),
        f"ran out of {cut}": sum(one.cut for one in counts),
        f"used more than {calls} tool calls": sum(one.turns for one in counts),
        "no answer in the required form": sum(one.formless for one in counts),
        "a wrong answer": sum(one.wrong for one in counts),
    }
    most = sorted(((many, way) for way, many in ways.items() if many), key=lambda one: -one[0])[:MOST_REASONS]
    told = [f"{many} of {rollouts}: {way}" for many, way in most]
    if malformed := sum(one.malformed for one in counts):
        told.append(f"{malformed} with an invalid tool call")
    return "; ".join(told)


def _sealed(evaluations: Sequence[Evaluation]) -> dict[str, dict[str, int]]:
    """Counts by taskset, from the newest evaluation, the sealed questions and those that champion and candidate have
    right."""
    if not evaluations:
        return {}
    newest = evaluations[0]
    theirs, ours = _by_task(newest.champion), _by_task(newest.candidate)
    found: dict[str, dict[str, int]] = {}
    for task, (family, before) in theirs.items():
        after = ours.get(task, (family, None))[1]
        if before is None or after is None:
            continue
        row = found.setdefault(family, {"sealed": 0, "champion": 0, "candidate": 0})
        row["sealed"] += 1
        row["champion"] += before
        row["candidate"] += after
    return found


def _by_task(results: ModelResults) -> dict[str, tuple[str, bool | None]]:
    return {item.task: (item.family, item.passed) for item in results.items}
