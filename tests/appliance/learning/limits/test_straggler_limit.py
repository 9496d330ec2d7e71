"""The limits of stragglers follow from recorded lengths alone, and none tightens by itself."""

from __future__ import annotations

import json
import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from appliance.learning.limits.rollout_limits import WINDOW, StragglerLimits, StragglerRecipe
from appliance.learning.recipes.recipe import Recipe, TrainingRecipe
from appliance.learning.recipes.stages import Stage

TWICE = StragglerRecipe(past=2.0)
steps = st.lists(
    st.dictionaries(st.sampled_from(["digits", "linear", "powers"]), st.lists(st.integers(0, 500), max_size=12)),
    max_size=12,
)


def observed(lengths: list[list[int]], recipe: StragglerRecipe = TWICE) -> StragglerLimits:
    known = StragglerLimits()
    for step, some in enumerate(lengths):
        known = known.after(step, {"digits": some}, recipe)
    return known


def test_it_is_some_times_the_longest_of_three_steps_that_most_stayed_within() -> None:
    usual, one_long = [*range(11, 21)], [*range(11, 20), 400]
    assert observed([usual, one_long]).of_step(2, TWICE) == {}, "two steps are too few"
    assert observed([usual, one_long, usual]).of_step(3, TWICE) == {"digits": 38}, "the longest of ten has no say"
    assert observed([[30] * 10, usual, usual, usual]).of_step(4, TWICE) == {"digits": 38}, "the first of four has none"


def test_a_taskset_has_the_limit_of_its_own_lengths_however_seldom_it_is_asked() -> None:
    known = StragglerLimits()
    for step in range(90):
        asked = {"digits": [10] * 50, **({"proofs": [300] * 2} if step % 30 == 0 else {})}
        known = known.after(step, asked, TWICE)
    assert known.of_step(90, TWICE) == {"digits": 20, "proofs": 600}


@given(steps, st.integers(0, 3), st.integers(0, 12), st.integers(0, 98))
def test_limits_are_the_same_again_also_when_they_were_saved_and_however_much_is_known_beyond_the_bound(
    lengths: list[dict[str, list[int]]], staleness: int, half: int, first: int
) -> None:
    known = StragglerLimits()
    asked: dict[int, dict[str, int]] = {}
    for step, some in enumerate([*lengths, {}], first):
        for ahead in range(staleness + 1):
            limits = known.of_step(step + ahead, TWICE, staleness)
            assert asked.setdefault(step + ahead, limits) == limits, "it was begun with less known, and goes on"
        if step == first + half:  # as a checkpoint writes it
            known = StragglerLimits.model_validate_json(json.dumps(known.model_dump(mode="json"), sort_keys=True))
        known = known.after(step, some, TWICE, staleness)
        assert len(known.lengths) <= 3 * (WINDOW + staleness)


@given(st.floats(1.1, 4), st.floats(0.5, 0.95), st.lists(st.integers(1, 300), min_size=5, max_size=20))
def test_what_is_cut_too_often_is_cut_less_soon(past: float, share: float, wanted: list[int]) -> None:
    """Rollouts that want to be this long, step after step, are cut by the rule that looks at what was cut."""
    recipe, known, limit = StragglerRecipe(past=past, share=share), observed([[1] * 5] * WINDOW), 0
    for step in range(WINDOW, WINDOW + 150):
        limit = known.of_step(step, recipe)["digits"]
        known = known.after(step, {"digits": [min(one, limit) for one in wanted]}, recipe)
    assert sum(one > limit for one in wanted) <= (1 - share) * len(wanted) + 1e-9


def test_nothing_is_cut_unless_it_is_asked_for_and_a_limit_that_could_not_rise_is_refused() -> None:
    usual = StragglerRecipe()
    assert observed([[5] * 4] * 9, usual).of_step(9, usual) == {}
    for past in (0.5, 1.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValidationError):
            StragglerRecipe(past=past)
    for share in (0.4, 1.0):
        with pytest.raises(ValidationError):
            StragglerRecipe(past=2, share=share)


def test_checkpoints_and_trainings_of_before_know_the_same_recipe() -> None:
    changed = partial(TrainingRecipe, stragglers=TWICE)
    assert TrainingRecipe(stragglers=StragglerRecipe()).digest() == TrainingRecipe().digest() != changed().digest()
    stage = Stage(name="a", kind="rl", recipe=Recipe())
    before = stage.model_dump(mode="json")
    del before["recipe"]["training"]["stragglers"]
    assert "stragglers" not in json.dumps(before)
    cut = Stage(name="a", kind="rl", recipe=Recipe(training=changed()))
    assert len({stage.digest(), Stage.model_validate(before).digest(), cut.digest()}) == 2
    assert cut.digest() == super(Stage, cut).digest()


def test_a_step_without_rollouts_says_nothing_and_one_of_empty_answers_leaves_room_for_a_token() -> None:
    assert observed([[4] * 3, [], [4] * 3]).of_step(3, TWICE) == {}
    assert observed([[0] * 3] * 3).of_step(3, TWICE) == {"digits": 2}
