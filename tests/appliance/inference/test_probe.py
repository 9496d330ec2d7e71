"""A copy of weights that computes what the model computes is taken, in half precision too; another one is refused."""

from __future__ import annotations

import pytest
import torch
from tables import table
from transformers import Qwen3Config, Qwen3ForCausalLM

from appliance.inference.device import Placement
from appliance.inference.engine import ModelError
from appliance.inference.torch.fused import FusedDecoder
from appliance.inference.torch.probe import probe_copy

TOKENS = 16


def made(vocabulary: int, *, layers: int = 2, sure: float = 1.0, tied: bool = False) -> Qwen3ForCausalLM:
    """`sure`: how much farther apart its log-probabilities are than at random."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=TOKENS,
        tie_word_embeddings=tied,
        initializer_range=0.1,
    )
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        model.model.norm.weight.mul_(sure)
    return model


def proved(model: Qwen3ForCausalLM, dtype: torch.dtype, *, turned: bool = True) -> None:
    """`turned`: whether the copy knows of positions."""
    placement = Placement(torch.device("cpu"), dtype)
    copy = FusedDecoder(model, TOKENS, placement)
    if not turned:
        copy._turns = torch.ones_like(copy._turns)
    probe_copy(copy, model, TOKENS, placement=placement, version="a")


@pytest.mark.parametrize("held", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sure", [1.0, 5.0, 10.0])
def test_a_right_copy_in_half_precision_is_taken_however_sure_the_model_is(held: torch.dtype, sure: float) -> None:
    model = made(2_000, layers=8, sure=sure).to(held)
    proved(model, torch.bfloat16)
    with pytest.raises(ModelError, match="of their spread"):
        proved(model, torch.bfloat16, turned=False)


def test_a_right_copy_is_taken_however_sure_the_model_is() -> None:
    model = made(2_000, layers=8, sure=1e4)
    proved(model, torch.float32)
    with pytest.raises(ModelError, match="differs from the model"):
        proved(model, torch.float32, turned=False)


@table("tied", [True, False])
@table("vocabulary", [7, 14, 49, 50])
def test_a_copy_that_knows_of_no_positions_is_found_with_few_words_too(vocabulary: int, tied: bool) -> None:
    model = made(vocabulary, tied=tied)
    proved(model, torch.float32)
    with pytest.raises(ModelError, match="differs from the model"):
        proved(model, torch.float32, turned=False)
