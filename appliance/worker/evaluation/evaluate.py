"""Evaluates candidate and champion on the same sealed items, sampled and greedy.

What is decided on is sampled success; greedy is stated beside it. The results of each run are in the ledger before the
next run starts, and a run that is there whole is not made again after a restart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from appliance.agent.assignment import Assignment
from appliance.agent.isolation import tier_of
from appliance.agent.judging import judge, require_sound
from appliance.agent.loop import Agent
from appliance.agent.usage import by_tier, total
from appliance.learning.signal.grouping import is_masked
from appliance.ledger.ledger import Ledger
from appliance.records.checkpoints import Checkpoint
from appliance.records.clustered_interval import AttemptSums
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
    """One model and one way of decoding; each item is answered once."""

    cycle: str
    model: Checkpoint
    temperature: float
    number: int
    """Of the runs of one evaluation; part of the rollouts' ids."""
    seed: int
    """Candidate and champion meet the same item with the same seed: what differs is the weights."""


def evaluate(run: EvalRun, tasks: Sequence[Task], context: WorkContext) -> tuple[ModelResults, list[Judged]]:
    """Results, and the judged rollouts in the order of the tasks. Loads the model unless the run is on record."""
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
    """Success of what the engine holds on held-out tasks, sampled as in training; the rollouts go on record."""
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
    """`samples` rollouts of each task, task by task; `prefix` begins their ids, `seed` gives that of each, `max_calls`
    bounds their tool calls further, and `max_completion`, by taskset, the tokens behind their prompts."""
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
    """Makes the rollouts and has them judged; puts them on record unless most of them were lost. Raises
    InfrastructureError then."""
    tasks = {one.task.id: one.task for one in asked}
    judged = judge(agent.roll(asked), tasks, context.checker)
    require_sound(judged, agent.last_failure)
    context.ledger.put_rollouts(judged)
    return judged


def recorded(ids: Sequence[str], run: EvalRun, ledger: Ledger) -> list[Judged] | None:
    """The judged rollouts of a run when the ledger has all of them, in the order of ids."""
    found = {
        judged.rollout.id: judged
        for judged in ledger.rollouts(
            RolloutFilter(cycle=run.cycle, purpose=Purpose.EVALUATION, step=run.number), limit=len(ids)
        )
        if {run.model.manifest}.issuperset(judged.rollout.versions)
    }
    return [found[name] for name in ids] if all(name in found for name in ids) else None


def results(run: EvalRun, tasks: Sequence[Task], judged: Sequence[Judged], *, seconds: float) -> ModelResults:
    """`tasks` are those that were asked, in any order."""
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
    """Names what a question asks and does not say it."""
    return hashlib.sha256(f"question\n{key}".encode()).hexdigest()[:32]


def success(judged: Sequence[Judged]) -> float:
    """Share passed among those without an infrastructure failure; 0 when there is none."""
    counted = [one for one in judged if not is_masked(one)]
    return sum(one.verdict.passed for one in counted) / len(counted) if counted else 0.0


def success_figures(judged: Sequence[Judged]) -> dict[str, float]:
    """Success of a step's attempts, how many have a verdict, and its 95 % interval, in which those at one task are
    alike; no interval without an attempt."""
    counts: dict[str, list[bool]] = {}
    for one in judged:
        if not is_masked(one):
            counts.setdefault(one.rollout.task, []).append(one.verdict.passed)
    sums = AttemptSums.of([(len(passed), sum(passed)) for passed in counts.values()])
    low, high = sums.interval
    bounds = {"success_low": low, "success_high": high} if sums.attempts else {}
    return {"success": success(judged), "attempts": float(sums.attempts), **bounds}
