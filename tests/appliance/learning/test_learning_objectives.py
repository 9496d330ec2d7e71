"""Objectives against numbers worked out by hand, and gradients against references; nothing comes from masked tokens."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from appliance.learning.objectives.grpo import GRPO
from appliance.learning.objectives.objective import Objective
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipe import TrainingRecipe

CLIP = (0.20, 0.28)


def logs(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).log()


def losses(
    objective: Objective, ratios: Tensor, advantages: tuple[float, ...], clip: tuple[float, float] | None = None
) -> tuple[list[list[float]], list[list[bool]]]:
    """Per-token losses, and what was clipped, of log-ratios [B, T]; the last token of each row is masked."""
    mask = torch.ones_like(ratios).bool()
    mask[:, -1] = False
    each = torch.tensor(advantages, dtype=torch.float64)[:, None].expand_as(ratios)
    found = objective.losses(ratios, torch.zeros_like(ratios), each, mask, clip or objective.clip)
    return found.losses.tolist(), found.clipped.tolist()


def test_grpo_by_hand() -> None:
    """1.5 is held at 1.28 where it is praised, 0.5 at 0.8 where it is blamed; four tokens weigh the same."""
    found, held = losses(OBJECTIVES["grpo"], logs((1.5, 0.5, 9.0), (1.5, 0.5, 9.0)), (1.0, -1.0))
    assert [*found[0], *found[1]] == pytest.approx([-1.28, -0.5, 0.0, 1.5, 0.8, 0.0])
    assert held == [[True, False, False], [False, True, False]]
    assert OBJECTIVES["grpo"].denominator([2, 2], 10) == 4
    assert OBJECTIVES["grpo"].advantages([1.0, 0.0, 0.0, 0.0]) == pytest.approx(
        [1.7320508, -0.5773503, -0.5773503, -0.5773503]
    )


def test_dr_grpo_by_hand() -> None:
    """No spread in the advantage, and a denominator that no length changes."""
    found, held = losses(OBJECTIVES["dr_grpo"], logs((1.5, 0.5, 9.0), (1.5, 0.5, 9.0)), (0.75, -0.25))
    assert [*found[0], *found[1]] == pytest.approx([-0.9, -0.375, 0.0, 0.375, 0.2, 0.0])
    assert held == [[True, False, False], [False, True, False]]
    assert OBJECTIVES["dr_grpo"].denominator([2, 2], 10) == OBJECTIVES["dr_grpo"].denominator([9, 1], 10) == 20
    assert OBJECTIVES["dr_grpo"].advantages([1.0, 0.0, 0.0, 0.0]) == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_gspo_by_hand() -> None:
    """An answer has one ratio, the geometric mean of its tokens', and is held back as a whole."""
    ratios = torch.tensor([[math.log(2), -math.log(2), 3.0], [8e-4, 2e-4, 3.0], [8e-4, 2e-4, 3.0]], dtype=torch.float64)
    found, held = losses(OBJECTIVES["gspo"], ratios, (1.0, 1.0, -1.0))
    assert found[0] == pytest.approx([-0.5, -0.5, 0.0], abs=1e-12)
    assert found[1] == pytest.approx([-0.5002, -0.5002, 0.0], abs=1e-12)
    assert found[2] == pytest.approx([0.50025006, 0.50025006, 0.0], abs=1e-8)
    assert held == [[False] * 3, [True, True, False], [False] * 3]
    assert OBJECTIVES["gspo"].denominator([2, 7], 10) == 2
    assert OBJECTIVES["gspo"].advantages([1.0, 0.0]) == pytest.approx([1.0, -1.0])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_are_those_of_the_loss(name: str) -> None:
    """By finite differences, at ratios that lie away from the corners of the clip; masked tokens have none."""
    torch.manual_seed(1)
    logprobs = (0.3 * torch.randn(4, 5, dtype=torch.float64)).requires_grad_()
    mask = torch.rand(4, 5) < 0.7
    advantages = torch.tensor([1.5, -0.5, 0.7, -2.0], dtype=torch.float64)[:, None].expand(4, 5)

    def value(given: Tensor) -> Tensor:
        made = OBJECTIVES[name].losses(given, torch.zeros(4, 5).double(), advantages, mask, (0.21, 0.27))
        return made.losses.sum()

    assert torch.autograd.gradcheck(value, logprobs)
    value(logprobs).backward()
    assert logprobs.grad is not None
    assert (logprobs.grad[~mask] == 0).all()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_equal_rewards_have_no_advantages(name: str) -> None:
    assert OBJECTIVES[name].advantages([]) == ()
    with pytest.raises(ValueError, match="equal rewards"):
        OBJECTIVES[name].advantages([1.0, 1.0])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_recipe_names_the_objective_whose_clip_it_has_unless_it_says_otherwise(name: str) -> None:
    recipe = TrainingRecipe(objective=name)
    assert (recipe.clip_low, recipe.clip_high) == OBJECTIVES[name].clip
    assert TrainingRecipe(objective=name, clip_low=0.1).clip_low == 0.1
    assert TrainingRecipe.model_validate_json(recipe.model_dump_json()) == recipe


