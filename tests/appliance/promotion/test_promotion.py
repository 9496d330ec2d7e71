"""From an evaluation to a decision, and from a decision to what is in service."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from good_evidence import good_measurements
from tables import table

from appliance.promotion.evidence import (
    PromotionError,
    aliases_on_promotion,
    aliases_on_rollback,
    budget_of,
    decision_on,
    evidence_of,
)
from appliance.records.evaluations import Approval, Evaluation, ItemResult, ModelResults
from curriculum.sealed import SealedSet, sealed_set
from policies.contract.decision import Decision, DecisionOutcome, GateOutcome
from policies.contract.evidence import TakenBack
from policies.decide import after_service
from policies.policy import load

POLICY = load()
SEALED = sealed_set(512, seed=4)
CHAMPION, CANDIDATE = "a" * 64, "c" * 64


def results(weights: str, passes: int, *, temperature: float = 1.0, skip: int = 0) -> ModelResults:
    """Passes `passes` of every ten questions."""
    return ModelResults(
        weights=weights,
        temperature=temperature,
        items=tuple(
            ItemResult(task=task.id, family=task.taskset, passed=n * 7 % 10 < passes, calls=1, failed_calls=0)
            for n, task in enumerate(SEALED.tasks[skip:])
        ),
        tokens=512 * 60,
        seconds=9.0,
    )


def evaluation(before: int = 4, after: int = 8, skip: int = 0) -> Evaluation:
    return Evaluation(
        id="evaluation-1",
        cycle="cycle-1",
        sealed_set=SEALED.digest,
        candidate=results(CANDIDATE, after, skip=skip),
        champion=results(CHAMPION, before),
        candidate_greedy=results(CANDIDATE, after, temperature=0.0),
        champion_greedy=results(CHAMPION, before, temperature=0.0),
        measurements=good_measurements("2025-03-02T01:50:00+00:00"),
        created="2025-03-02T02:00:00+00:00",
    )


def decide(
    evaluated: Evaluation,
    approvals: list[Approval] | None = None,
    decisions: list[Decision] | None = None,
    *,
    in_service: str | None = CHAMPION,
    history: Sequence[Evaluation] = (),
) -> Decision:
    return decision_on(
        evaluated,
        POLICY,
        in_service=in_service,
        history=history,
        approvals=approvals or [],
        decisions=decisions or [],
        id="decision",
        made_at="2025-03-02T08:00:00+00:00",
    )


def approval(verdict: str, about: Decision, at: str = "09", candidate: str = CANDIDATE) -> Approval:
    return Approval.model_validate(
        {
            "decision": about.digest(),
            "candidate": candidate,
            "verdict": verdict,
            "person": "ada",
            "created": f"2025-03-02T{at}:00:00+00:00",
        }
    )


def test_a_better_candidate_is_held_for_a_person_and_promoted_on_their_word() -> None:
    held = decide(evaluation())
    assert held.outcome is DecisionOutcome.HOLD
    assert [finding.gate for finding in held.findings if finding.outcome is not GateOutcome.PASSED] == ["approval"]
    assert sum(finding.gate.startswith("non_regression/") for finding in held.findings) == 7
    promoted = decide(evaluation(), [approval("approve", held)], [held])
    assert promoted.outcome is DecisionOutcome.PROMOTE


def test_a_word_on_another_decision_or_candidate_does_not_count() -> None:
    held = decide(evaluation())
    elsewhere = held.model_copy(update={"evaluation": "evaluation-0"})
    assert decide(evaluation(), [approval("approve", elsewhere)], [elsewhere]).outcome is DecisionOutcome.HOLD
    older_policy = held.model_copy(update={"policy": "0" * 64})
    assert decide(evaluation(), [approval("approve", older_policy)], [older_policy]).outcome is DecisionOutcome.HOLD
    assert decide(evaluation(), [approval("approve", held)], []).outcome is DecisionOutcome.HOLD
    other = approval("approve", held, candidate="e" * 64)
    assert decide(evaluation(), [other], [held]).outcome is DecisionOutcome.HOLD


def test_the_latest_word_counts_in_whatever_order_the_words_come() -> None:
    held = decide(evaluation())
    yes, no = approval("approve", held, at="09"), approval("reject", held, at="10")
    assert decide(evaluation(), [no, yes], [held]).outcome is DecisionOutcome.REJECT
    assert decide(evaluation(), [yes, no], [held]).outcome is DecisionOutcome.REJECT


def test_a_worse_candidate_is_rejected() -> None:
    assert decide(evaluation(before=8, after=4)).outcome is DecisionOutcome.REJECT


def test_a_candidate_that_was_asked_fewer_questions_is_quarantined() -> None:
    assert decide(evaluation(skip=1)).outcome is DecisionOutcome.QUARANTINE


def test_promotion_moves_the_champion_and_keeps_the_one_before() -> None:
    held = decide(evaluation())
    promoted = decide(evaluation(), [approval("approve", held)], [held])
    assert aliases_on_promotion(promoted, in_service=CHAMPION) == {
        "champion": CANDIDATE,
        "previous": CHAMPION,
        "candidate": None,
    }
    assert aliases_on_promotion(promoted, in_service=None)["previous"] is None


def test_nothing_moves_without_a_decision_to_promote() -> None:
    with pytest.raises(PromotionError, match="hold") as refused:
        aliases_on_promotion(decide(evaluation()), in_service=CHAMPION)
    assert "approval" in refused.value.hint


def test_nothing_moves_when_the_champion_changed_meanwhile() -> None:
    held = decide(evaluation())
    promoted = decide(evaluation(), [approval("approve", held)], [held])
    with pytest.raises(PromotionError, match="another champion"):
        aliases_on_promotion(promoted, in_service="e" * 64)
    assert (
        decide(evaluation(), [approval("approve", held)], [held], in_service="e" * 64).outcome is DecisionOutcome.HOLD
    )


def test_rollback_brings_the_previous_champion_back_and_only_once() -> None:
    moved = aliases_on_rollback(in_service=CANDIDATE, previous=CHAMPION)
    assert moved == {"champion": CHAMPION, "previous": None}
    with pytest.raises(PromotionError) as refused:
        aliases_on_rollback(in_service=CHAMPION, previous=moved["previous"])
    assert refused.value.hint
    with pytest.raises(PromotionError, match="already"):
        aliases_on_rollback(in_service=CHAMPION, previous=CHAMPION)


# nights and quarters


ONE = evaluation()


@cache
def answers(seed: int) -> tuple[SealedSet, tuple[ItemResult, ...], tuple[ItemResult, ...]]:
    """Questions, and the answers of candidate and champion: of 25 questions 3 are gained and 1 is lost."""
    sealed = sealed_set(400, seed=seed)
    items = [
        ItemResult(task=task.id, family=task.taskset, passed=None, calls=1, failed_calls=0) for task in sealed.tasks
    ]
    ours = tuple(item.model_copy(update={"passed": n % 25 < 16}) for n, item in enumerate(items))
    theirs = tuple(item.model_copy(update={"passed": n % 25 < 13 or n % 25 == 24}) for n, item in enumerate(items))
    return sealed, ours, theirs


def night(
    name: str, created: str, *, candidate: str = CANDIDATE, champion: str = CHAMPION, seed: int = 4
) -> Evaluation:
    """A candidate that is 8 points better, on questions of that seed's own."""
    sealed, ours, theirs = answers(seed)
    base = ONE
    return base.model_copy(
        update={
            "id": name,
            "created": created,
            "measurements": good_measurements(created),
            "sealed_set": sealed.digest,
            "candidate": base.candidate.model_copy(update={"items": ours, "weights": candidate}),
            "champion": base.champion.model_copy(update={"items": theirs, "weights": champion}),
        }
    )


