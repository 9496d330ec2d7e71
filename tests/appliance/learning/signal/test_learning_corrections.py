"""What sampler and trainer disagree on is corrected once; where that cannot be right the recipe is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from loss_cases import VARIANTS, loss_cases, ours
from pydantic import ValidationError
from tables import table

from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipes.recipe import MismatchRecipe, TrainingRecipe
from appliance.learning.signal.corrections import Correction, correct, corrected_losses

RECORDED = json.loads((Path(__file__).resolve().parents[3] / "fixtures" / "trl_losses.json").read_text())
RATIOS = (0.25, 0.5, 1.5, 4.0, 8.0)


def corrected(rule: str, counted: bool) -> Correction:
    """Of tokens with these ratios, and one more that is masked."""
    logprobs = torch.tensor([[*RATIOS, 100.0]], dtype=torch.float64).log()
    mask = torch.tensor([[True] * len(RATIOS) + [False]])
    recipe = MismatchRecipe.model_validate({"rule": rule})
    return correct(logprobs, torch.zeros_like(logprobs), mask, recipe, counted)


def test_truncated_importance_sampling_by_hand() -> None:
    found = corrected("truncate", counted=False)
    assert found.weights[0].tolist() == pytest.approx([0.25, 0.5, 1.5, 2.0, 2.0, 1.0])
    assert found.corrected[0].tolist() == [False, False, False, True, True, False]
    assert not found.masked.any()


def test_masking_by_hand() -> None:
    found = corrected("mask", counted=False)
    assert found.weights[0].tolist() == pytest.approx([0.0, 0.5, 1.5, 4.0, 0.0, 1.0])
    assert found.masked[0].tolist() == [True, False, False, False, True, False]
    assert corrected("mask", counted=True).weights[0].tolist() == [0.0, 1.0, 1.0, 1.0, 0.0, 1.0]
    assert corrected("none", counted=False).weights[0].tolist() == [1.0] * 6


def test_rejecting_samples_by_hand() -> None:
    """The first sample's ratios have the geometric mean 1, the second's 2, the third's 0.25; 8 has its mask off."""
    ratios = torch.tensor([[0.1, 10.0, 8.0], [2.0, 2.0, 2.0], [0.25, 0.25, 8.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False], [True, True, True], [True, True, False]])
    recipe = MismatchRecipe(rule="reject", low=0.5, high=1.5)
    found = correct(ratios.log(), torch.zeros_like(ratios), mask, recipe, counted=False)
    assert found.masked.tolist() == [[False] * 3, [True] * 3, [True, True, False]]
    assert found.weights[0].tolist() == pytest.approx([0.1, 10.0, 1.0])
    assert not found.weights[mask & found.masked].any()
    counted = correct(ratios.log(), torch.zeros_like(ratios), mask, recipe, counted=True)
    assert counted.weights[0].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", sorted(name for name, one in OBJECTIVES.items() if one.anchor != "sampler"))
def test_a_ratio_is_in_the_gradient_once(name: str) -> None:
    """Whoever carries it, the objective over the sampler or the correction over the trainer: a token that the trainer
    finds 1.1 times as likely pulls 1.1 times as hard, not 1.21 times."""
    logprobs = torch.full((1, 1), -1.0, dtype=torch.float64, requires_grad=True)
    sampled = logprobs.detach() - torch.tensor(1.1, dtype=torch.float64).log()
    arguments = (sampled, torch.ones(1, 1).double(), torch.ones(1, 1).bool(), (0.5, 0.5))
    gradients = []
    for settings in (
        {},
        {"rule": "mask"},
        {"rule": "truncate", "anchor": "trainer"},
        {"rule": "mask", "anchor": "trainer"},
        {"rule": "reject", "anchor": "trainer"},
    ):
        recipe = MismatchRecipe.model_validate(settings)
        made = corrected_losses(OBJECTIVES[name], logprobs, *arguments, recipe)
        gradients.append(torch.autograd.grad(made.tokens.losses.sum(), logprobs)[0].item())
        assert made.ratios.item() == pytest.approx(1.1)
    assert gradients == pytest.approx([-1.0 if name == "reinforce" else -1.1, -1.1, -1.1, -1.1, -1.1])


@pytest.mark.parametrize("name", sorted(OBJECTIVES.keys() - {"reinforce"}))
def test_what_a_ratio_corrects_already_is_not_corrected_again(name: str) -> None:
    with pytest.raises(ValidationError, match="would apply it twice"):
        TrainingRecipe(objective=name, mismatch=MismatchRecipe(rule="truncate"))
    assert TrainingRecipe(objective=name, mismatch=MismatchRecipe(rule="mask")).mismatch.rule == "mask"


def test_without_a_ratio_there_is_nothing_to_count_twice() -> None:
    assert TrainingRecipe(objective="reinforce", mismatch=MismatchRecipe(rule="truncate"))


@table("name", OBJECTIVES)
def test_who_bounds_the_distance_from_the_sampler_keeps_to_its_log_probabilities(name: str) -> None:
    decoupled = MismatchRecipe(rule="truncate", anchor="trainer")
    if name in ("cispo", "dppo"):
        with pytest.raises(ValidationError, match=f"{name} bounds the distance from the sampler"):
            TrainingRecipe(objective=name, mismatch=decoupled)
    else:
        assert TrainingRecipe(objective=name, mismatch=decoupled).mismatch == decoupled
        with pytest.raises(ValidationError, match="needs one update per step, not 2"):
            TrainingRecipe(objective=name, minibatches=2, mismatch=decoupled)


@pytest.mark.parametrize(("name", "value"), [("top_p", 0.9), ("top_k", 50), ("min_p", 0.05)])
def test_training_on_a_part_of_the_distribution_is_refused_and_says_why(name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=f"with {name} = {value:g} .* off by the kept mass"):
        TrainingRecipe.model_validate({name: value})


def test_a_temperature_that_vllm_would_raise_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"greater than or equal to 0\.01"):
        TrainingRecipe(temperature=0.005)


@pytest.mark.parametrize("variant", VARIANTS)
def test_c7_losses_and_gradients_are_those_of_trl(variant: str) -> None:
    """On 200 random batches, recorded by `benchmarks/trl_losses.py`, which says what is not compared and why."""
    recorded = RECORDED["losses"][variant]
    assert len(recorded) == 200
    for case, (loss, gradient) in zip(loss_cases(200), recorded, strict=True):
        assert ours(variant, case) == (pytest.approx(loss, abs=1e-10, rel=0), pytest.approx(gradient, abs=1e-10, rel=0))
