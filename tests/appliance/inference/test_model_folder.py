"""A model folder is used when it is whole and plain; otherwise the message says what is wrong and what to do."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from inference_models import tiny
from transformers import (
    DogeConfig,
    DogeForCausalLM,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
)

from appliance.inference.device import choose_placement
from appliance.inference.engine import GenerationRequest, ModelError
from appliance.inference.folder import open_model, read_model
from appliance.inference.torch.engine import TorchEngine, make_decoder
from appliance.inference.torch.fused import FusedDecoder
from appliance.inference.torch.generic import GenericDecoder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    tiny("qwen2").save_pretrained(path)
    return path


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def cut_weights_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pickle_the_weights(folder: Path) -> None:
    torch.save(tiny("qwen2").state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def ask_for_code(folder: Path) -> None:
    change_config(folder, model_type="homemade", auto_map={"AutoModelForCausalLM": "evil.Evil", "AutoConfig": "evil.C"})
    (folder / "evil.py").write_text(f"import pathlib; pathlib.Path({str(folder / 'ran')!r}).write_text('x')\n")


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "no such model folder"),
    "no config": (lambda f: (f / "config.json").unlink(), "no config.json"),
    "config is not JSON": (lambda f: (f / "config.json").write_text("{"), "cannot be read"),
    "config is no table": (lambda f: (f / "config.json").write_text("[1]"), "not a JSON object"),
    "unknown architecture": (lambda f: change_config(f, model_type="homemade"), "not a supported model"),
    "code in the folder": (ask_for_code, "not a supported model"),
    "no language model": (lambda f: change_config(f, model_type="vit"), "cannot be loaded"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no safetensors"),
    "pickled weights": (pickle_the_weights, "no safetensors"),
    "weights cut short": (cut_weights_short, "is broken"),
    "weights are no safetensors": (lambda f: (f / "model.safetensors").write_bytes(b"\x80\x02PK" * 20), "is broken"),
    "more layers than weights": (lambda f: change_config(f, num_hidden_layers=3, layer_types=None), "and 9 more"),
    "other shapes": (lambda f: change_config(f, intermediate_size=96), "and 3 more"),
    "heads that do not divide": (
        lambda f: change_config(f, num_attention_heads=5),
        "weights are missing or do not fit",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_folder_that_cannot_be_used_is_refused_with_what_to_do(folder: Path, broken: str) -> None:
    breaking, says = BROKEN[broken]
    breaking(folder)
    engine = TorchEngine(rows=1, slots=16)
    with pytest.raises(ModelError, match=says) as caught:
        engine.push(read_model(folder), "digest")
    assert caught.value.hint
    assert "Traceback" not in str(caught.value)
    assert engine.version == ""
    assert not (folder / "ran").exists(), "code in a model folder must never run"


def test_a_whole_folder_gives_what_the_live_model_gives(folder: Path) -> None:
    request = GenerationRequest(0, (1, 2, 3), -1, 16, 1.0, 4)
    drawn = []
    for load in (lambda e: e.push(read_model(folder), "d"), lambda e: e.push(tiny("qwen2"), "d")):
        engine = TorchEngine(rows=1, slots=16)
        load(engine)
        assert engine.version == "d"
        engine.submit(request)
        drawn.append([turn for _ in range(16) for turn in engine.step()])
    assert drawn[0] == drawn[1]


def test_a_folder_in_half_precision_is_computed_in_single(tmp_path: Path) -> None:
    model = type(tiny("qwen2"))(tiny("qwen2").config).to(torch.bfloat16)
    model.save_pretrained(tmp_path)
    assert {weight.dtype for weight in open_model(read_model(tmp_path)).parameters()} == {torch.float32}


def test_a_refused_folder_leaves_the_loaded_weights_in_use(folder: Path, tmp_path: Path) -> None:
    engine = TorchEngine(rows=1, slots=16)
    engine.push(read_model(folder), "good")
    with pytest.raises(ModelError):
        engine.push(read_model(tmp_path / "nothing"), "bad")
    assert engine.version == "good"
    engine.submit(GenerationRequest(0, (1,), -1, 4, 1.0, 0))
    assert engine.step() == []


@pytest.mark.parametrize(("name", "kind"), [("qwen2", FusedDecoder), ("qwen3", FusedDecoder), ("gpt2", GenericDecoder)])
def test_the_llama_family_is_fused_and_the_rest_runs_in_transformers(name: str, kind: type) -> None:
    assert isinstance(make_decoder(tiny(name), 32, placement=choose_placement("cpu"), version="a"), kind)


def test_a_conversation_longer_than_the_models_positions_is_refused() -> None:
    with pytest.raises(ModelError, match="128 positions") as caught:
        TorchEngine(rows=1, slots=129).push(tiny("qwen2"), "d")
    assert "at most 128" in caught.value.hint


SHAPE = {
    "vocab_size": 48,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
LONGROPE = {"rope_type": "longrope", "rope_theta": 1e4, "factor": 2.0}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=20)), "attends to only 20 tokens"),
        (lambda: DogeForCausalLM(DogeConfig(**SHAPE, keep_window_size=20)), "attends to only 20 tokens"),
        (
            lambda: Phi3ForCausalLM(
                Phi3Config(
                    **SHAPE,
                    max_position_embeddings=40,
                    original_max_position_embeddings=20,
                    pad_token_id=None,
                    rope_parameters={**LONGROPE, "long_factor": [4.0] * 4, "short_factor": [1.0] * 4},
                )
            ),
            "beyond 20 tokens",
        ),
    ],
)
def test_what_is_read_otherwise_in_a_long_conversation_is_refused_where_there_may_be_one(
    make: Callable[[], Any], says: str
) -> None:
    model = make()
    with pytest.raises(ModelError, match=says) as caught:
        TorchEngine(rows=1, slots=21).push(model, "d")
    assert "at most 20" in caught.value.hint
    TorchEngine(rows=1, slots=20).push(model, "d")


def test_a_model_that_counts_slots_instead_of_tokens_is_refused_where_a_wait_would_show() -> None:
    config = GPTNeoConfig(
        vocab_size=48,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        attention_types=[[["local"], 2]],
        window_size=40,
        initializer_range=0.3,
    )
    model = GPTNeoForCausalLM(config)
    with pytest.raises(ModelError, match="decodes differently"):
        TorchEngine(rows=1, slots=40).push(model, "d")
    TorchEngine(rows=1, slots=20).push(model, "d")


def test_a_model_that_keeps_another_state_than_keys_and_values_is_refused() -> None:
    model = MambaForCausalLM(MambaConfig(vocab_size=48, hidden_size=32, num_hidden_layers=2, state_size=4))
    with pytest.raises(ModelError, match="MambaForCausalLM") as caught:
        TorchEngine(rows=1, slots=16).push(model, "d")
    assert "plain attention" in caught.value.hint