def test_fresh_nights_of_the_same_two_models_add_up() -> None:
    nights = [night(f"n{day}", f"2025-03-0{day}T02:00:00+00:00", seed=day) for day in (1, 2)]
    alone, both = (decide(nights[1], history=history) for history in ([], nights))
    odds = [next(one for one in made.findings if one.gate == "evidence").figure or 0 for made in (alone, both)]
    assert odds[1] > odds[0] ** 1.5 > 1
    assert "after 2 nights" in next(one for one in both.findings if one.gate == "evidence").reason


@table(
    "fault",
    [
        "other champion",
        "later",
        "other questions",
        "had seen the questions",
        "verifiers accepted attacks",
        "verifiers not tested",
        "tested in other versions",
        "passed what cannot be solved",
        "a sandbox was open",
        "too many answers lost",
    ],
)
def test_what_is_no_fair_earlier_night_of_the_same_two_adds_nothing(fault: str) -> None:
    tonight = night("n2", "2025-03-02T02:00:00+00:00", seed=2)
    other = night("n1", "2025-03-01T02:00:00+00:00", seed=1)
    if fault == "other champion":
        other = night("n1", other.created, champion="b" * 64, seed=1)
    elif fault == "later":
        other = night("n1", "2025-03-03T02:00:00+00:00", seed=1)
    elif fault == "other questions":
        other = other.model_copy(update={"sealed_set": "0" * 64})
    elif fault == "too many answers lost":
        some = tuple(item.model_copy(update={"passed": None}) for item in other.candidate.items[:20])
        lost = (*some, *other.candidate.items[20:])
        other = other.model_copy(update={"candidate": other.candidate.model_copy(update={"items": lost})})
    else:
        which, change = {
            "had seen the questions": ("contamination", {"found": 1}),
            "verifiers accepted attacks": ("selftest", {"accepted": 3}),
            "verifiers not tested": ("selftest", {"untested": ("exact",)}),
            "tested in other versions": ("selftest", {"tested": "8" * 64}),
            "passed what cannot be solved": ("hacks", {"passed": 40}),
            "a sandbox was open": ("egress", {"held": 8, "open": ("a file",)}),
        }[fault]
        good = good_measurements(other.created)
        changed = getattr(good, which).model_copy(update=change)
        other = other.model_copy(update={"measurements": good.model_copy(update={which: changed})})
    material = evidence_of(tonight, in_service=CHAMPION, history=[other], approvals=[], decisions=[], policy=POLICY)
    assert material.earlier == ()


