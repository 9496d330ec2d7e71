"""In half precision an adapter lies beside the weights, whose grid would swallow it; in single precision in them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from inference_models import VOCABULARY, tiny
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from appliance.inference.adapters import adapter_layers, base_digest, without_adapter
from appliance.inference.device import choose_placement
from appliance.inference.engine import GenerationRequest, ModelError
from appliance.inference.torch.engine import TorchEngine, make_decoder
from appliance.inference.torch.fused import FusedDecoder
from appliance.inference.torch.probe import probe_copy
from appliance.learning.trained_weights import add_adapter

HALF = choose_placement("cpu", "bfloat16")
WHOLE = choose_placement("cpu")
ROWS, TOKENS = 32, 64
STEP = 2e-4
"""What one step of a learner adds to an adapter: less than the grid has of weights `on_the_grid`."""


def on_the_grid(name: str) -> Any:
    """A model whose matrices are bfloat16 already, as published ones are, with weights of .07 to .12."""
    torch.manual_seed(0)
    model: Any
    if name == "qwen3":
        shape = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
        config = Qwen3Config(**shape, vocab_size=VOCABULARY, num_key_value_heads=2, head_dim=16)
        model = Qwen3ForCausalLM(config)
    else:
        few = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None}
        model = GPT2LMHeadModel(GPT2Config(**few, n_embd=128, n_layer=2, n_head=4, n_positions=TOKENS))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                weight.copy_((weight.sign() * (0.07 + 0.05 * torch.rand(weight.shape))).bfloat16())
    return model.eval()


def scored(model: Any, conversations: list[tuple[int, ...]]) -> torch.Tensor:
    ids = torch.tensor(conversations)
    logprobs = model(input_ids=ids[:, :-1]).logits.log_softmax(-1).gather(2, ids[:, 1:, None])
    return logprobs[:, 1:, 0]


def sampled(engine: TorchEngine) -> tuple[list[tuple[int, ...]], torch.Tensor]:
    """Conversations of two tokens and what is drawn behind them, with the log-probabilities of that."""
    prompts = [(number, 7 * number % VOCABULARY) for number in range(ROWS)]
    for number, prompt in enumerate(prompts):
        engine.submit(GenerationRequest(number, prompt, -1, TOKENS, 1.0, number))
    turns = {}
    while engine.unfinished:
        turns |= {turn.request: turn for turn in engine.step()}
    drawn = [(*prompt, *turns[number].ids) for number, prompt in enumerate(prompts)]
    return drawn, torch.tensor([turns[number].logprobs for number in range(ROWS)])


@pytest.mark.parametrize("name", ["qwen3", "gpt2"])
def test_what_is_sampled_in_half_precision_moves_as_the_trainer_does_after_one_small_step(name: str) -> None:
    model = on_the_grid(name)
    before = base_digest(model)
    add_adapter(model, 4, 8.0, 0)
    bare, engine = TorchEngine(ROWS, TOKENS, placement=HALF), TorchEngine(ROWS, TOKENS, placement=HALF)
    bare.push(model, "a new adapter, which adds nothing")
    scored(model, [tuple(range(at, at + 20)) for at in range(20)]).mean().backward()
    with torch.no_grad():
        for layer in adapter_layers(model):
            layer.lora_B["default"].weight.copy_(layer.lora_B["default"].weight.grad.sign() * STEP)
    for layer in adapter_layers(model):
        weight = layer.get_base_layer().weight
        kept = (weight + layer.get_delta_weight("default")).bfloat16() != weight.bfloat16()
        assert kept.float().mean() < 0.01, "the weights of this test would take it up"
    engine.push(model, "the same after a step")
    drawn, found = sampled(engine)
    moved = found - torch.tensor(bare.score(drawn))[:, 1:]
    with torch.no_grad():
        wanted = scored(model, drawn)
        with without_adapter(model):
            wanted = wanted - scored(model, drawn)
    share = float((moved * wanted).sum() / wanted.square().sum())
    assert share == pytest.approx(1, abs=0.4), "of a folded adapter it is 0, of one that is added after rounding 0.25"
    assert base_digest(model) == before, "and nothing of it was merged there"


def adapted(name: str, size: float) -> Any:
    model = copy.deepcopy(tiny(name))
    add_adapter(model, 3, 6.0, 0)
    with torch.no_grad():
        for layer in adapter_layers(model):
            layer.lora_B["default"].weight.normal_(0, size)
    return model


@pytest.mark.parametrize("name", ["qwen2", "llama", "gpt2"])
def test_a_large_adapter_is_right_with_biases_and_with_a_rank_that_no_tensor_core_likes(name: str) -> None:
    model = adapted(name, 0.2)
    decoder = make_decoder(model, 32, placement=HALF, version="a")
    ids = torch.arange(40).view(2, 20) % VOCABULARY
    with torch.inference_mode():
        expected = model(input_ids=ids).logits.log_softmax(-1)
        found = decoder.logits(ids).log_softmax(-1)
        with decoder.without_adapter():
            bare = decoder.logits(ids).log_softmax(-1)
        with without_adapter(model):
            expected_bare = model(input_ids=ids).logits.log_softmax(-1)
    assert (found - expected).square().mean() < 0.01 * (expected - expected_bare).square().mean()
    assert (bare - expected_bare).square().mean() < 0.01 * (expected - expected_bare).square().mean()


@pytest.mark.parametrize(("placement", "size"), [(HALF, 2e-3), (WHOLE, 2e-5)])
def test_a_copy_without_the_adapter_is_refused_however_little_the_adapter_does(placement: Any, size: float) -> None:
    model = adapted("qwen3", size)
    probe_copy(FusedDecoder(model, 32, placement), model, 32, placement=placement, version="a")
    lacking = FusedDecoder(tiny("qwen3"), 32, placement)
    with pytest.raises(ModelError, match=r"without the adapter|differs from the model"):
        probe_copy(lacking, model, 32, placement=placement, version="a")


def test_an_adapter_that_does_nothing_yet_is_taken() -> None:
    for name in ("qwen3", "gpt2"):
        for placement in (HALF, WHOLE):
            make_decoder(adapted(name, 0), 32, placement=placement, version="a")
