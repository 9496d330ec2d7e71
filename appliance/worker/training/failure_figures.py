"""Figures of a training step: seconds by part, branches, and failure modes that environments name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from appliance.learning.signal.grouping import is_masked, of_attempts
from appliance.records.rollouts import Rollout
from appliance.records.training import Group, Judged
from curriculum.contract.environment import MadeCall, NamesFailures
from curriculum.contract.task import Task
from curriculum.environments import ENVIRONMENTS
from verifiers.contract.verdict import Outcome

PUSH, CHECKPOINT, WATCH = PARTS = "push", "checkpoint", "watch"


class StepSeconds:
    """Times the parts of training steps. Not thread-safe."""

    def __init__(self, clock: Callable[[], float], engine_seconds: Callable[[], float]) -> None:
        """Prepares to time the parts of training steps. `engine_seconds` returns the total seconds that the engines
        have sampled."""
        self._clock, self._engine_seconds = clock, engine_seconds
        self.begin()

    def begin(self) -> None:
        """Begins to time a training step; discards time since the last one."""
        self._spent = dict.fromkeys(PARTS, 0.0)
        self._began, self._engines_had = self._clock(), self._engine_seconds()

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Context that adds the block's time to that part of the training step."""
        started = self._clock()
        try:
            yield
        finally:
            self._spent[part] += self._clock() - started

    def figures(self) -> dict[str, float]:
        """Returns the seconds of each part so far in this training step."""
        return {f"{part}_seconds": seconds for part, seconds in self._spent.items()}

    def end(self) -> dict[str, float]:
        """Ends the training step, begins the next one, and returns `engine_wait_share`."""
        took = self._clock() - self._began
        worked = self._engine_seconds() - self._engines_had + self._spent[PUSH]
        self.begin()
        return {"engine_wait_share": min(1.0, max(0.0, 1 - worked / took))} if took > 0 else {}


def branch_figures(judged: Sequence[Judged], groups: Sequence[Group]) -> dict[str, float]:
    """Returns a step's branch metrics; empty without branches.

    `branches` (made), `branches_lost` (to infrastructure errors), `branches_kept` (trained on), `branch_points`
    (attempts that branched), `branch_points_parted` (those whose rollouts got different verdicts, the only ones a
    branch learns from), `branch_tokens` (sampled for branches) and `branch_tokens_saved` (shared with their attempts
    instead of sampled again).
    """
    branches = [one for one in judged if one.rollout.branch_of is not None]
    if not branches:
        return {}
    kept = {group.rollouts[index] for group in groups for index in group.kept}
    points: dict[str, set[Outcome]] = {one.rollout.branch_of or "": set() for one in branches}
    for one in judged:
        name = one.rollout.branch_of or one.rollout.id
        if name in points and not is_masked(one):
            points[name].add(one.verdict.outcome)
    return {
        "branches": float(len(branches)),
        "branches_lost": float(sum(map(is_masked, branches))),
        "branches_kept": float(sum(one.rollout.id in kept for one in branches)),
        "branch_points": float(len(points)),
        "branch_points_parted": float(sum(len(outcomes) > 1 for outcomes in points.values())),
        "branch_tokens": float(sum(one.rollout.sampled_tokens for one in branches)),
        "branch_tokens_saved": float(sum(one.rollout.shared_tokens for one in branches)),
    }


def failure_figures(tasks: Iterable[Task], judged: Sequence[Judged]) -> dict[str, float]:
    """Returns metrics `failures_MODE`: how often each failure mode occurred in judged attempts at tasks that name
    failures. Skips branches, which would count shared calls twice."""
    asked = {task.id: task for task in tasks}
    found: Counter[str] = Counter()
    for one in of_attempts(judged):
        task = asked.get(one.rollout.task)
        if task is None or one.verdict.outcome is Outcome.INFRA_ERROR:
            continue
        environment: object = ENVIRONMENTS.get(task.environment)
        if not isinstance(environment, NamesFailures):
            continue
        modes = environment.failure_modes(
            task.world,
            calls_of(one.rollout),
            answered=one.rollout.answer is not None,
            passed=one.verdict.outcome is Outcome.PASS,
        )
        found.update({f"failures_{mode}": times for mode, times in modes.items()})
    return {name: float(times) for name, times in found.items()}


def calls_of(rollout: Rollout) -> list[MadeCall]:
    """Returns the rollout's calls to its world."""
    return [
        MadeCall(call.tool, call.arguments, call.status.failed, call.sandbox != "", call.error or call.output)
        for call in rollout.calls
        if call.asks_world
    ]
