"""An adapter is trained beside weights in 4 bits, and all others see these weights dequantised."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
import safetensors.torch
import torch
from learning_builders import VOCABULARY, judged, varied, with_model_logprobs
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from appliance.inference.adapters import (
    adapter_parameters,
    base_digest,
    base_tensors,
    frozen_digest,
    push_model,
    weights_digest,
)
from appliance.inference.device import Placement
from appliance.inference.engine import ModelError
from appliance.inference.folder import open_model, read_model
from appliance.inference.nf4 import Nf4Linear, dequantise, quantise
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.torch.low_rank import placed_copy
from appliance.inference.vllm.weights import offer_weights
from appliance.learning.errors import CheckpointError
from appliance.learning.folders import read_verified
from appliance.learning.merging import publish_merged
from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.trained_weights import add_adapter, load_adapter
from appliance.learning.training.trainer import Trainer
from appliance.learning.training.updates import LARGE, open_for, return_freed_memory
from appliance.planning.sizes import PACKED

QLORA = TrainingRecipe(
    rollouts_per_task=4, keep=2, learning_rate=3e-2, warmup_steps=1, method="qlora", lora_rank=4, micro_batch=3
)
IDS = torch.arange(40)[None] * 3 % VOCABULARY


def qwen3() -> Qwen3ForCausalLM:
    torch.manual_seed(3)
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    return Qwen3ForCausalLM(Qwen3Config(**sizes, num_attention_heads=4, num_key_value_heads=2, head_dim=16))


def base_folder(folder: Path, dtype: torch.dtype = torch.float32) -> Path:
    varied().to(dtype).save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")
    return folder


def learn(trainer: Trainer, steps: int) -> None:
    for step in range(trainer.step, trainer.step + steps):
        rollouts = [judged(f"t{task}", i, correct=i % 2 == 0, step=step) for task in range(3) for i in range(4)]
        rollouts = [with_model_logprobs(one, varied()) for one in rollouts]
        trainer.train_step(step, rollouts, make_groups(rollouts, trainer.recipe, seed=9))


def gradients(model: Qwen3ForCausalLM) -> dict[str, torch.Tensor]:
    """The adapter's gradients, with an adapter whose second factor is not zero, so that the first one has one."""
    add_adapter(model, 4, 8.0, seed=1)
    own = adapter_parameters(model)
    with torch.no_grad():
        for number, (name, one) in enumerate(sorted(own.items())):
            if ".lora_B." in name:
                one.copy_(torch.randn(one.shape, generator=torch.Generator().manual_seed(number)) * 0.05)
    model.train()(input_ids=IDS, labels=IDS).loss.backward()
    return {name: one.grad for name, one in own.items() if one.grad is not None}


def test_gradients_beside_4_bits_are_those_beside_the_dequantised_weights() -> None:
    packed = qwen3()
    before = {name: one.clone() for name, one in base_tensors(packed)}
    quantise(packed, torch.float32)
    plain = qwen3()
    plain.load_state_dict(dict(base_tensors(packed)))
    assert base_digest(plain) == base_digest(packed) == frozen_digest(packed) != base_digest(qwen3())
    assert all(torch.equal(one, before[name]) for name, one in base_tensors(packed) if "_proj" not in name)
    layers = [one for one in packed.modules() if isinstance(one, Nf4Linear)]
    assert len(layers) == 14, "all but the head"
    held = sum(one.packed.nbytes + one._state.absmax.nbytes + one._state.state2.absmax.nbytes for one in layers)
    assert held == pytest.approx(PACKED * sum(one.in_features * one.out_features for one in layers), rel=1e-3)
    mine, theirs = gradients(packed), gradients(plain)
    assert len(mine) == 28
    for name, gradient in theirs.items():
        assert gradient.abs().max() > 0
        torch.testing.assert_close(mine[name], gradient, atol=1e-4, rtol=1e-4)


