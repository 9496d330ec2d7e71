"""The token-level loss: gradients against a reference written token by token, and nothing from what is masked."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_builders import VOCABULARY, tiny_model
from torch import Tensor

from appliance.learning.objective import Grpo
from appliance.learning.scoring import score


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
    result = Grpo(0.20, 0.28)(logprobs, sampled, advantages, mask)
    expected = reference(logprobs, sampled, advantages, mask)
    assert result.loss.item() == pytest.approx(expected.item(), abs=1e-12)
    (gradient,) = torch.autograd.grad(result.loss, logprobs)
    (slow,) = torch.autograd.grad(expected, logprobs)
    assert torch.allclose(gradient, slow, atol=1e-12)
    assert (gradient[~mask] == 0).all()
    assert result.clipped.item() == ((gradient == 0) & mask & (advantages != 0)).sum().item()


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
    result = Grpo(0.20, 0.28)(logprobs, torch.zeros(1, 1), torch.full((1, 1), advantage), torch.ones(1, 1).bool())
    result.loss.backward()
    assert logprobs.grad is not None
    assert (logprobs.grad.item() != 0) is moves
    assert (result.clipped.item() == 0) is moves


def test_a_masked_token_has_exactly_no_gradient_even_where_its_ratio_would_overflow() -> None:
    logprobs = torch.zeros(1, 2, requires_grad=True)
    sampled = torch.tensor([[0.0, -1e9]])
    result = Grpo(0.20, 0.28)(logprobs, sampled, torch.ones(1, 2), torch.tensor([[True, False]]))
    result.loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-1.0, 0.0]]
    assert result.ratio.item() == 1.0


def test_what_the_model_thinks_of_masked_tokens_does_not_reach_its_weights() -> None:
    """Changing the last, masked token changes nothing that is trained on: no logit of it, no gradient."""
    model = tiny_model()
    mask = torch.tensor([[False, False, True, True, False]])

    def gradients(last: int) -> list[Tensor]:
        model.zero_grad()
        (-score(model, torch.tensor([[7, 8, 9, 10, last]]), mask).logprobs.sum()).backward()
        return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]

    assert all(torch.equal(a, b) for a, b in zip(gradients(11), gradients(30), strict=True))


def test_scores_are_those_of_the_whole_softmax_and_right_padding_does_not_disturb_them() -> None:
    model = tiny_model(layers=2)
    long, short = [[7, 8, 9, 10, 11, 12]], [[7, 8, 9, 0, 0, 0]]
    ids = torch.tensor(long + short)
    mask = torch.tensor([[False, True, True, False, True, True], [False, True, True, False, False, False]])
    with torch.no_grad():
        scores = score(model, ids, mask, temperature=0.7)
        alone = score(model, ids[1:, :3], mask[1:, :3], temperature=0.7)
        logprobs = torch.log_softmax(model(input_ids=ids[:1]).logits / 0.7, -1)
    for at in (1, 2, 4, 5):
        assert scores.logprobs[0, at - 1].item() == pytest.approx(logprobs[0, at - 1, ids[0, at]].item(), abs=1e-6)
    assert scores.logprobs[0, 2].item() == 0.0
    assert torch.allclose(scores.logprobs[1, :2], alone.logprobs[0], atol=1e-6)
    assert 0 < scores.entropy.item() <= 6 * math.log(VOCABULARY)
