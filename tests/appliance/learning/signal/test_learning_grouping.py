"""A group says what was kept, what it is worth, and why; infrastructure failures are in none."""

from __future__ import annotations

import statistics
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_builders import judged

from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import is_masked, make_group, make_groups, reward_of
from appliance.records.rollouts import RolloutEnd
from appliance.records.training import Judged
from appliance.worker.training.step_sampling import tasks_with_signal
from verifiers.contract.verdict import Ground, Outcome

RECIPE = TrainingRecipe(rollouts_per_task=16, keep=8)


def members(right: int, wrong: int, broken: int = 0, task: str = "t") -> list[Judged]:
    outcomes = [Outcome.PASS] * right + [Outcome.FAIL] * wrong + [Outcome.INFRA_ERROR] * broken
    return [judged(task, i, outcome=outcome) for i, outcome in enumerate(outcomes)]


def test_the_kept_half_has_advantages_of_mean_0_and_spread_1() -> None:
    group = make_group(members(6, 10), RECIPE, seed=1)
    rewards = [group.rewards[i] for i in group.kept]
    assert len(rewards) == len(group.advantages) == 8
    assert rewards.count(0.0) == 5
    assert statistics.fmean(group.advantages) == pytest.approx(0)
    assert statistics.pstdev(group.advantages) == pytest.approx(1)
    assert all((advantage > 0) == (reward == 1) for reward, advantage in zip(rewards, group.advantages, strict=True))
    assert group.reason == "kept 8 of 16: 3 of 6 right, 5 of 10 wrong"


def test_a_rollout_whose_end_or_whose_verdict_the_infrastructure_lost_is_in_no_group() -> None:
    answered = judged(outcome=Outcome.PASS)
    unjudged = answered.model_copy(
        update={"verdict": answered.verdict.model_copy(update={"outcome": Outcome.INFRA_ERROR})}
    )
    broken = answered.model_copy(
        update={"rollout": answered.rollout.model_copy(update={"ended": RolloutEnd.INFRA_ERROR})}
    )
    assert [is_masked(one) for one in (answered, unjudged, broken)] == [False, True, True]


@given(st.permutations(range(16)), st.integers(0, 2**32))
def test_the_order_in_which_rollouts_arrive_changes_nothing(order: list[int], seed: int) -> None:
    whole = members(7, 9)
    assert make_group([whole[i] for i in order], RECIPE, seed) == make_group(whole, RECIPE, seed)


@pytest.mark.parametrize("reward", ["passed", "score"])
def test_who_abstains_earns_more_than_the_wrong_and_less_than_the_right(reward: Literal["passed", "score"]) -> None:
    recipe = RECIPE.model_copy(update={"reward": reward})
    right, wrong, abstains = members(1, 2)
    said = abstains.verdict.model_copy(update={"ground": Ground.ABSTAINED, "score": 0.25})
    abstains = abstains.model_copy(update={"verdict": said})
    assert [reward_of(one, recipe) for one in (wrong, abstains, right)] == [0, 0.25, 1]


def test_seed_and_step_and_task_each_choose_anew() -> None:
    base = make_group(members(8, 8), RECIPE, seed=1)
    other_seed = make_group(members(8, 8), RECIPE, seed=2)
    other_task = make_group(members(8, 8, task="u"), RECIPE, seed=1)
    step = [judged("t", i, correct=i < 8, step=1) for i in range(16)]
    assert len({base.kept, other_seed.kept, other_task.kept, make_group(step, RECIPE, 1).kept}) == 4


def test_a_broken_rollout_is_neither_a_success_nor_a_failure_and_never_listed() -> None:
    group = make_group(members(6, 6, broken=4), RECIPE, seed=0)
    assert len(group.rollouts) == len(group.rewards) == 12
    assert len(group.kept) == 6
    assert "4 of 16 masked after infrastructure failures" in group.reason


def test_a_group_that_lost_more_than_half_is_dropped_and_says_so() -> None:
    group = make_group(members(4, 3, broken=9), RECIPE, seed=0)
    assert group.kept == group.advantages == ()
    assert group.reason.startswith("dropped: 7 of 16 rollouts left, too few to compare")


def test_a_group_of_broken_rollouts_only_is_dropped_without_a_reward() -> None:
    group = make_group(members(0, 0, broken=16), RECIPE, seed=0)
    assert (group.rollouts, group.rewards, group.kept) == ((), (), ())


