"""Runs an evaluation plan: an engine here or a model behind an API answers, batches are judged and recorded.

Invariants: both produce rollouts, judged by the same verifiers; infrastructure errors are reported as such. Only
`Attempts` records anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, Self

from appliance.agent.answers import final_answer
from appliance.agent.api_conversation import ApiSampling, converse, refuses
from appliance.agent.assignment import Assignment, tier_of
from appliance.agent.budget import AgentBudget
from appliance.agent.calls import LOST
from appliance.agent.judging import BatchChecker, judge
from appliance.agent.loop import Agent
from appliance.evaluation.plan import AttemptFile, EvaluationAttempt, EvaluationPlan, OpenQuestion, attempt_of
from appliance.inference.engine import Engine
from appliance.inference.http.local_api import LocalApi
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd
from appliance.rendering.renderer import Renderer
from curriculum.contract.task import Task
from curriculum.seeds import derive
from policies.policy import Policy
from runtime.errors import InfrastructureError
from runtime.sandbox import SessionPool

MOST_LOST = 64
"""Consecutive lost attempts after which a run gives up, since the cause will affect the rest, too."""


@dataclass(frozen=True)
class EvaluationWork:
    """An evaluation's plan with everything needed to run it."""

    plan: EvaluationPlan
    asked: Sequence[OpenQuestion]
    answerer: Answerer
    checker: BatchChecker
    policy: Policy

    @property
    def planned(self) -> int:
        """Total number of attempts that the evaluation makes."""
        return len(self.asked) * self.plan.repeats


def carry_out(work: EvaluationWork, file: AttemptFile, told: Callable[[int], None]) -> None:
    """Makes the evaluation's attempts that its file lacks or has as lost, and records them. Calls `told` with the
    number judged. Raises InfrastructureError after many consecutive lost attempts, RefusedError without isolation."""
    by_id = {one.task.id: one for one in work.asked}
    left = [
        (one, repeat)
        for repeat in range(work.plan.repeats)
        for one in work.asked
        if (found := file.found.get((one.task.id, repeat))) is None or found.outcome == "lost"
    ]
    lost = 0
    told(_judged(file))
    for start in range(0, len(left), work.answerer.together):
        some = assignments(work.plan, left[start : start + work.answerer.together], work.policy)
        rollouts = work.answerer.answer(some)
        judged = judge(rollouts, {one.task.id: one.task for one in some}, work.checker)
        made: list[EvaluationAttempt] = []
        for one in judged:
            question = by_id[one.rollout.task]
            made.append(attempt_of(one, question, tokens=one.rollout.sampled_tokens))
        file.add(made)
        for attempt in made:
            lost = lost + 1 if attempt.outcome == "lost" else 0
        told(_judged(file))
        if lost >= MOST_LOST or (lost == len(left) > 0):
            raise InfrastructureError(
                f"the last {lost} attempts were lost: {work.answerer.last_failure or 'the verifier failed'}",
                hint="fix the cause, then continue with --resume: lost attempts do not count as wrong",
            )


def _judged(file: AttemptFile) -> int:
    return sum(one.outcome != "lost" for one in file.found.values())


MOST_TOGETHER = 64
"""Maximum attempts of a batch, which is the most that Ctrl-C loses."""
API_TOGETHER = 8
"""Concurrent conversations with a model behind an API."""


class Answerer(Protocol):
    """Context manager that answers questions with a model."""

    together: int
    """Preferred batch size."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def refuses(self, task: Task) -> str:
        """Returns the reason why this answerer cannot be asked the task; empty if it can."""

    def answer(self, asked: Sequence[Assignment]) -> list[Rollout]:
        """Lets the model answer each assignment; returns a rollout for each, in order. Raises RefusedError without
        isolation, RenderingError."""

    @property
    def last_failure(self) -> str:
        """Text of the most recent infrastructure error."""


def assignments(plan: EvaluationPlan, asked: Sequence[tuple[OpenQuestion, int]], policy: Policy) -> list[Assignment]:
    """Builds an assignment for each question and repeat; each has its own seed, equal in every run of the plan."""
    name = f"evaluation-{plan.digest[:12]}"
    return [
        Assignment(
            id=f"{name}.{one.task.id}.{repeat}",
            task=one.task,
            cycle=name,
            step=0,
            sample=repeat,
            purpose=Purpose.VALIDATION,
            temperature=plan.temperature,
            seed=derive("open evaluation", one.seed, one.task.id, repeat),
            tier=tier_of(policy, Purpose.VALIDATION, one.task.taskset),
        )
        for one, repeat in asked
    ]


class EngineAnswerer:
    """Answers an evaluation's questions with a loaded engine; closes the engine."""

    def __init__(self, engine: Engine, renderer: Renderer, sessions: SessionPool, budget: AgentBudget) -> None:
        self._engine = engine
        self._agent = Agent(engine, sessions, renderer, budget, time.monotonic)
        self.together = max(1, min(budget.concurrent, MOST_TOGETHER))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._engine.close()

    def refuses(self, task: Task) -> str:
        return ""

    def answer(self, asked: Sequence[Assignment]) -> list[Rollout]:
        return self._agent.roll(asked)

    @property
    def last_failure(self) -> str:
        return self._agent.last_failure


class ApiAnswerer:
    """Answers an evaluation's questions with a model behind an API, which reports no tokens: they are not counted."""

    def __init__(self, api: LocalApi, sessions: SessionPool, sampling: ApiSampling) -> None:
        self._api, self._sessions, self._sampling = api, sessions, sampling
        self.together = 4 * API_TOGETHER
        self.last_failure = ""

    def __enter__(self) -> Self:
        self._api.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._api.__exit__(*error)

    def refuses(self, task: Task) -> str:
        return refuses(task)

    def answer(self, asked: Sequence[Assignment]) -> list[Rollout]:
        with ThreadPoolExecutor(API_TOGETHER, thread_name_prefix="endpoint") as pool:
            return list(pool.map(self._one, asked))

    def _one(self, asked: Assignment) -> Rollout:
        started = time.monotonic()
        nodes: tuple[Message, ...] = ()
        answer, answers = None, 0
        try:
            made = converse(
                self._api,
                asked.task,
                self._sessions,
                asked.tier,
                self._sampling,
                seed=asked.seed % 2**31,
                caller=asked.id,
            )
        except LOST as error:
            self.last_failure, ended = str(error), RolloutEnd.INFRA_ERROR
        else:
            nodes = tuple(Message(parent=None, role=Role.TOOL, ids=(), sampled=False, call=one) for one in made.calls)
            ended = made.ended
            if ended is RolloutEnd.ANSWERED:
                final = final_answer(made.last, asked.task.form)
                answer, answers = final.answer, final.answers
        return Rollout(
            id=asked.id,
            cycle=asked.cycle,
            step=asked.step,
            task=asked.task.id,
            sample=asked.sample,
            purpose=asked.purpose,
            temperature=asked.temperature,
            nodes=nodes,
            ended=ended,
            answer=answer,
            answers=answers,
            seconds=time.monotonic() - started,
        )
