"""Candidate and champion on the same sealed items, sampled and greedy.

What is decided on is sampled success; greedy is stated beside it. The results of each run are in the ledger before the
next run starts, and a run that is there whole is not made again after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.agent.accounts import by_tier, total
from appliance.agent.dialect import Codec
from appliance.agent.judging import judge, require_sound
from appliance.agent.loop import Agent, Assignment
from appliance.isolation import tier_of
from appliance.ledger.ledger import Ledger
from appliance.records import Ended, ItemResult, Judged, ModelResults, Purpose
from appliance.worker.equipment import Equipment
from appliance.worker.seeds import derive
from curriculum.task import Task
from verifiers.verdict import Outcome


@dataclass(frozen=True)
class Sitting:
    """One model, one way of decoding, one sealed set."""

    cycle: str
    weights: str
    temperature: float
    number: int
    """Of the sittings of one evaluation; part of the rollouts' ids."""
    seed: int


def sit(sitting: Sitting, tasks: Sequence[Task], equipment: Equipment, codec: Codec) -> ModelResults:
    """Answers every item once. The engine must hold the sitting's weights."""
    known = recorded_sitting(sitting, tasks, equipment)
    if known is not None:
        return results(sitting, known, seconds=sum(judged.rollout.seconds for judged in known))
    started = equipment.clock()
    judged = examine(
        tasks,
        equipment,
        equipment.agent(codec),
        cycle=sitting.cycle,
        label=Purpose.EVALUATION.value,
        purpose=Purpose.EVALUATION,
        step=sitting.number,
        temperature=sitting.temperature,
        # Candidate and champion meet the same item with the same seed: what differs is the weights.
        seed=derive("exam", sitting.seed),
    )
    return results(sitting, judged, seconds=equipment.clock() - started)


def examine(
    tasks: Sequence[Task],
    equipment: Equipment,
    agent: Agent,
    *,
    cycle: str,
    label: str,
    purpose: Purpose,
    step: int,
    temperature: float,
    seed: int,
) -> list[Judged]:
    """One rollout for each task by what the engine holds, judged and on record; in the order of the tasks.

    `label` and `step` make the rollouts' ids; each task's seed follows from `seed` and the task.
    """
    assignments = [
        Assignment(
            id=rollout_id(cycle, label, step, task),
            task=task.id,
            prompt=task.prompt,
            cycle=cycle,
            step=step,
            sample=0,
            purpose=purpose,
            temperature=temperature,
            seed=derive(seed, task.id),
            tier=tier_of(equipment.policy, purpose, task.family),
        )
        for task in tasks
    ]
    judged = judge(agent.roll(assignments), {task.id: task for task in tasks}, equipment.checker)
    require_sound(judged, agent.last_failure)
    equipment.ledger.put_rollouts(judged)
    return judged


def rollout_id(cycle: str, label: str, step: int, task: Task, sample: int = 0) -> str:
    return f"{cycle}.{label}.{step}.{task.id}.{sample}"


def recorded_sitting(sitting: Sitting, tasks: Sequence[Task], equipment: Equipment) -> list[Judged] | None:
    """The judged rollouts of this sitting when the ledger has all of them, in the order of the tasks."""
    ids = [rollout_id(sitting.cycle, Purpose.EVALUATION.value, sitting.number, task) for task in tasks]
    return recorded(ids, sitting.cycle, sitting.number, sitting.weights, equipment.ledger)


def recorded(ids: Sequence[str], cycle: str, step: int, weights: str, ledger: Ledger) -> list[Judged] | None:
    """The judged rollouts of an examination by these weights when the ledger has all of them, in the order of ids."""
    found = {
        judged.rollout.id: judged
        for judged in ledger.rollouts(cycle=cycle, purpose=Purpose.EVALUATION, step=step, limit=len(ids))
        if judged.rollout.weights == weights
    }
    return [found[name] for name in ids] if all(name in found for name in ids) else None


def results(sitting: Sitting, judged: Sequence[Judged], *, seconds: float) -> ModelResults:
    return ModelResults(
        weights=sitting.weights,
        temperature=sitting.temperature,
        items=tuple(
            ItemResult(
                task=one.rollout.task,
                family=one.family,
                passed=None if one.verdict.outcome is Outcome.INFRA_ERROR else one.verdict.passed,
                calls=len(one.rollout.calls),
                failed_calls=one.rollout.failed_calls,
            )
            for one in judged
        ),
        tokens=sum(len(node.ids) for one in judged for node in one.rollout.nodes if node.sampled),
        seconds=seconds,
        usage=total(one.rollout for one in judged),
        tiers=by_tier(one.rollout for one in judged),
    )


def success(judged: Sequence[Judged]) -> float:
    """Share passed among those without an infrastructure failure; 0 when there is none."""
    counted = [one for one in judged if one.rollout.ended is not Ended.INFRA_ERROR]
    return sum(one.verdict.passed for one in counted) / len(counted) if counted else 0.0


def tool_error_rate(judged: Sequence[Judged]) -> float:
    """Failed calls among all calls of the rollouts that passed: what RoC lowers without touching the reward."""
    passed = [one.rollout for one in judged if one.verdict.passed]
    calls = sum(len(rollout.calls) for rollout in passed)
    return sum(rollout.failed_calls for rollout in passed) / calls if calls else 0.0
