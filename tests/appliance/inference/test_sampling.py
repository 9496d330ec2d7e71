"""Inverting the cumulative distribution draws every token as often as its probability says."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from appliance.inference.sampling import BELOW_ONE, draw, uniforms


def test_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    probabilities = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05])
    count = 40_000
    stream = torch.cat([uniforms(seed, 100) for seed in range(count // 100)])
    ids, logprobs = draw(probabilities.log().expand(count, 5).clone(), stream, torch.ones(count))
    shares = torch.bincount(ids, minlength=5) / count
    assert torch.allclose(shares, probabilities, atol=0.012)
    assert shares[1] == 0
    assert torch.allclose(logprobs, probabilities[ids].log(), atol=1e-5)


@given(st.integers(0, 2**63 - 1), st.integers(1, 200))
def test_a_seed_gives_one_stream_that_is_longer_or_shorter_but_never_another(seed: int, count: int) -> None:
    stream = uniforms(seed, count)
    assert stream.shape == (count,)
    assert stream.min() >= 0
    assert stream.max() <= BELOW_ONE < 1
    assert torch.equal(stream, uniforms(seed, count + 7)[:count])


@pytest.mark.parametrize("other", [5 + 2**40, -5])
def test_different_seeds_give_different_streams_also_beyond_32_bits_and_below_0(other: int) -> None:
    assert not torch.equal(uniforms(5, 8), uniforms(other, 8))


@given(st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=40), st.sampled_from([0.0, BELOW_ONE, 0.5]))
def test_no_uniform_number_ever_picks_a_token_of_probability_zero(values: list[float], uniform: float) -> None:
    logits = torch.tensor([[-math.inf, *values, -math.inf]])
    ids, logprobs = draw(logits, torch.tensor([uniform]), torch.ones(1))
    assert 1 <= int(ids) <= len(values)
    assert math.isfinite(float(logprobs))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_the_log_probability_is_that_of_the_tempered_distribution(temperature: float) -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    ids, logprobs = draw(logits.clone(), torch.tensor([0.4]), torch.tensor([temperature]))
    assert float(logprobs) == pytest.approx(float((logits / temperature).log_softmax(-1)[0, int(ids)]), abs=1e-6)


def test_rows_of_one_batch_may_be_greedy_and_sampled() -> None:
    logits = torch.tensor([[0.0, 5.0, 4.9]]).expand(2, 3)
    ids, logprobs = draw(logits, torch.tensor([0.99, 0.99]), torch.tensor([0.0, 1.0]))
    assert ids.tolist() == [1, 2]
    assert torch.allclose(logprobs, logits[0].log_softmax(-1)[ids], atol=1e-6)


def test_the_smallest_temperature_draws_the_likeliest_token_and_stays_finite() -> None:
    logits = torch.tensor([[1.0, -200.0, 300.0]])
    ids, logprobs = draw(logits, torch.tensor([0.999]), torch.tensor([1e-40]))
    assert (int(ids), float(logprobs)) == (2, 0.0)
