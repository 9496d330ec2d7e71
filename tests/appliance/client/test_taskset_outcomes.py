"""What is said of a taskset follows from counts alone."""

from __future__ import annotations

from appliance.client.taskset_outcomes import OutcomeState, outcomes_of, why_unsolved
from appliance.records.cycles import Cycle, CycleState
from appliance.records.evaluations import Evaluation, ItemResult, ModelResults
from appliance.records.rollouts import Purpose
from appliance.records.training import PassCount

LIMITS = (448, "448 tokens", "4")


def count(level: int = 0, family: str = "digits", **figures: int) -> PassCount:
    known = {"rollouts": 8, "passed": 0, "broken": 0, **figures}
    return PassCount(cycle="n", purpose=Purpose.TRAIN, family=family, level=level, **known)


def cycle(*named: str, **plan: object) -> Cycle:
    recipe = {"tasksets": named, "agent": {"max_tokens": 448, "max_calls": 4}}
    return Cycle(
        id="n", kind="night", seed=0, plan={"recipe": recipe, "tasksets": named, **plan}, phase="done",
        state=CycleState.DONE, created="", updated="",
    )  # fmt: skip


def test_the_two_commonest_ways_are_named_the_commonest_first() -> None:
    assert why_unsolved([count(cut=5, no_room=2, formless=1)], LIMITS) == (
        "5 of 8: ran out of 448 tokens; 2 of 8: the question exceeds 448 tokens"
    )
    assert why_unsolved([count(), count(1, turns=3, malformed=2)], LIMITS) == (
        "13 of 16: a wrong answer; 3 of 16: used more than 4 tool calls; 2 with an invalid tool call"
    )


def test_levels_that_were_never_solved_are_named_where_others_were_learned_from() -> None:
    (one,) = outcomes_of(cycle("digits"), [count(0, passed=3, learned=1, groups=1), count(1), count(2)], [])
    assert one.state is OutcomeState.LEARNED
    assert one.said == "learned: levels 1, 2 never solved: 16 of 16: a wrong answer"
    (one,) = outcomes_of(cycle("digits"), [count(0, passed=8), count(1)], [])
    assert one.said == "nothing to learn from: level 1 never solved: 8 of 8: a wrong answer"


def test_what_broke_was_not_asked_or_was_left_out_is_neither_solved_nor_unsolved() -> None:
    found = outcomes_of(
        cycle("digits", "linear", "powers", left_out={"powers": "no tool"}), [count(rollouts=0, broken=3)], []
    )
    assert [one.state for one in found] == [OutcomeState.BROKEN, OutcomeState.NOT_ASKED, OutcomeState.LEFT_OUT]
    assert found[0].reason.startswith("all 3 rollouts were lost")
    assert found[2].said == "left out: no tool"


def test_why_nothing_was_asked_is_said_when_training_is_over_and_not_before() -> None:
    def said(state: CycleState, **plan: object) -> str:
        (one,) = outcomes_of(cycle("digits", **plan).model_copy(update={"state": state}), [], [])
        return one.said

    assert said(CycleState.RUNNING) == said(CycleState.SET_ASIDE) == "not yet asked"
    assert "none of its tasks was drawn" in said(CycleState.RUNNING, candidate="c" * 64)
    assert said(CycleState.CANCELLED) == "not asked: the cycle was cancelled before one of its tasks was drawn"


def test_sealed_questions_count_for_both_models_or_for_none() -> None:
    def results(weights: str, *passed: bool | None) -> ModelResults:
        items = [ItemResult(task=str(at), family="digits", passed=one, calls=0, failed_calls=0) for at, one in
                 enumerate(passed)]  # fmt: skip
        return ModelResults(weights=weights, temperature=1, items=tuple(items), tokens=0, seconds=0)

    before, after = results("a", False, True, None, False), results("b", True, True, True, None)
    evaluation = Evaluation(
        id="e", cycle="n", sealed_set="s", candidate=after, champion=before, candidate_greedy=after,
        champion_greedy=before, created="",
    )  # fmt: skip
    (one,) = outcomes_of(cycle("digits"), [count(passed=8)], [evaluation])
    assert (one.sealed, one.champion, one.candidate) == (2, 1, 2)


def test_nothing_is_said_before_it_is_known_what_is_asked_nor_where_nothing_is_trained() -> None:
    night = cycle("digits")
    assert outcomes_of(night.model_copy(update={"plan": {"recipe": {}}}), [], []) == []
    assert outcomes_of(night.model_copy(update={"kind": "evaluation"}), [], []) == []


def test_where_stragglers_are_cut_the_conversations_tokens_are_not_the_only_end_that_is_named() -> None:
    known = cycle("digits")
    recipe = {**known.plan["recipe"], "training": {"stragglers": {"past": 2.0}}}
    stages = [{"recipe": recipe}, {"recipe": known.plan["recipe"]}]
    for plan in ({"recipe": recipe}, {"stages": stages}):
        (one,) = outcomes_of(known.model_copy(update={"plan": {**known.plan, **plan}}), [count(cut=8)], [])
        assert one.said == "never solved: 8 of 8: ran out of 448 tokens or was cut as a straggler"
