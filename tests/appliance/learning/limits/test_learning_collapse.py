"""Each sign of a collapse is seen, noise and learning are not, and a restart changes nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.learning.limits.early_stopping import CollapseRecipe, CollapseWatch
from appliance.learning.recipes.recipe import TrainingRecipe

SOUND = {"success": 0.5, "entropy": 0.4, "length": 30.0, "mismatch_kl": 1e-6, "gradient_norm": 0.3}
EVERY = CollapseRecipe(entropy_low=0.05, length=4.0)


def watch(steps: list[dict[str, float]], recipe: CollapseRecipe = EVERY) -> CollapseWatch:
    state = CollapseWatch()
    for step, figures in enumerate(steps):
        state = state.observe(step, figures, recipe)
    return state


@pytest.mark.parametrize(
    ("figure", "value", "word"),
    [
        ("success", 0.1, "reward"),
        ("entropy", 0.01, "entropy"),
        ("entropy", 3.0, "entropy"),
        ("length", 200.0, "tokens a rollout"),
        ("length", 5.0, "tokens a rollout"),
        ("mismatch_kl", 1.0, "mismatch"),
        ("gradient_norm", 400.0, "gradient"),
    ],
)
def test_each_sign_is_seen_within_a_window_and_said_with_its_figures(figure: str, value: float, word: str) -> None:
    sound = [SOUND] * 8
    assert watch(sound).seen == ""
    state = watch(sound + [SOUND | {figure: value}] * 4)
    assert word in state.seen
    advice = state.advice(5)
    assert (advice.action, advice.step) == ("stop_and_return_to", 5)
    assert word in advice.reason


def test_a_step_that_nothing_was_learned_from_ends_no_rule() -> None:
    """All groups were equal in the step that closed the first window, and in the newest one."""
    unlearned = {name: SOUND[name] for name in ("success", "length")}
    sound = [*[SOUND] * 3, unlearned, *[SOUND] * 4]
    assert watch(sound).seen == ""
    assert "entropy" in watch([*sound, *[SOUND | {"entropy": 3.0}] * 4]).seen
    assert "gradient" in watch([*sound, *[SOUND | {"gradient_norm": 900.0}] * 3, unlearned]).seen
    later = [unlearned] * 4 + [SOUND] * 8
    assert watch(later).seen == ""
    assert "entropy" in watch([*later, *[SOUND | {"entropy": 3.0}] * 4]).seen


def test_one_odd_step_is_forgiven_and_what_is_not_finite_is_not() -> None:
    assert watch([SOUND] * 8 + [SOUND | {"success": 0.0, "entropy": 0.1}] + [SOUND] * 8).seen == ""
    for name in SOUND:
        assert name in watch([SOUND] * 2 + [SOUND | {name: math.nan}]).seen


def test_learning_is_no_collapse() -> None:
    """Success rises, entropy falls to a tenth, answers get shorter: what the embedded model's nights show."""
    steps = [
        SOUND | {"success": 0.4 + 0.01 * step, "entropy": 0.4 * 0.94**step, "length": 40 - 0.4 * step}
        for step in range(50)
    ]
    assert watch(steps, CollapseRecipe()).seen == ""


def test_a_bound_of_nothing_looks_at_nothing() -> None:
    off = CollapseRecipe(reward_share=0, entropy_high=0, mismatch_kl=0, gradient=0)
    worst = {"success": 0.0, "entropy": 9.0, "length": 900.0, "mismatch_kl": 9.0, "gradient_norm": 1e9}
    assert watch([SOUND] * 8 + [worst] * 8, off).seen == ""


@given(
    st.lists(st.fixed_dictionaries({"success": st.floats(0, 1), "entropy": st.floats(0, 5)}), max_size=20), st.data()
)
def test_a_restart_and_replayed_steps_change_nothing(steps: list[dict[str, float]], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(steps)))
    saved: dict[str, Any] = watch(steps[:cut]).model_dump(mode="json")
    back = data.draw(st.integers(0, cut))
    state = CollapseWatch.model_validate(saved)
    for step in range(back, len(steps)):
        state = state.observe(step, steps[step], EVERY)
    assert state == watch(steps)


def test_a_recipe_without_the_thresholds_has_the_digest_that_it_had() -> None:
    assert TrainingRecipe().digest() == TrainingRecipe(collapse=CollapseRecipe()).digest()
    assert TrainingRecipe().digest() != TrainingRecipe(collapse=CollapseRecipe(window=5)).digest()