def test_a_sound_earlier_night_with_a_few_lost_answers_counts() -> None:
    other = night("n1", "2025-03-01T02:00:00+00:00", seed=1)
    tonight = night("n2", "2025-03-02T02:00:00+00:00", seed=2)
    material = evidence_of(tonight, in_service=CHAMPION, history=[other], approvals=[], decisions=[], policy=POLICY)
    assert [one.evaluation for one in material.earlier] == ["n1"]


def test_a_question_asked_again_in_other_words_adds_nothing() -> None:
    """Small tasksets ask the same in other words night after night: only what is asked says whether it is fresh."""
    first, again = (
        named(night(name, f"2025-03-0{day}T02:00:00+00:00", seed=day)) for day, name in enumerate(("n1", "n2"), 1)
    )
    alone, both = (decide(again, history=history) for history in ([], [first]))
    counted = [next(one for one in made.findings if one.gate == "improvement").reason for made in (alone, both)]
    assert "on 400 questions" in counted[0]
    assert "on 400 questions" in counted[1], "every question of the second night was asked on the first"


def named(evaluated: Evaluation) -> Evaluation:
    """With digests of what is asked that are the same on every night."""
    return evaluated.model_copy(
        update={
            side: getattr(evaluated, side).model_copy(
                update={
                    "items": tuple(
                        item.model_copy(update={"question": f"{n:032x}"})
                        for n, item in enumerate(getattr(evaluated, side).items)
                    )
                }
            )
            for side in ("candidate", "champion")
        }
    )


def test_what_was_taken_out_of_service_since_an_evaluation_does_not_come_back_by_it() -> None:
    """It was evaluated once more while it was in service, and taken out before that was decided on."""
    in_service = night("n1", "2025-03-01T02:00:00+00:00", seed=1)
    tonight = night("n2", "2025-03-02T02:00:00+00:00", seed=2)
    promoted = decide(in_service)
    out = TakenBack(at="2025-03-02T03:00:00+00:00", reason="its jobs failed", figure=40.0, threshold=20.0)
    taken = after_service(promoted, out, POLICY, id="taken-back")
    made = decide(tonight, decisions=[taken, promoted], history=[in_service])
    assert made.outcome is DecisionOutcome.QUARANTINE
    assert "its jobs failed" in made.reason
    fresh = night("n3", "2025-03-02T04:00:00+00:00", seed=3)
    later = taken.model_copy(update={"id": "approve", "made_at": "2025-03-02T05:00:00+00:00"})
    again = decide(fresh, decisions=[later, taken, promoted], history=[in_service])
    assert not [one for one in again.findings if one.gate == "service"], "that decision is no second taking back"


def test_a_quarter_counts_each_pair_of_models_once_and_in_the_order_in_which_they_met() -> None:
    history = [
        night("old", "2024-12-31T02:00:00+00:00", candidate="1" * 64),
        night("a1", "2025-01-01T02:00:00+00:00", candidate="2" * 64),
        night("a2", "2025-01-02T02:00:00+00:00", candidate="2" * 64),
        night("self", "2025-01-03T02:00:00+00:00", candidate=CHAMPION),
        night("b", "2025-01-04T02:00:00+00:00", candidate="3" * 64),
        night("c", "2025-01-05T02:00:00+00:00", candidate="4" * 64),
    ]
    assert [budget_of(one, history, POLICY).before for one in history] == [0, 0, 0, 1, 1, 2]
    assert budget_of(history[0], history, POLICY).quarter == "2024-Q4"
    again = night("old-again", "2025-02-01T02:00:00+00:00", candidate="1" * 64)
    assert budget_of(again, history, POLICY).quarter == "2024-Q4"


def test_when_the_budget_is_spent_the_best_candidate_waits_for_the_next_quarter() -> None:
    met = [
        night(f"n{number}", f"2025-03-01T02:00:{number // 60:02}+00:00", candidate=f"{number:064x}")
        for number in range(POLICY.gates.evidence.candidates)
    ]
    held = decide(evaluation(), history=met)
    assert "budget is spent" in held.reason
    assert decide(evaluation(), history=met[1:]).reason == "approval: 0 of 1 people approved"