def test_an_objective_that_nobody_knows_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValidationError, match="no objective 'ppo'; there are dr_grpo, grpo, gspo"):
        TrainingRecipe(objective="ppo")


def reference(logprobs: Tensor, sampled: Tensor, advantages: Tensor, mask: Tensor) -> Tensor:
    """Equation 2 of 2508.20722, one token after another, clip .20 / .28."""
    loss = 0.0 * logprobs.sum()
    for row in range(logprobs.shape[0]):
        for at in range(logprobs.shape[1]):
            if mask[row, at]:
                ratio = (logprobs[row, at] - sampled[row, at]).exp()
                bounded = min(max(ratio.item(), 0.8), 1.28)
                advantage = advantages[row, at].item()
                loss = loss - (
                    ratio * advantage if ratio.item() * advantage <= bounded * advantage else bounded * advantage
                )
    return loss


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 9))
def test_loss_and_gradient_are_those_of_the_reference(seed: int, rows: int, width: int) -> None:
    torch.manual_seed(seed)
    logprobs = (-3 * torch.rand(rows, width, dtype=torch.float64)).requires_grad_()
    sampled = logprobs.detach() + 0.4 * torch.randn(rows, width, dtype=torch.float64)
    advantages = torch.randn(rows, 1, dtype=torch.float64).expand(rows, width)
    mask = torch.rand(rows, width) < 0.6
    result = GRPO.losses(logprobs, sampled, advantages, mask, CLIP)
    expected = reference(logprobs, sampled, advantages, mask)
    assert result.losses.sum().item() == pytest.approx(expected.item(), abs=1e-12)
    (gradient,) = torch.autograd.grad(result.losses.sum(), logprobs)
    (slow,) = torch.autograd.grad(expected, logprobs)
    assert torch.allclose(gradient, slow, atol=1e-12)
    assert (gradient[~mask] == 0).all()
    assert result.clipped.sum().item() == ((gradient == 0) & mask & (advantages != 0)).sum().item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "moves"),
    [
        (1.27, 1.0, True),
        (1.29, 1.0, False),
        (0.79, 1.0, True),
        (0.81, -1.0, True),
        (0.79, -1.0, False),
        (1.29, -1.0, True),
    ],
)
def test_the_clip_is_wider_above_and_never_stops_a_step_back(ratio: float, advantage: float, moves: bool) -> None:
    logprobs = torch.tensor([[math.log(ratio)]], requires_grad=True)
    result = GRPO.losses(logprobs, torch.zeros(1, 1), torch.full((1, 1), advantage), torch.ones(1, 1).bool(), CLIP)
    result.losses.sum().backward()
    assert logprobs.grad is not None
    assert (logprobs.grad.item() != 0) is moves
    assert (result.clipped.sum().item() == 0) is moves


def test_a_masked_token_has_exactly_no_gradient_even_where_its_ratio_would_overflow() -> None:
    logprobs = torch.zeros(1, 2, requires_grad=True)
    sampled = torch.tensor([[0.0, -1e9]])
    result = GRPO.losses(logprobs, sampled, torch.ones(1, 2), torch.tensor([[True, False]]), CLIP)
    result.losses.sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-1.0, 0.0]]
    assert result.ratios.sum().item() == 1.0


def test_a_recipe_of_before_has_the_digest_that_its_checkpoints_name() -> None:
    """So a night that the version before began goes on."""
    assert TrainingRecipe().digest().startswith("bca25dcf5fd0")
