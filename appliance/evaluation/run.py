"""Runs an evaluation plan: answers and judges questions in batches, and records each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.agent.judging import BatchChecker, judge
from appliance.evaluation.answering import Answerer, assignments
from appliance.evaluation.attempts import AttemptFile, EvaluationAttempt, attempt_of
from appliance.evaluation.plan import EvaluationPlan, OpenQuestion
from policies.policy import Policy
from runtime.errors import InfrastructureError

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
            level, tokens = question.task.level, one.rollout.sampled_tokens
            made.append(attempt_of(one, level=level, seed=question.seed, tokens=tokens))
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
