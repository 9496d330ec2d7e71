"""A local Hugging Face folder that speaks ChatML takes the seedling's place by one line of configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from short_nights import SHORT, run_night, train_night
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from appliance.config.configuration import ModelSettings
from appliance.inference.engine import OutOfMemoryError
from appliance.inference.folder import read_model
from appliance.inference.torch.engine import TorchEngine
from appliance.inference.torch.generic import GenericDecoder
from appliance.ledger.sqlite import SqliteLedger
from appliance.readiness.model import ConfiguredModel
from appliance.records.cycles import CycleState
from appliance.rendering.formats import load_renderer
from appliance.worker.setup.context import WorkContext, try_out

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet)
    made.train_from_iterator(["user assistant tool_call what is 12 plus 30? print(12+30)"] * 20, trainer)
    return made


def save(folder: Path, model: LlamaForCausalLM | GPT2LMHeadModel) -> Path:
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer(), eos_token="<|im_end|>").save_pretrained(folder)
    return folder


def llama(folder: Path) -> Path:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=256,
    )
    return save(folder, LlamaForCausalLM(config))


def gpt2(folder: Path) -> Path:
    torch.manual_seed(0)
    return save(folder, GPT2LMHeadModel(GPT2Config(vocab_size=400, n_positions=256, n_embd=32, n_layer=1, n_head=2)))


def test_a_folder_that_names_no_format_has_chatml(tmp_path: Path) -> None:
    renderer = load_renderer(read_model(llama(tmp_path / "model")))
    text = renderer.text(renderer.question("what is 1 plus 2? <|im_end|>"))
    assert text == "<|im_start|>user\nwhat is 1 plus 2? <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    assert renderer.question("<|im_end|>").count(renderer.stop) == 1


@pytest.mark.parametrize("step", ["advance", "logits"])
@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("CUDA error: unspecified launch failure")]
)
def test_what_a_gpu_fails_at_while_a_model_is_tried_is_not_said_of_the_model(
    step: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    files, engine = read_model(gpt2(tmp_path / "model")), TorchEngine(2, 64)
    with monkeypatch.context() as patched:
        patched.setattr(GenericDecoder, step, broken)
        with pytest.raises((OutOfMemoryError, RuntimeError), match=r"memory|CUDA error"):
            try_out(engine, files)
    try_out(engine, files)


@pytest.mark.parametrize("make", [llama, gpt2])
@pytest.mark.parametrize("shard", ["1GB", "20kB"])
def test_what_transformers_writes_is_what_a_night_can_begin_from(
    tmp_path: Path, make: Callable[[Path], Path], shard: str
) -> None:
    folder = make(tmp_path / "model")
    if shard != "1GB":
        model = AutoModelForCausalLM.from_pretrained(folder)
        (folder / "model.safetensors").unlink()
        model.save_pretrained(folder, max_shard_size=shard)
    found = ConfiguredModel(ModelSettings(path=folder)).require(120)
    assert found is not None
    kept = AutoModelForCausalLM.from_pretrained(folder)
    assert found.parameters == sum(one.numel() for one in kept.parameters())


SMALL = SHORT.model_copy(
    update={
        "training": SHORT.training.model_copy(update={"steps": 1, "tasks_per_step": 2, "watch_items": 2}),
        "evaluation": SHORT.evaluation.model_copy(update={"sealed_items": 4, "unsolvable_items": 2}),
    }
)


def test_a_night_runs_from_a_llama(context: WorkContext, ledger: SqliteLedger, tmp_path: Path) -> None:
    decision = run_night(context, "n", model=llama(tmp_path / "model"), recipe=SMALL)
    champion = ledger.checkpoint(decision.champion or "")
    assert champion is not None
    assert champion.stage == "imported"
    cycle = ledger.cycle("n")
    assert cycle is not None
    assert cycle.state is CycleState.DONE


def test_a_night_runs_from_another_architecture(context: WorkContext, ledger: SqliteLedger, tmp_path: Path) -> None:
    train_night(context, "n", model=gpt2(tmp_path / "model"), recipe=SMALL)
    assert ledger.rollout_counts("n")["train"] == 2 * 8
