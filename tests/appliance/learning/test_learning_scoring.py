"""Scores are those of the whole softmax, and nothing comes from what is masked."""

from __future__ import annotations

import math

import pytest
import torch
from learning_builders import VOCABULARY, tiny_model
from torch import Tensor

from appliance.learning.scoring import score


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
