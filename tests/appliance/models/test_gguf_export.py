"""A GGUF file has the model that it was written from, as another reader of the format finds it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf import GGUFReader
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

from appliance.inference.folder import open_model, quietly, read_model
from appliance.learning.errors import CheckpointError
from appliance.models.gguf import require_same, turned, write_gguf

SEEDLING = Path(__file__).parents[2] / "fixtures" / "seedling"


MODELS: dict[str, Any] = {
    "llama": (LlamaConfig, LlamaForCausalLM, 16),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, 16),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, 128),  # transformers takes no other size of a head from a file
}


def model_folder(folder: Path, name: str, dtype: torch.dtype = torch.float32) -> Path:
    """A tiny model of that family, with the seedling's tokenizer."""
    config, model, head = MODELS[name]
    made = config(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.3,
        eos_token_id=5,
        **({"head_dim": head} if name == "qwen3" else {}),
    )
    model(made).to(dtype).save_pretrained(folder)
    shutil.copyfile(SEEDLING / "tokenizer.json", folder / "tokenizer.json")
    return folder


def logits(model: Any) -> torch.Tensor:
    ids = (torch.arange(24)[None] * 7) % model.config.vocab_size
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=ids).logits.log_softmax(-1)
    return found


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3"])
def test_transformers_reads_the_same_model_from_the_file(name: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    folder = model_folder(tmp_path / name, name)
    count = write_gguf(folder, tmp_path / "m.gguf")
    assert count == len(GGUFReader(tmp_path / "m.gguf").tensors) > 10
    with quietly():
        read = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="m.gguf", dtype=torch.float32)
    assert (logits(read) - logits(open_model(read_model(folder)))).abs().max() < 1e-5
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "m.gguf"])


def test_weights_keep_their_type_and_vectors_are_exact(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m", "qwen3", torch.bfloat16)
    write_gguf(folder, tmp_path / "m.gguf")
    types = {one.name: one.tensor_type.name for one in GGUFReader(tmp_path / "m.gguf").tensors}
    assert (types["token_embd.weight"], types["output_norm.weight"]) == ("BF16", "F32")


def test_the_seedling_goes_out_with_its_tokens(tmp_path: Path) -> None:
    write_gguf(SEEDLING, tmp_path / "s.gguf")
    fields = GGUFReader(tmp_path / "s.gguf").fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    made = json.loads((SEEDLING / "tokenizer.json").read_text())
    assert {text: number for number, text in enumerate(tokens)}.items() >= made["model"]["vocab"].items()
    assert fields["tokenizer.ggml.pre"].contents() == "starcoder"
    assert fields["tokenizer.ggml.eos_token_id"].contents() == 5
    assert fields["general.architecture"].contents() == "qwen2"


def test_the_token_that_ends_a_text_is_the_one_that_the_model_s_files_name(tmp_path: Path) -> None:
    """A reader of GGUF takes token 11 where none is named."""
    folder = tmp_path / "m"
    shutil.copytree(SEEDLING, folder)
    config, named = (json.loads((folder / f"{name}config.json").read_text()) for name in ("", "tokenizer_"))
    cases: list[tuple[dict[str, Any], Any, str, int | None]] = [
        ({"eos_token_id": [4, 5]}, None, "<|end|>", 5),
        ({}, [4, 5], "", 4),
        ({"eos_token_id": 4}, None, "", 4),
        ({"eos_token_id": -1}, 10**6, "", None),
    ]
    for place, (own, generation, text, found) in enumerate(cases):
        bare = {name: value for name, value in config.items() if name != "eos_token_id"}
        (folder / "config.json").write_text(json.dumps({**bare, **own}))
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": generation}))
        (folder / "tokenizer_config.json").write_text(json.dumps({**named, "eos_token": text or None}))
        if found is None:
            with pytest.raises(CheckpointError, match="name no end token"):
                write_gguf(folder, tmp_path / "no.gguf")
            continue
        write_gguf(folder, tmp_path / f"{place}.gguf")
        assert GGUFReader(tmp_path / f"{place}.gguf").fields["tokenizer.ggml.eos_token_id"].contents() == found


def test_several_chat_templates_go_out_by_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    shutil.copytree(SEEDLING, folder)
    named = json.loads((folder / "tokenizer_config.json").read_text())
    several = [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}, {"name": "x"}, 1]
    (folder / "tokenizer_config.json").write_text(json.dumps({**named, "chat_template": several}))
    write_gguf(folder, tmp_path / "m.gguf")
    fields = GGUFReader(tmp_path / "m.gguf").fields
    assert fields["tokenizer.chat_template"].contents() == "a"
    assert fields["tokenizer.chat_template.tool_use"].contents() == "b"


