"""Objectives against numbers worked out by hand, and gradients against references; nothing comes from masked tokens."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import examples
from pydantic import ValidationError
from tables import table
from torch import Tensor

from appliance.learning.objectives.dapo import DAPO
from appliance.learning.objectives.objective import Graded, Objective
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipes.recipe import TrainingRecipe

CLIP = (0.20, 0.28)
ONE_OF_FOUR = [Graded(1.0), Graded(0.0), Graded(0.0), Graded(0.0)]
STANDARDISED = [1.7320508, -0.5773503, -0.5773503, -0.5773503]


def logs(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).log()


def losses(
    objective: Objective,
    logprobs: Tensor,
    advantages: tuple[float, ...],
    clip: tuple[float, float] | None = None,
    sampled: Tensor | None = None,
) -> tuple[list[list[float]], list[list[bool]], list[list[float]]]:
    """Per-token losses, what was clipped, and gradients, of log-probabilities [B, T]; the last token of each row is
    masked. The sampler's are 0 where they are not given: the log-probabilities are log-ratios then."""
    logprobs = logprobs.clone().requires_grad_()
    mask = torch.ones_like(logprobs).bool()
    mask[:, -1] = False
    each = torch.tensor(advantages, dtype=torch.float64)[:, None].expand_as(logprobs)
    sampled = torch.zeros_like(logprobs) if sampled is None else sampled
    found = objective.losses(logprobs, sampled, each, mask, clip or objective.clip)
    (gradient,) = torch.autograd.grad(found.losses.sum(), logprobs)
    return found.losses.tolist(), found.clipped.tolist(), gradient.tolist()


def test_grpo_by_hand() -> None:
    """1.5 is held at 1.2 where it is praised, .5 at .8 where it is blamed; of two tokens each is half of its answer."""
    found, held, _ = losses(OBJECTIVES["grpo"], logs((1.5, 0.5, 9.0), (1.5, 0.5, 9.0)), (1.0, -1.0))
    assert [*found[0], *found[1]] == pytest.approx([-0.6, -0.25, 0.0, 0.75, 0.4, 0.0])
    assert held == [[True, False, False], [False, True, False]]
    assert OBJECTIVES["grpo"].denominator(9, 2, 10) == 2
    assert OBJECTIVES["grpo"].advantages(ONE_OF_FOUR) == pytest.approx(STANDARDISED)


def test_dapo_by_hand() -> None:
    """1.5 is held at 1.28 where it is praised, .5 at .8 where it is blamed; four tokens weigh the same."""
    found, held, _ = losses(OBJECTIVES["dapo"], logs((1.5, 0.5, 9.0), (1.5, 0.5, 9.0)), (1.0, -1.0))
    assert [*found[0], *found[1]] == pytest.approx([-1.28, -0.5, 0.0, 1.5, 0.8, 0.0])
    assert held == [[True, False, False], [False, True, False]]
    assert OBJECTIVES["dapo"].denominator(4, 2, 10) == 4
    assert OBJECTIVES["dapo"].advantages(ONE_OF_FOUR) == pytest.approx(STANDARDISED)


def test_dr_grpo_by_hand() -> None:
    """No spread in the advantage, and a denominator that no length changes."""
    found, held, _ = losses(OBJECTIVES["dr_grpo"], logs((1.5, 0.5, 9.0), (1.5, 0.5, 9.0)), (0.75, -0.25))
    assert [*found[0], *found[1]] == pytest.approx([-0.9, -0.375, 0.0, 0.375, 0.2, 0.0])
    assert held == [[True, False, False], [False, True, False]]
    assert OBJECTIVES["dr_grpo"].denominator(4, 2, 10) == OBJECTIVES["dr_grpo"].denominator(10, 2, 10) == 20
    assert OBJECTIVES["dr_grpo"].advantages(ONE_OF_FOUR) == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_gspo_by_hand() -> None:
    """An answer has one ratio, the geometric mean of its tokens', and is held back as a whole."""
    ratios = torch.tensor([[math.log(2), -math.log(2), 3.0], [8e-4, 2e-4, 3.0], [8e-4, 2e-4, 3.0]], dtype=torch.float64)
    found, held, _ = losses(OBJECTIVES["gspo"], ratios, (1.0, 1.0, -1.0))
    assert found[0] == pytest.approx([-0.5, -0.5, 0.0], abs=1e-12)
    assert found[1] == pytest.approx([-0.5002, -0.5002, 0.0], abs=1e-12)
    assert found[2] == pytest.approx([0.50025006, 0.50025006, 0.0], abs=1e-8)
    assert held == [[False] * 3, [True, True, False], [False] * 3]
    assert OBJECTIVES["gspo"].denominator(9, 2, 10) == 2
    assert OBJECTIVES["gspo"].advantages([Graded(1.0), Graded(0.0)]) == pytest.approx([1.0, -1.0])


