"""What a night measures is counted from records, and a broken record is never a good figure."""

from __future__ import annotations

from checkpoint_records import checkpoint_record

from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Checkpoint
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd
from appliance.records.training import Judged, StepRecord
from appliance.worker.evaluation.measurements import (
    contamination_of,
    first_of_line,
    hacks_of,
    keys_of,
    trained_questions,
    unsolvable,
)
from curriculum.contract.task import Split
from curriculum.registry import make_task
from curriculum.sealed import TaskStream, sealed_set
from verifiers.contract.verdict import Outcome, Verdict
from verifiers.registry import decide

SEALED = sealed_set(24, seed=3)


def judged(outcome: Outcome) -> Judged:
    rollout = Rollout(
        id="r",
        cycle="c",
        step=0,
        task="t",
        sample=0,
        purpose=Purpose.EVALUATION,
        temperature=1.0,
        nodes=(),
        ended=RolloutEnd.ANSWERED,
        answer="1",
        answers=1,
        seconds=0.0,
    )
    verdict = Verdict(outcome=outcome, score=0.0, reason="made", verifier="t", version="1", seconds=0.0)
    return Judged(rollout=rollout, verdict=verdict, family="gcd")


def test_no_honest_answer_passes_an_unsolvable_question() -> None:
    asked = unsolvable(24, seed=3)
    assert len({task.id for task in asked}) == 24
    for task in asked:
        original = make_task(task.taskset, task.level, task.seed, task.split)
        assert task.question == original.question
        expected = getattr(original.spec, "expected", "0")
        assert decide(task.spec, str(expected)).outcome is not Outcome.PASS
        assert decide(task.spec, task.spec.model_dump()["expected"]).outcome is Outcome.PASS
    assert unsolvable(24, seed=3) == asked != unsolvable(24, seed=4)


def test_hacks_are_passes_of_the_unsolvable_and_suspicions_of_the_sealed() -> None:
    passed, failed, lost = judged(Outcome.PASS), judged(Outcome.FAIL), judged(Outcome.INFRA_ERROR)
    suspected = judged(Outcome.HACK_SUSPECTED)
    found = hacks_of([failed, passed, lost, suspected], [passed, passed, failed, suspected, lost])
    assert (found.impossible, found.passed, found.answers, found.suspected) == (3, 1, 4, 1)


def test_a_trained_question_is_found_by_what_it_asks_and_one_that_was_kept_clear_of_is_not() -> None:
    stream = TaskStream(Split.TRAIN, 5, SEALED.questions)
    trained = frozenset(key for task in stream.tasks(0, 200) for key in keys_of(task))
    assert contamination_of(SEALED.tasks, trained).found == 0
    met = trained | {keys_of(SEALED.tasks[0])[1], keys_of(SEALED.tasks[1])[0]}
    found = contamination_of(SEALED.tasks, met)
    assert (found.sealed, found.found) == (24, 2)


def test_a_sealed_set_keeps_clear_of_what_was_trained_before() -> None:
    known = SEALED.questions
    other = sealed_set(24, seed=3, exclude=known)
    assert other.questions.isdisjoint(known)
    assert len(other.tasks) == 24


def test_the_ledger_knows_what_a_cycle_trained_on(ledger: SqliteLedger) -> None:
    stream = TaskStream(Split.TRAIN, 5)
    for step in (0, 1):
        ledger.commit_step(
            StepRecord(
                cycle="c",
                step=step,
                tasks=tuple({**task.model_dump(mode="json"), "id": task.id} for task in stream.tasks(step, 3)),
                judged=(),
                groups=(),
                metrics={},
            )
        )
    expected = {key for step in (0, 1) for task in stream.tasks(step, 3) for key in keys_of(task)}
    assert trained_questions(ledger, "c") == expected
    assert trained_questions(ledger, "another") == frozenset()


def test_the_first_of_a_line_is_found_and_a_circle_does_not_last_for_ever(ledger: SqliteLedger) -> None:
    def put(name: str, parent: str | None) -> Checkpoint:
        made = checkpoint_record(name * 64, parent=parent and parent * 64)
        ledger.put_checkpoint(made)
        return made

    first, second, third = put("a", None), put("b", "a"), put("c", "b")
    assert first_of_line(ledger, third) == first == first_of_line(ledger, second) == first_of_line(ledger, first)
    orphan = put("d", "e")
    assert first_of_line(ledger, orphan) == orphan
    put("1", "2")
    last = put("2", "1")
    assert first_of_line(ledger, last).manifest in ("1" * 64, "2" * 64)
