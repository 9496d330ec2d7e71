"""What needs no verifier is decided here; a broken machine is never a reward and never goes unnoticed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from appliance.agent.judging import judge, require_sound
from appliance.records import Ended, Message, Purpose, Role, Rollout
from curriculum.task import Split, Task
from runtime.errors import InfrastructureError
from verifiers.checker import Checker
from verifiers.spec import IntegerSpec, Spec
from verifiers.verdict import Outcome, Verdict

TASK = Task(family="f", level=0, seed=0, split=Split.TRAIN, prompt="1+1?", spec=IntegerSpec(expected="2"))


def rollout(ended: Ended, answer: str | None = None, answers: int = 0) -> Rollout:
    return Rollout(
        id="r",
        cycle="c",
        step=0,
        task=TASK.id,
        sample=0,
        purpose=Purpose.TRAIN,
        weights="w",
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
    made = [rollout(Ended.TOKENS), rollout(Ended.TURNS), rollout(Ended.ANSWERED, None, 2)]
    judged = judge(made, {TASK.id: TASK}, NobodyIsAsked())
    assert [one.verdict.outcome for one in judged] == [Outcome.FAIL] * 3
    assert "tokens" in judged[0].verdict.reason
    assert "tool calls" in judged[1].verdict.reason
    assert "2 final answers" in judged[2].verdict.reason


def test_an_answer_is_verified_in_its_place() -> None:
    made = [rollout(Ended.INFRA_ERROR), rollout(Ended.ANSWERED, "2", 1), rollout(Ended.ANSWERED, "3", 1)]
    with Checker() as checker:
        judged = judge(made, {TASK.id: TASK}, checker)
    assert [one.verdict.outcome for one in judged] == [Outcome.INFRA_ERROR, Outcome.PASS, Outcome.FAIL]


def test_a_batch_that_is_mostly_lost_is_an_error_with_its_cause_and_no_figure() -> None:
    lost, fine = rollout(Ended.INFRA_ERROR), rollout(Ended.TOKENS)
    sound = judge([lost, fine], {TASK.id: TASK}, NobodyIsAsked())
    require_sound(sound, "the disk is full")
    broken = judge([lost, lost, fine], {TASK.id: TASK}, NobodyIsAsked())
    with pytest.raises(InfrastructureError, match=r"2 of 3 rollouts were lost .*: the disk is full"):
        require_sound(broken, "the disk is full")