def test_cispo_by_hand() -> None:
    """A ratio of 8 weighs 5 and one of .1 weighs .1; the gradient is -w * A, and is never taken away."""
    sampled = logs((0.1, 0.5, 0.5), (0.1, 0.5, 0.5))
    found, held, gradient = losses(
        OBJECTIVES["cispo"], logs((0.8, 0.05, 0.9), (0.8, 0.05, 0.9)), (1.0, -2.0), sampled=sampled
    )
    high, low = math.log(0.8), math.log(0.05)
    assert [*found[0], *found[1]] == pytest.approx([-5 * high, -0.1 * low, 0.0, 10 * high, 0.2 * low, 0.0])
    assert [*gradient[0], *gradient[1]] == pytest.approx([-5.0, -0.1, 0.0, 10.0, 0.2, 0.0])
    assert held == [[True, False, False]] * 2
    assert OBJECTIVES["cispo"].denominator(9, 2, 10) == 9
    assert OBJECTIVES["cispo"].advantages(ONE_OF_FOUR) == pytest.approx(STANDARDISED)


def test_dppo_by_hand() -> None:
    """.01 to .1 is ten times as likely and no change to speak of; .5 to .75 and .5 to .25 are, each where the advantage
    asks for more of it."""
    sampled = logs((0.01, 0.5, 0.5, 0.5), (0.01, 0.5, 0.5, 0.5))
    logprobs = logs((0.1, 0.75, 0.25, 0.9), (0.1, 0.75, 0.25, 0.9))
    found, held, gradient = losses(OBJECTIVES["dppo"], logprobs, (1.0, -1.0), sampled=sampled)
    assert [*found[0], *found[1]] == pytest.approx([-10.0, 0.0, -0.5, 0.0, 10.0, 1.5, 0.0, 0.0])
    assert gradient == [pytest.approx(row) for row in found]
    assert held == [[False, True, False, False], [False, False, True, False]]
    assert OBJECTIVES["dppo"].denominator(10, 2, 10) == 10
    assert OBJECTIVES["dppo"].advantages(ONE_OF_FOUR) == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_max_rl_by_hand() -> None:
    """One success of four is worth three, three of four are worth a third each: the mean is .25, then .75."""
    found, held, _ = losses(OBJECTIVES["max_rl"], logs((1.5, 0.5, 9.0), (1.5, 0.5, 9.0)), (3.0, -1.0))
    assert [*found[0], *found[1]] == pytest.approx([-3.84, -1.5, 0.0, 1.5, 0.8, 0.0])
    assert held == [[True, False, False], [False, True, False]]
    assert OBJECTIVES["max_rl"].denominator(9, 2, 10) == 9
    assert OBJECTIVES["max_rl"].advantages(ONE_OF_FOUR) == pytest.approx([3.0, -1.0, -1.0, -1.0])
    three = [Graded(1.0), Graded(1.0), Graded(1.0), Graded(0.0)]
    assert OBJECTIVES["max_rl"].advantages(three) == pytest.approx([1 / 3, 1 / 3, 1 / 3, -1.0])
    with pytest.raises(ValueError, match="must not be negative"):
        OBJECTIVES["max_rl"].advantages([Graded(-1.0), Graded(0.5)])


def test_reinforce_by_hand() -> None:
    """A failure of four steps pushes a quarter as hard on each as one of a single step; no ratio is in the loss."""
    sampled = logs((0.1, 0.9, 0.5), (0.1, 0.9, 0.5))
    found, held, gradient = losses(
        OBJECTIVES["reinforce"], logs((0.5, 0.2, 0.9), (0.5, 0.2, 0.9)), (1.0, -0.25), sampled=sampled
    )
    half, fifth = math.log(0.5), math.log(0.2)
    assert [*found[0], *found[1]] == pytest.approx([-half, -fifth, 0.0, half / 4, fifth / 4, 0.0])
    assert [*gradient[0], *gradient[1]] == pytest.approx([-1.0, -1.0, 0.0, 0.25, 0.25, 0.0])
    assert held == [[False] * 3] * 2
    assert OBJECTIVES["reinforce"].denominator(9, 2, 10) == 9
    kept = [Graded(1.0, turns=2), Graded(0.0, turns=4), Graded(1.0, turns=1), Graded(0.0, turns=1)]
    assert OBJECTIVES["reinforce"].advantages(kept) == pytest.approx([0.5, -0.25, 1.0, -1.0])


@pytest.mark.parametrize("name", sorted(OBJECTIVES.keys() - {"cispo"}))
def test_gradients_are_those_of_the_loss(name: str) -> None:
    """By finite differences, at ratios that lie away from the corners of the clip; masked tokens have none. CISPO's
    weights have no gradient, so its gradient is that of no loss."""
    torch.manual_seed(1)
    logprobs = (-2 + 0.3 * torch.randn(4, 5, dtype=torch.float64)).requires_grad_()
    mask = torch.rand(4, 5) < 0.7
    advantages = torch.tensor([1.5, -0.5, 0.7, -2.0], dtype=torch.float64)[:, None].expand(4, 5)

    def value(given: Tensor) -> Tensor:
        sampled = torch.full((4, 5), -2.0, dtype=torch.float64)
        return OBJECTIVES[name].losses(given, sampled, advantages, mask, (0.21, 0.27)).losses.sum()

    assert torch.autograd.gradcheck(value, logprobs)
    value(logprobs).backward()
    assert logprobs.grad is not None
    assert (logprobs.grad[~mask] == 0).all()


