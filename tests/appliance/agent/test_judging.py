"""What needs no verifier is decided here; a broken machine is never a reward and never goes unnoticed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agent_tasks import task_of

from appliance.agent.judging import judge, require_sound
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd
from runtime.errors import InfrastructureError
from verifiers.answers.spec import AnswerSpec
from verifiers.checker import Checker
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry.spec import Spec

TASK = task_of("1+1?", spec=AnswerSpec(notation="digits", expected="2"))


def rollout(ended: RolloutEnd, answer: str | None = None, answers: int = 0) -> Rollout:
    return Rollout(
        id="r",
        cycle="c",
        step=0,
        task=TASK.id,
        sample=0,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        nodes=(Message(parent=None, role=Role.USER, ids=(1,), sampled=False),),
        ended=ended,
        answer=answer,
        answers=answers,
        seconds=0.1,
    )


class NobodyIsAsked:
    def check_many(self, pairs: Sequence[tuple[Spec, str]]) -> list[Verdict]:
        raise AssertionError(pairs)


def test_what_holds_no_answer_fails_without_a_verifier_and_says_why() -> None:
    made = [rollout(RolloutEnd.TOKENS), rollout(RolloutEnd.TURNS), rollout(RolloutEnd.ANSWERED, None, 2)]
    judged = judge(made, {TASK.id: TASK}, NobodyIsAsked())
    assert [one.verdict.outcome for one in judged] == [Outcome.FAIL] * 3
    assert "tokens" in judged[0].verdict.reason
    assert "tool calls" in judged[1].verdict.reason
    assert "2 final answers" in judged[2].verdict.reason


def test_an_answer_is_verified_in_its_place() -> None:
    made = [rollout(RolloutEnd.INFRA_ERROR), rollout(RolloutEnd.ANSWERED, "2", 1), rollout(RolloutEnd.ANSWERED, "3", 1)]
    with Checker() as checker:
        judged = judge(made, {TASK.id: TASK}, checker)
    assert [one.verdict.outcome for one in judged] == [Outcome.INFRA_ERROR, Outcome.PASS, Outcome.FAIL]


def test_a_batch_that_is_mostly_lost_is_an_error_with_its_cause_and_no_figure() -> None:
    lost, fine = rollout(RolloutEnd.INFRA_ERROR), rollout(RolloutEnd.TOKENS)
    sound = judge([lost, fine], {TASK.id: TASK}, NobodyIsAsked())
    require_sound(sound, "the disk is full")
    broken = judge([lost, lost, fine], {TASK.id: TASK}, NobodyIsAsked())
    with pytest.raises(InfrastructureError, match=r"2 of 3 rollouts were lost .*: the disk is full"):
        require_sound(broken, "the disk is full")
