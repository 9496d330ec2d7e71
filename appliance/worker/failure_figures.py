"""Counts how rollouts went wrong in worlds whose environment names failures; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from appliance.learning.grouping import of_attempts
from appliance.records.rollouts import Rollout
from appliance.records.training import Judged
from curriculum.contract.environment import MadeCall, NamesFailures
from curriculum.contract.task import Task
from curriculum.environments import ENVIRONMENTS
from verifiers.contract.verdict import Outcome


def failure_figures(tasks: Iterable[Task], judged: Sequence[Judged]) -> dict[str, float]:
    """Sums each mode over the attempts at such tasks that have a verdict, as `failures_MODE`; nothing without any. A
    branch is none: what it shares with its attempt would count twice."""
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
    """What it called of its world."""
    return [
        MadeCall(call.tool, call.arguments, call.status.failed, call.sandbox != "", call.error or call.output)
        for call in rollout.calls
        if call.asks_world
    ]
