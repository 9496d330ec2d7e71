"""The limit of stragglers follows from recorded lengths alone, and never tightens by itself."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from appliance.learning.recipe import TrainingRecipe
from appliance.learning.straggler_limit import WINDOW, StragglerLimit, StragglerRecipe

TWICE = StragglerRecipe(past=2.0)
steps = st.lists(st.lists(st.integers(0, 500), max_size=12), max_size=12)


def observed(lengths: list[list[int]], recipe: StragglerRecipe = TWICE, staleness: int = 0) -> StragglerLimit:
    known = StragglerLimit()
    for step, some in enumerate(lengths):
        known = known.after(step, some, recipe, staleness)
    return known


def test_it_is_some_times_the_longest_of_three_steps_that_most_stayed_within() -> None:
    usual, one_long = [*range(11, 21)], [*range(11, 20), 400]
    assert observed([usual, one_long]).of_step(2, TWICE) is None, "two steps are too few"
    assert observed([usual, one_long, usual]).of_step(3, TWICE) == 2 * 19, "the tenth of ten has no say"
    assert observed([[30] * 10, usual, usual, usual]).of_step(4, TWICE) == 2 * 19, "the first of four has none"


@given(steps, st.integers(0, 3), st.integers(0, 12))
def test_a_limit_is_the_same_again_also_when_it_was_saved_and_however_much_is_known_beyond_its_bound(
    lengths: list[list[int]], staleness: int, half: int
) -> None:
    known = StragglerLimit()
    asked: dict[int, int | None] = {}
    for step, some in enumerate([*lengths, []]):
        for ahead in range(staleness + 1):
            limit = known.of_step(step + ahead, TWICE, staleness)
            assert asked.setdefault(step + ahead, limit) == limit, "it was begun with less known, and goes on with more"
        if step == half:
            known = StragglerLimit.model_validate_json(known.model_dump_json())
        known = known.after(step, some, TWICE, staleness)
        assert len(known.lengths) <= WINDOW + staleness


@given(st.floats(1.1, 4), st.floats(0.5, 0.95), st.lists(st.integers(1, 300), min_size=5, max_size=20))
def test_what_is_cut_too_often_is_cut_less_soon(past: float, share: float, wanted: list[int]) -> None:
    """Rollouts that want to be this long, step after step, are cut by the rule that looks at what was cut."""
    recipe, known, limit = StragglerRecipe(past=past, share=share), observed([[1] * 5] * WINDOW), math.inf
    for step in range(WINDOW, WINDOW + 150):
        limit = known.of_step(step, recipe) or math.inf
        known = known.after(step, [min(one, math.ceil(limit)) for one in wanted], recipe)
    assert sum(one > limit for one in wanted) <= (1 - share) * len(wanted) + 1e-9


def test_nothing_is_cut_unless_it_is_asked_for_and_a_limit_that_could_not_rise_is_refused() -> None:
    usual = StragglerRecipe()
    assert observed([[5] * 4] * 9, usual).of_step(9, usual) is None
    for past in (0.5, 1.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValidationError):
            StragglerRecipe(past=past)
    for share in (0.4, 1.0):
        with pytest.raises(ValidationError):
            StragglerRecipe(past=2, share=share)


def test_checkpoints_of_before_know_the_same_recipe() -> None:
    changed = partial(TrainingRecipe, stragglers=TWICE)
    assert TrainingRecipe(stragglers=StragglerRecipe()).digest() == TrainingRecipe().digest() != changed().digest()


def test_a_step_without_rollouts_says_nothing_and_one_of_empty_answers_leaves_room_for_a_token() -> None:
    assert observed([[4] * 3, [], [4] * 3]).of_step(3, TWICE) is None
    assert observed([[0] * 3] * 3).of_step(3, TWICE) == 2