@table("name", OBJECTIVES)
def test_a_token_is_worth_its_own_advantage(name: str) -> None:
    """Where a token's advantage is 0 it has no gradient, whatever its neighbours' are."""
    logprobs = torch.full((1, 3), -1.0, dtype=torch.float64, requires_grad=True)
    advantages = torch.tensor([[1.0, 0.0, -1.0]], dtype=torch.float64)
    made = OBJECTIVES[name].losses(
        logprobs, logprobs.detach(), advantages, torch.ones(1, 3).bool(), OBJECTIVES[name].clip
    )
    (gradient,) = torch.autograd.grad(made.losses.sum(), logprobs)
    share = 1 / 3 if name in ("grpo", "gspo") else 1.0
    assert gradient[0].tolist() == pytest.approx([-share, 0.0, share])


@table("name", OBJECTIVES)
def test_equal_rewards_have_no_advantages(name: str) -> None:
    assert OBJECTIVES[name].advantages([]) == ()
    with pytest.raises(ValueError, match="equal rewards"):
        OBJECTIVES[name].advantages([Graded(0.3, turns=1), Graded(0.3, turns=2)])


@table("name", OBJECTIVES)
def test_rewards_that_hardly_differ_still_have_advantages(name: str) -> None:
    found = OBJECTIVES[name].advantages([Graded(1e-200), Graded(0.0), Graded(0.0)])
    assert all(math.isfinite(one) for one in found)
    assert found[0] > 0 > found[1]


@table("name", OBJECTIVES)
def test_the_recipe_names_the_objective_whose_clip_it_has_unless_it_says_otherwise(name: str) -> None:
    recipe = TrainingRecipe(objective=name)
    assert (recipe.clip_low, recipe.clip_high) == OBJECTIVES[name].clip
    assert TrainingRecipe(objective=name, clip_low=0.1).clip_low == 0.1
    assert TrainingRecipe.model_validate_json(recipe.model_dump_json()) == recipe


def test_an_objective_that_nobody_knows_is_refused_with_those_that_there_are() -> None:
    known = "cispo, dapo, dppo, dr_grpo, grpo, gspo, max_rl, reinforce"
    with pytest.raises(ValidationError, match=f"unknown objective 'ppo'; use one of {known}"):
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


@settings(max_examples=examples(40))
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 9))
def test_loss_and_gradient_are_those_of_the_reference(seed: int, rows: int, width: int) -> None:
    torch.manual_seed(seed)
    logprobs = (-3 * torch.rand(rows, width, dtype=torch.float64)).requires_grad_()
    sampled = logprobs.detach() + 0.4 * torch.randn(rows, width, dtype=torch.float64)
    advantages = torch.randn(rows, 1, dtype=torch.float64).expand(rows, width)
    mask = torch.rand(rows, width) < 0.6
    result = DAPO.losses(logprobs, sampled, advantages, mask, CLIP)
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
    result = DAPO.losses(logprobs, torch.zeros(1, 1), torch.full((1, 1), advantage), torch.ones(1, 1).bool(), CLIP)
    result.losses.sum().backward()
    assert logprobs.grad is not None
    assert (logprobs.grad.item() != 0) is moves
    assert (result.clipped.sum().item() == 0) is moves


@table("name", OBJECTIVES)
def test_a_masked_token_has_exactly_no_gradient_even_where_its_ratio_would_overflow(name: str) -> None:
    logprobs = torch.full((1, 2), -1.0, requires_grad=True)
    sampled = torch.tensor([[-1.0, -1e9]])
    result = OBJECTIVES[name].losses(
        logprobs, sampled, torch.ones(1, 2), torch.tensor([[True, False]]), OBJECTIVES[name].clip
    )
    result.losses.sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-1.0, 0.0]]
    assert result.ratios.tolist() == [[1.0, 0.0]]


def test_recipes_that_train_differently_have_different_digests() -> None:
    made = [TrainingRecipe(objective=name) for name in OBJECTIVES]
    same_clip = [TrainingRecipe(objective=name, clip_low=0.2, clip_high=0.28) for name in OBJECTIVES if name != "dapo"]
    others = [TrainingRecipe(reward="score"), TrainingRecipe.model_validate({"planning": {"credit": True}})]
    found = [one.digest() for one in (*made, *same_clip, *others)]
    assert len({*found}) == len({one.model_dump_json() for one in (*made, *same_clip, *others)})
