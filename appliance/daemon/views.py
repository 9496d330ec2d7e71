"""What the ledger holds, arranged for people: pure reading, nothing is decided or changed here."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from appliance.client.messages import (
    CheckpointView,
    Comparison,
    CycleDetail,
    FamilyComparison,
    NumberedEvent,
    RolloutView,
)
from appliance.ledger.ledger import Ledger
from appliance.records import Cycle, CycleState, Evaluation, ItemResult, ModelResults, Purpose, Rollout

ALIASES = ("champion", "candidate", "previous", "canary")


def aliases(ledger: Ledger) -> dict[str, str | None]:
    return {name: ledger.alias(name) for name in ALIASES}


def unfinished_cycle(ledger: Ledger) -> Cycle | None:
    """The one that is to go on; there is never more than one."""
    return next((cycle for cycle in ledger.cycles(limit=20) if cycle.state is CycleState.RUNNING), None)


def cycle_detail(ledger: Ledger, cycle: Cycle) -> CycleDetail:
    checkpoints = ledger.checkpoints(cycle=cycle.id)
    decisions = {
        decision.id: decision
        for checkpoint in checkpoints
        for decision in ledger.decisions(candidate=checkpoint.manifest)
    }
    evaluations = {
        evaluation.id: evaluation
        for checkpoint in checkpoints
        for evaluation in ledger.evaluations(candidate=checkpoint.manifest)
        if evaluation.cycle == cycle.id
    }
    return CycleDetail(
        cycle=cycle,
        rollouts=ledger.rollout_counts(cycle.id),
        steps=tuple(ledger.step_metrics(cycle.id)),
        checkpoints=tuple(checkpoints),
        evaluations=tuple(evaluations.values()),
        decisions=tuple(decisions.values()),
    )


def checkpoint_views(ledger: Ledger, *, cycle: str | None, limit: int) -> list[CheckpointView]:
    names = aliases(ledger)
    views = []
    for checkpoint in ledger.checkpoints(cycle=cycle, limit=limit):
        newest = ledger.decisions(candidate=checkpoint.manifest, limit=1)
        views.append(
            CheckpointView(
                checkpoint=checkpoint,
                aliases=tuple(name for name, digest in names.items() if digest == checkpoint.manifest),
                decision=newest[0] if newest else None,
            )
        )
    return views


def numbered_events(ledger: Ledger, *, after: int, limit: int) -> list[NumberedEvent]:
    return [NumberedEvent(number=number, event=event) for number, event in ledger.events(after=after, limit=limit)]


def newest_event(ledger: Ledger, known: int) -> int:
    """The number of the newest event, given that of one that is not newer; 0 when there is none.

    The ledger lists events from a number on, so the end is found by doubling steps and then halving them: it takes a
    handful of queries also with millions of events.
    """
    low, step = known, 1
    while ledger.events(after=low + step, limit=1):
        low, step = low + step, step * 2
    high = low + step
    while low < high:
        middle = (low + high) // 2
        if ledger.events(after=middle, limit=1):
            low = middle + 1
        else:
            high = middle
    return low


class Questions:
    """The text of a task, where the ledger keeps it: training steps hold their tasks, a job is its question.

    Steps never change, so the newest few are kept; reading one costs milliseconds.
    """

    def __init__(self, ledger: Ledger, *, keep: int = 8) -> None:
        self._ledger = ledger
        self._keep = keep
        self._steps: dict[tuple[str, int], dict[str, str]] = {}
        self._lock = threading.Lock()

    def rollout_views(self, *, cycle: str | None, job: str | None, limit: int) -> list[RolloutView]:
        judged = self._ledger.rollouts(cycle=cycle, job=job, limit=limit)
        return [RolloutView.of(one, self._question(one.rollout)) for one in judged]

    def _question(self, rollout: Rollout) -> str:
        if rollout.purpose is Purpose.JOB:
            job = self._ledger.job(rollout.cycle)
            return job.question if job is not None else ""
        if rollout.purpose is not Purpose.TRAIN:
            return ""
        key = (rollout.cycle, rollout.step)
        if key not in self._steps:
            step = self._ledger.step(*key)
            if step is None:
                return ""
            with self._lock:
                while len(self._steps) >= self._keep:
                    del self._steps[next(iter(self._steps))]
                self._steps[key] = {str(task["id"]): str(task["prompt"]) for task in step.tasks}
        return self._steps.get(key, {}).get(rollout.task, "")


def compare(evaluation: Evaluation, a: str, b: str) -> Comparison:
    """`a` and `b` are the two weights of the evaluation, in either order. Items with an infrastructure error on either
    side are left out, as they are from the decision."""
    sampled = {evaluation.candidate.weights: evaluation.candidate, evaluation.champion.weights: evaluation.champion}
    greedy = {
        evaluation.candidate_greedy.weights: evaluation.candidate_greedy,
        evaluation.champion_greedy.weights: evaluation.champion_greedy,
    }
    pairs = _pairs(sampled[a], sampled[b])
    items = Counter(x.family for x, _ in pairs)
    passed_a = Counter(x.family for x, _ in pairs if x.passed)
    passed_b = Counter(y.family for _, y in pairs if y.passed)
    return Comparison(
        a=a,
        b=b,
        evaluation=evaluation.id,
        sealed_set=evaluation.sealed_set,
        items=len(pairs),
        passed_a=passed_a.total(),
        passed_b=passed_b.total(),
        gained=sum(not x.passed and bool(y.passed) for x, y in pairs),
        lost=sum(bool(x.passed) and not y.passed for x, y in pairs),
        greedy_a=_success(greedy[a].items),
        greedy_b=_success(greedy[b].items),
        families=tuple(
            FamilyComparison(family=family, items=count, passed_a=passed_a[family], passed_b=passed_b[family])
            for family, count in sorted(items.items())
        ),
    )


def _pairs(a: ModelResults, b: ModelResults) -> list[tuple[ItemResult, ItemResult]]:
    others = {item.task: item for item in b.items}
    both = [(item, others[item.task]) for item in a.items if item.task in others]
    return [(x, y) for x, y in both if x.passed is not None and y.passed is not None]


def _success(items: Sequence[ItemResult]) -> float:
    counted = [item for item in items if item.passed is not None]
    return sum(bool(item.passed) for item in counted) / len(counted) if counted else 0.0
