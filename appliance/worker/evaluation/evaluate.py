"""Evaluates candidate and champion on the same sealed items, sampled and greedy.

Decisions use sampled success; greedy success is reported beside it. Each run's results are recorded before the next run
starts, and a completely recorded run is not repeated after a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from appliance.agent.assignment import Assignment, tier_of
from appliance.agent.judging import judge, require_sound
from appliance.agent.loop import Agent
from appliance.agent.usage import by_tier, total
from appliance.learning.signal.grouping import is_masked
from appliance.ledger.ledger import Ledger
from appliance.records.clustered_interval import AttemptSums
from appliance.records.cycles import Checkpoint
from appliance.records.evaluations import ItemResult, ModelResults
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged, RolloutFilter
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup
from curriculum.contract.task import Task
from curriculum.registry import key_of
from curriculum.seeds import derive
from policies.policy import Policy
from verifiers.contract.verdict import Outcome

NO_LIMITS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class EvalRun:
    """Evaluation run of one model with one decoding method; each item is answered once."""

    cycle: str
    model: Checkpoint
    temperature: float
    number: int
    """Number of the run within its evaluation; part of the rollout ids."""
    seed: int
    """Seed shared by candidate and champion on the same item, so that only the weights differ."""


def evaluate(run: EvalRun, tasks: Sequence[Task], context: WorkContext) -> tuple[ModelResults, list[Judged]]:
    """Evaluates a model on the tasks; returns the results and the judged rollouts in task order. Loads the model unless
    the run is recorded."""
    asked = assignments(
        tasks,
        context.policy,
        f"{run.cycle}.{Purpose.EVALUATION.value}.{run.number}",
        cycle=run.cycle,
        step=run.number,
        purpose=Purpose.EVALUATION,
        temperature=run.temperature,
        seed=lambda task, _: derive(run.seed, task.id),
    )
    judged = recorded([one.id for one in asked], run, context.ledger)
    if judged is not None:
        return results(run, tasks, judged, seconds=sum(one.rollout.seconds for one in judged)), judged
    agent = context.agent_of(run.model)
    started = context.clock()
    judged = judge_and_record(asked, context, agent)
    return results(run, tasks, judged, seconds=context.clock() - started), judged


def validate(
    tasks: Sequence[Task], setup: CycleSetup, context: WorkContext, agent: Agent, *, label: str, step: int, seed: int
) -> float:
    """Returns the pass rate of the engine's model on held-out tasks, sampled as in training; records the rollouts."""
    asked = assignments(
        tasks,
        context.policy,
        f"{setup.cycle}.{label}.{step}",
        cycle=setup.cycle,
        step=step,
        purpose=Purpose.VALIDATION,
        temperature=setup.recipe.training.temperature,
        seed=lambda task, _: derive(seed, task.id),
    )
    return success(judge_and_record(asked, context, agent))


def assignments(
    tasks: Sequence[Task],
    policy: Policy,
    prefix: str,
    *,
    cycle: str,
    step: int,
    purpose: Purpose,
    temperature: float,
    seed: Callable[[Task, int], int],
    samples: int = 1,
    max_calls: int | None = None,
    max_completion: Mapping[str, int] = NO_LIMITS,
) -> list[Assignment]:
    """Builds `samples` rollout assignments per task, grouped by task. `prefix` begins their ids, `seed` computes each
    seed, `max_calls` lowers the tool call limit, and `max_completion` limits completion tokens by taskset."""
    return [
        Assignment(
            id=f"{prefix}.{task.id}.{sample}",
            task=task,
            cycle=cycle,
            step=step,
            sample=sample,
            purpose=purpose,
            temperature=temperature,
            seed=seed(task, sample),
            tier=tier_of(policy, purpose, task.taskset),
            max_calls=max_calls,
            max_completion=max_completion.get(task.taskset),
        )
        for task in tasks
        for sample in range(samples)
    ]


def judge_and_record(asked: Sequence[Assignment], context: WorkContext, agent: Agent) -> list[Judged]:
    """Makes the assigned rollouts, judges their answers, and records them in the ledger. Raises InfrastructureError if
    most were lost."""
    tasks = {one.task.id: one.task for one in asked}
    judged = judge(agent.roll(asked), tasks, context.checker)
    require_sound(judged, agent.last_failure)
    context.ledger.put_rollouts(judged)
    return judged


def recorded(ids: Sequence[str], run: EvalRun, ledger: Ledger) -> list[Judged] | None:
    """Returns an evaluation run's judged rollouts in the order of `ids`, or None unless the ledger has all of them."""
    found = {
        judged.rollout.id: judged
        for judged in ledger.rollouts(
            RolloutFilter(cycle=run.cycle, purpose=Purpose.EVALUATION, step=run.number), limit=len(ids)
        )
        if {run.model.manifest}.issuperset(judged.rollout.versions)
    }
    return [found[name] for name in ids] if all(name in found for name in ids) else None


def results(run: EvalRun, tasks: Sequence[Task], judged: Sequence[Judged], *, seconds: float) -> ModelResults:
    """Summarises one evaluation run's judged rollouts as the model's results; `tasks` are its tasks, in any order."""
    questions = {task.id: question_digest(key_of(task)) for task in tasks}
    return ModelResults(
        weights=run.model.manifest,
        temperature=run.temperature,
        items=tuple(item_of(one, questions[one.rollout.task]) for one in judged),
        tokens=sum(one.rollout.sampled_tokens for one in judged),
        seconds=seconds,
        usage=total(one.rollout for one in judged),
        tiers=by_tier(one.rollout for one in judged),
    )


def item_of(judged: Judged, question: str = "") -> ItemResult:
    return ItemResult(
        task=judged.rollout.task,
        family=judged.family,
        passed=None if judged.verdict.outcome is Outcome.INFRA_ERROR else judged.verdict.passed,
        calls=len(judged.rollout.calls),
        failed_calls=judged.rollout.failed_calls,
        question=question,
    )


def question_digest(key: str) -> str:
    """Returns a digest that identifies a question without revealing its text."""
    return hashlib.sha256(f"question\n{key}".encode()).hexdigest()[:32]


def success(judged: Sequence[Judged]) -> float:
    """Share of passed rollouts among those without an infrastructure error; 0 if none are left."""
    counted = [one for one in judged if not is_masked(one)]
    return sum(one.verdict.passed for one in counted) / len(counted) if counted else 0.0


def success_figures(judged: Sequence[Judged]) -> dict[str, float]:
    """Returns metrics of a step's rollouts: share passed, number of judged attempts, and a 95 % interval clustered by
    task. Omits the interval without attempts."""
    counts: dict[str, list[bool]] = {}
    for one in judged:
        if not is_masked(one):
            counts.setdefault(one.rollout.task, []).append(one.verdict.passed)
    sums = AttemptSums.of([(len(passed), sum(passed)) for passed in counts.values()])
    low, high = sums.interval
    bounds = {"success_low": low, "success_high": high} if sums.attempts else {}
    return {"success": success(judged), "attempts": float(sums.attempts), **bounds}