@pytest.mark.parametrize(("right", "reason"), [(16, "right"), (0, "wrong")])
def test_equal_rewards_carry_no_signal(right: int, reason: str) -> None:
    group = make_group(members(right, 16 - right), RECIPE, seed=0)
    assert group.kept == ()
    assert group.reason == f"dropped: all 16 are {reason}, nothing to compare"


def test_a_broken_rollout_is_no_part_of_what_the_others_are_compared_with() -> None:
    """Of what is kept, the mean and the spread are those of a group in which the broken ones never were."""
    recipe = TrainingRecipe(rollouts_per_task=4, keep=4, objective="dr_grpo")
    group = make_group(members(1, 2, broken=1), recipe, seed=0)
    assert group.kept == (0, 1, 2)
    assert group.advantages == pytest.approx((2 / 3, -1 / 3, -1 / 3))


def scored(*scores: float) -> list[Judged]:
    rollouts = [judged("t", i, correct=score == 1) for i, score in enumerate(scores)]
    return [
        one.model_copy(update={"verdict": one.verdict.model_copy(update={"score": score})})
        for one, score in zip(rollouts, scores, strict=True)
    ]


def test_fractions_of_a_reward_are_compared_where_the_recipe_pays_for_them() -> None:
    recipe = TrainingRecipe(rollouts_per_task=4, keep=4, objective="dr_grpo", reward="score")
    group = make_group(scored(0.75, 0.25, 0.5, 0.5), recipe, seed=0)
    assert group.rewards == (0.75, 0.25, 0.5, 0.5)
    assert group.advantages == pytest.approx((0.25, -0.25, 0.0, 0.0))
    assert group.reason == "kept 4 of 4: 1 of 1 right, 3 of 3 wrong"
    alike = make_group(scored(0.1, 0.1, 0.1, 0.1), recipe, seed=0)
    assert alike.reason == "dropped: all 4 are worth 0.1, nothing to compare"
    passed = make_group(scored(0.75, 0.25, 0.5, 0.5), recipe.model_copy(update={"reward": "passed"}), seed=0)
    assert passed.reason == "dropped: all 4 are wrong, nothing to compare"


def test_the_length_of_a_rollout_comes_to_the_objective() -> None:
    recipe = TrainingRecipe(rollouts_per_task=4, keep=4, objective="reinforce")
    rollouts = [judged("t", i, correct=i == 0, calls=(True,) * i) for i in range(4)]
    group = make_group(rollouts, recipe, seed=0)
    assert group.advantages == pytest.approx((3**0.5, *(-(3**-0.5) / turns for turns in (2, 3, 4))))


def test_a_suspected_hack_earns_nothing() -> None:
    group = make_group([*members(8, 7), judged("t", 15, outcome=Outcome.HACK_SUSPECTED)], RECIPE, seed=0)
    assert group.rewards[15] == 0.0


def test_plain_grpo_with_an_unlucky_draw_says_what_it_drew() -> None:
    recipe = TrainingRecipe(rollouts_per_task=16, keep=2, selector="uniform")
    reasons = {make_group(members(1, 15), recipe, seed).reason for seed in range(40)}
    assert "dropped: the 2 drawn of 16 are all alike, nothing to compare" in reasons


def test_tasks_are_grouped_in_the_order_in_which_they_came() -> None:
    rollouts = [one for task in "bca" for one in members(3, 3, task=task)]
    Random(0).shuffle(rollouts)
    groups = make_groups(rollouts, TrainingRecipe(rollouts_per_task=6, keep=3), seed=0)
    assert [group.task for group in groups] == list(dict.fromkeys(one.rollout.task for one in rollouts))
    assert len({group.id for group in groups}) == 3


def test_rollouts_of_several_tasks_are_no_group() -> None:
    with pytest.raises(ValueError, match="one task at one step"):
        make_group([judged("a"), judged("b")], RECIPE, seed=0)


@pytest.mark.parametrize(("right", "wrong", "broken"), [(3, 4, 9), (4, 4, 8), (8, 0, 8), (1, 0, 15)])
def test_a_task_is_made_up_for_exactly_where_its_group_is_dropped(right: int, wrong: int, broken: int) -> None:
    sampled = members(right, wrong, broken)
    assert tasks_with_signal(sampled, RECIPE) == bool(make_group(sampled, RECIPE, seed=1).kept)
