"""Judges rollouts: decides those that need no verifier, and checks the rest in one batch.

An infrastructure error never becomes a reward. A policy model that ran out of tokens or turns, or gave no or several
answers, has failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from appliance.records.rollouts import Rollout, RolloutEnd
from appliance.records.training import Judged
from curriculum.contract.task import Task
from runtime.errors import InfrastructureError
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry.spec import Spec

VERIFIER = "agent"
VERSION = "1"


class BatchChecker(Protocol):
    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict | SpecProblem]: ...


def judge(rollouts: Sequence[Rollout], tasks: Mapping[str, Task], checker: BatchChecker) -> list[Judged]:
    """Verifies the rollouts' answers and returns each rollout with its verdict, in order. `tasks` is by task id."""
    decided = [without_verifier(rollout) for rollout in rollouts]
    open_ = [i for i, verdict in enumerate(decided) if verdict is None]
    pairs = [(tasks[rollouts[i].task].spec, rollouts[i].answer or "") for i in open_]
    for i, found in zip(open_, checker.check_many(pairs) if pairs else [], strict=True):
        decided[i] = found if isinstance(found, Verdict) else found.as_verdict(VERIFIER, VERSION)
    return [
        Judged(rollout=rollout, verdict=verdict, family=tasks[rollout.task].taskset)
        for rollout, verdict in zip(rollouts, decided, strict=True)
        if verdict is not None
    ]


def require_sound(judged: Sequence[Judged], cause: str) -> None:
    """Raises InfrastructureError if more than half of the rollouts were lost, since the rest says nothing. `cause` is
    the last failure."""
    lost = [one for one in judged if one.verdict.outcome is Outcome.INFRA_ERROR]
    if 2 * len(lost) > len(judged):
        reason = cause or lost[-1].verdict.reason
        raise InfrastructureError(
            f"{len(lost)} of {len(judged)} rollouts were lost to infrastructure errors: {reason}",
            hint="run `assay doctor`, fix what it reports, and start again: nothing was recorded",
        )


def without_verifier(rollout: Rollout) -> Verdict | None:
    """Returns the verdict of a rollout without an answer to verify: an infrastructure error or a failure. None if there
    is an answer to verify."""
    if rollout.ended is RolloutEnd.INFRA_ERROR:
        return _verdict(Outcome.INFRA_ERROR, "the sandbox failed")
    if rollout.ended is RolloutEnd.TOKENS:
        return _verdict(Outcome.FAIL, f"ran out of tokens after {rollout.tokens}")
    if rollout.ended is RolloutEnd.TURNS:
        return _verdict(Outcome.FAIL, f"asked for more than the {len(rollout.calls)} tool calls allowed")
    if rollout.answer is None:
        return _verdict(Outcome.FAIL, f"{rollout.answers} final answers where exactly one is asked for")
    return None


def _verdict(outcome: Outcome, reason: str) -> Verdict:
    return Verdict(outcome=outcome, score=0.0, reason=reason, verifier=VERIFIER, version=VERSION, seconds=0.0)