def test_weights_in_4_bits_do_not_depend_on_the_threads_nor_on_the_copy() -> None:
    threads, digests = torch.get_num_threads(), set()
    wide = torch.nn.Linear(2048, 1536, bias=False)
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            layer = Nf4Linear(wide, torch.bfloat16)
            digests.add(weights_digest(layer) + weights_digest(layer.plain()))
    finally:
        torch.set_num_threads(threads)
    assert len(digests) == 1


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_dequantised_base_is_what_is_pushed_sampled_from_and_merged_into(tmp_path: Path, precision: str) -> None:
    base = read_model(base_folder(tmp_path / "base"))
    recipe = QLORA.model_copy(update={"precision": precision})
    trainer = Trainer(open_for(base, recipe), recipe, seed=4, max_tokens=64, companions=base)
    frozen = base_digest(trainer.model)
    trainer.save(tmp_path / "step-0")
    assert publish_merged(tmp_path / "step-0", base, tmp_path / "models") is None, "nothing was learned"
    learn(trainer, 3)
    assert base_digest(trainer.model) == frozen
    trainer.save(tmp_path / "step-3")

    dequantised = open_for(base, recipe)
    dequantise(dequantised)
    offered = offer_weights(trainer.model, shared=tmp_path)
    assert offered.digest == frozen == base_digest(dequantised)
    offered.let_go()
    beside = dequantised.float()
    add_adapter(beside, recipe.lora_rank, recipe.lora_alpha, seed=4)
    load_adapter(beside, safetensors.torch.load((tmp_path / "step-3" / "adapter_model.safetensors").read_bytes()))
    with torch.no_grad():
        expected = beside(input_ids=IDS).logits.log_softmax(-1)
        copied = placed_copy(trainer.model, Placement(torch.device("cpu"), torch.float32))(input_ids=IDS)
    torch.testing.assert_close(copied.logits.log_softmax(-1), expected, atol=1e-4, rtol=1e-4)

    engine = TorchEngine(2, 64)
    push_model(engine, trainer.model, "w1")
    drawn = expected[0, :-1].gather(1, IDS[0, 1:, None]).squeeze(1)
    torch.testing.assert_close(torch.tensor(engine.score([IDS[0].tolist()])[0]), drawn, atol=1e-4, rtol=1e-4)
    digest = publish_merged(tmp_path / "step-3", base, tmp_path / "models")
    assert digest is not None
    with torch.no_grad():
        merged = open_model(read_verified(tmp_path / "models" / digest))(input_ids=IDS).logits.log_softmax(-1)
        plain = varied()(input_ids=IDS).logits.log_softmax(-1)
    torch.testing.assert_close(merged, expected, atol=1e-4, rtol=1e-4)
    assert (plain - merged).abs().max() > 0.01


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_one_night_learned_beside_4_bits_the_next_one_begins_with(tmp_path: Path, precision: str) -> None:
    base = read_model(base_folder(tmp_path / "base", torch.bfloat16))
    recipe = QLORA.model_copy(update={"precision": precision, "learning_rate": 3e-4})
    first = Trainer(open_for(base, recipe), recipe, seed=4, max_tokens=64, companions=base)
    learn(first, 3)
    first.save(tmp_path / "step")
    digest = publish_merged(tmp_path / "step", base, tmp_path / "models")
    assert digest is not None
    champion = read_verified(tmp_path / "models" / digest)
    second = Trainer(open_for(champion, recipe), recipe, seed=5, max_tokens=64, companions=champion)
    again = open_for(champion, recipe)

    def said(model: torch.nn.Module) -> torch.Tensor:
        dequantise(model)
        with torch.no_grad():
            found: torch.Tensor = model.float()(input_ids=IDS).logits.log_softmax(-1)
        return found

    before, published = said(open_for(base, recipe)), said(open_model(champion))
    learned = (published - before).abs().mean()
    assert learned > 0.01, "nothing was learned: the test has shown nothing"
    second.save(tmp_path / "again")
    assert publish_merged(tmp_path / "again", champion, tmp_path / "models") is not None
    assert (said(second.model) - published).abs().mean() < 0.3 * learned
    assert (said(again) - published).abs().mean() > 0.6 * learned, "the 4 bits alone have lost it"


def test_an_adapter_beside_4_bits_fits_neither_the_plain_base_nor_another(tmp_path: Path) -> None:
    base = read_model(base_folder(tmp_path / "base"))
    trainer = Trainer(open_for(base, QLORA), QLORA, seed=4, max_tokens=64, companions=base)
    learn(trainer, 1)
    trainer.save(tmp_path / "step")
    varied(seed=1).save_pretrained(tmp_path / "other")
    with pytest.raises(CheckpointError, match="an adapter for the base model"):
        publish_merged(tmp_path / "step", read_model(tmp_path / "other"), tmp_path / "models")
    plain = Trainer(varied(), QLORA.model_copy(update={"method": "lora"}), seed=4, max_tokens=64)
    with pytest.raises(CheckpointError, match="an adapter for the base model"):
        plain.trained.load(tmp_path / "step", read_verified(tmp_path / "step"), trainer.trained.base)
    with torch.no_grad():
        trainer.model.get_submodule("model.layers.0.mlp.up_proj").get_base_layer().packed[0] ^= 1
    with pytest.raises(CheckpointError, match="the frozen weights changed"):
        trainer.save(tmp_path / "again")


def test_a_model_without_linear_layers_is_refused() -> None:
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=20, n_positions=16))
    with pytest.raises(ModelError, match="no linear layers to store in 4 bits") as caught:
        quantise(model, torch.float32)
    assert "method to lora" in caught.value.hint


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_packed_weights_count_when_freed_memory_is_returned() -> None:
    packed = torch.nn.Module()
    packed.register_buffer("packed", torch.empty(LARGE, dtype=torch.uint8, device="meta"))
    assert return_freed_memory(packed)
    assert not return_freed_memory(torch.nn.Linear(4, 4))