def around(*tokens: int | None) -> dict[str, Any]:
    """What a tokenizer puts around a text (None)."""
    parts = [{"Sequence": {"id": "A"}} if one is None else {"SpecialToken": {"id": f"t{one}"}} for one in tokens]
    special = {f"t{one}": {"id": f"t{one}", "ids": [one], "tokens": [f"t{one}"]} for one in tokens if one is not None}
    return {"type": "TemplateProcessing", "single": parts, "pair": parts, "special_tokens": special}


@pytest.mark.parametrize(
    ("tokens", "bos", "add_bos", "add_eos"), [((3, None), 3, True, False), ((None, 5), None, False, True)]
)
def test_what_the_tokenizer_puts_around_a_text_is_said(
    tokens: tuple[int | None, ...], bos: int | None, add_bos: bool, add_eos: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    shutil.copytree(SEEDLING, folder)
    made = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**made, "post_processor": around(*tokens)}))
    write_gguf(folder, tmp_path / "m.gguf")
    fields = GGUFReader(tmp_path / "m.gguf").fields
    found = fields.get("tokenizer.ggml.bos_token_id")
    assert (found.contents() if found else None) == bos
    assert fields["tokenizer.ggml.add_bos_token"].contents() is add_bos
    assert fields["tokenizer.ggml.add_eos_token"].contents() is add_eos


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config.json", {"architectures": ["GPT2LMHeadModel"]}, "GPT2LMHeadModel is not supported in GGUF"),
        ("config.json", {"architectures": 5}, "lacks a value for GGUF"),
        ("config.json", {"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters"),
        ("config.json", {"rope_scaling": {"type": "linear", "factor": 4.0}}, "rope_scaling"),
        ("config.json", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("config.json", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ("config.json", {"rms_norm_eps": None}, "lacks a value for GGUF"),
        ("config.json", {"hidden_size": "wide"}, "lacks a value for GGUF"),
        ("config.json", {"max_position_embeddings": -1}, "lacks a value for GGUF"),
        ("tokenizer.json", {"normalizer": {"type": "Lowercase"}}, "normalizes text"),
        ("tokenizer.json", {"model": {"type": "BPE", "vocab": {}}}, "lacks a value for GGUF"),
        ("tokenizer.json", {"post_processor": around(3, 4, None)}, "adds tokens around a text"),
        ("tokenizer.json", {"post_processor": around(None, 4)}, "adds tokens around a text"),
        ("config.json", {"use_sliding_window": True}, "use_sliding_window"),
        ("config.json", {"vocab_size": 100}, "the vocabulary size is 100"),
        ("tokenizer.json", {"pre_tokenizer": {"type": "Whitespace"}}, "no supported GGUF name"),
        ("tokenizer.json", {"model": {"type": "Unigram"}}, "not a byte-level BPE"),
    ],
)
def test_what_has_no_known_form_is_refused_and_nothing_is_left(
    file: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "m"
    shutil.copytree(SEEDLING, folder)
    (folder / file).write_text(json.dumps({**json.loads((folder / file).read_text()), **change}))
    with pytest.raises(CheckpointError, match=message) as caught:
        write_gguf(folder, tmp_path / "m.gguf")
    assert "llama.cpp" in caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize(
    ("change", "missing", "more"),
    [
        ({"num_attention_heads": 8}, None, None),
        ({"intermediate_size": 128}, None, None),
        ({"num_hidden_layers": 3}, None, None),
        ({"vocab_size": 600}, None, None),
        ({}, "model.norm.weight", None),
        ({}, "lm_head.weight", None),
        ({}, None, "model.layers.0.self_attn.q_proj.bias"),
    ],
)
def test_weights_that_are_not_those_of_the_configuration_are_refused(
    change: dict[str, Any], missing: str | None, more: str | None, tmp_path: Path
) -> None:
    folder = model_folder(tmp_path / "m", "llama")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    weights = load_file(folder / "model.safetensors")
    weights = {name: one for name, one in weights.items() if name != missing}
    save_file(weights | ({more: torch.ones(64)} if more else {}), folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="weights do not match"):
        write_gguf(folder, tmp_path / "m.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_file_with_another_weight_another_name_or_one_less_is_found_out(tmp_path: Path) -> None:
    write_gguf(SEEDLING, tmp_path / "s.gguf")
    tensors = {one.name: torch.tensor(one.data) for one in GGUFReader(tmp_path / "s.gguf").tensors}
    require_same(tmp_path / "s.gguf", tensors)
    name = "blk.0.attn_q.weight"
    changed = tensors[name].clone()
    changed[0, 0] += 1e-6
    less = {other: tensor for other, tensor in tensors.items() if other != name}
    for wrong in ({**tensors, name: changed}, less, {**less, "blk.9.attn_q.weight": tensors[name]}):
        with pytest.raises(CheckpointError, match="differs from what was written"):
            require_same(tmp_path / "s.gguf", wrong)


def test_the_halves_of_a_head_become_neighbours() -> None:
    weight = torch.arange(8.0)[:, None]
    assert turned(weight, 2).flatten().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
