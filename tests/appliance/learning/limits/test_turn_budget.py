"""The budget of tool calls grows with success or steps, and never shrinks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from appliance.learning.limits.rollout_limits import TurnBudget, TurnRecipe
from appliance.learning.recipes.recipe import TrainingRecipe
from curriculum.difficulty import Place, Seen

MOST = 6
steps = st.lists(
    st.lists(
        st.builds(
            lambda level, passed, failed: Seen(Place("digits", level), passed, passed + failed),
            st.integers(0, 2),
            st.integers(0, 16),
            st.integers(0, 16),
        ),
        max_size=4,
    ),
    max_size=20,
)


def run(recipe: TurnRecipe, observed: list[list[Seen]]) -> list[TurnBudget]:
    budget = recipe.begun(MOST)
    assert budget is not None
    found = [budget]
    for seen in observed:
        found.append(found[-1].after(seen, recipe, MOST))
    return found


@given(steps, st.integers(1, 9), st.integers(1, 3), st.integers(0, 4), st.floats(0.1, 1))
def test_it_never_shrinks_nor_passes_the_agents_and_is_the_same_again_also_when_it_was_saved(
    observed: list[list[Seen]], first: int, more: int, every: int, at: float
) -> None:
    recipe = TurnRecipe(first=first, more=more, every=every, at=at)
    found = run(recipe, observed)
    calls = [one.calls for one in found]
    assert calls == sorted(calls)
    assert max(calls) <= MOST
    half = len(observed) // 2
    saved = TurnBudget.model_validate_json(found[half].model_dump_json())
    for seen in observed[half:]:
        saved = saved.after(seen, recipe, MOST)
    assert saved == found[-1]


def test_it_grows_on_success_before_its_steps_are_over_and_on_steps_without_success() -> None:
    good, bad = ([Seen(Place("digits", 0), passed, 16)] for passed in (12, 0))
    recipe = TurnRecipe(first=1, every=3, at=0.5)
    assert [one.calls for one in run(recipe, [good, good])] == [1, 2, 3]
    assert [one.calls for one in run(recipe, [bad] * 6)] == [1, 1, 1, 2, 2, 2, 3]
    assert [one.calls for one in run(TurnRecipe(first=1), [bad] * 6)] == [1] * 7


def test_a_level_that_is_asked_often_counts_no_more_than_one_that_is_asked_seldom() -> None:
    often = [Seen(Place("digits", 0), 16, 16)] * 9
    seldom = [Seen(Place("digits", 1), 0, 16)]
    assert [one.calls for one in run(TurnRecipe(first=1, at=0.6), [often + seldom] * 3)] == [1] * 4


def test_what_is_hardly_known_has_no_say() -> None:
    assert run(TurnRecipe(first=1), [[Seen(Place("digits", 0), 2, 2)]])[-1].calls == 1


def test_without_a_first_budget_there_is_none_and_looking_ahead_is_refused_with_one() -> None:
    assert TurnRecipe().begun(MOST) is None
    with pytest.raises(ValidationError, match="first needs max_staleness = 0"):
        TrainingRecipe(max_staleness=1, turns=TurnRecipe(first=1))
    assert TrainingRecipe(turns=TurnRecipe()).digest() == TrainingRecipe().digest()


def test_an_agent_that_may_make_no_calls_has_no_budget_of_them() -> None:
    assert TurnRecipe(first=1).begun(0) is None
