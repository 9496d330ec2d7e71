"""The seedling is a normal model folder: transformers loads it, and the engine decodes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from appliance.inference.engine import GenerationRequest, ModelError
from appliance.inference.engines import make_engine
from appliance.inference.folder import open_model, read_model
from appliance.rendering.formats import load_renderer
from appliance.seedling.model import new_seedling, save_model_folder
from appliance.seedling.tokenizer import special_tokens, train_tokenizer

torch.set_num_threads(1)
TEXTS = [f"gcd of {a} and {b}?\nimport math\nprint(math.gcd({a},{b}))" for a in range(12) for b in range(40)]
TOKENIZER = train_tokenizer(TEXTS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "made" / "here"
    save_model_folder(new_seedling(TOKENIZER, seed=5), TOKENIZER, path)
    return path


def test_it_has_two_thirds_of_a_million_parameters_and_room_for_256_tokens() -> None:
    tokenizer = train_tokenizer([f"{a:x} {a * 7919:x}" for a in range(20000)])
    model = new_seedling(tokenizer, seed=0)
    assert 0.64e6 < sum(weight.numel() for weight in model.parameters()) < 0.68e6
    assert model.config.max_position_embeddings == 256


def test_equal_seeds_give_equal_weights_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    one, same, other = (new_seedling(TOKENIZER, seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not torch.equal(one["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_the_folder_is_what_transformers_expects(folder: Path) -> None:
    expected = new_seedling(TOKENIZER, seed=5).eval()
    found = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
    ids = torch.tensor([[1, 9, 30, 5, 2, 77]])
    assert torch.equal(expected(ids).logits, found(ids).logits)
    assert (found.config.eos_token_id, found.config.pad_token_id) == (5, 0)


def test_transformers_reads_text_as_the_renderer_does(folder: Path) -> None:
    found = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    renderer = load_renderer(read_model(folder))
    for text in [*TEXTS[:50], "It's 1,234.5 €\n\n  漢字\t", " lead"]:
        assert tuple(found.encode(text, add_special_tokens=False)) == renderer.plain(text)
    assert found.convert_tokens_to_ids(special_tokens()) == list(range(6))
    assert found.decode(renderer.question("gcd of 1 and 2?")) == "<|user|>gcd of 1 and 2?<|end|><|assistant|>"


def test_a_folder_can_be_saved_from_what_was_loaded(folder: Path, tmp_path: Path) -> None:
    save_model_folder(open_model(read_model(folder)), TOKENIZER, tmp_path / "copy")
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "rendering.json"):
        assert (tmp_path / "copy" / name).read_bytes() == (folder / name).read_bytes()


def test_the_engine_decodes_a_conversation_of_the_seedling(folder: Path) -> None:
    renderer = load_renderer(read_model(folder))
    engine = make_engine("torch", rows=2, slots=60)
    engine.push(read_model(folder), "seedling")
    engine.submit(GenerationRequest(0, renderer.question("gcd of 12 and 18?"), renderer.stop, 60, 1.0, 0))
    engine.submit(GenerationRequest(1, renderer.question("<|end|><|tool|>"), renderer.stop, 60, 0.0, 0))
    turns = [turn for _ in range(60) for turn in engine.step()]
    assert {turn.request for turn in turns} == {0, 1}
    assert all(len(turn.ids) == len(turn.logprobs) > 0 for turn in turns)


def test_a_folder_whose_weights_are_gone_is_refused_with_a_hint(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="no safetensors") as caught:
        open_model(read_model(folder))
    assert "convert the weights" in caught.value.hint


def test_nothing_in_the_folder_asks_for_code_or_the_network(folder: Path) -> None:
    for name in ("config.json", "tokenizer_config.json", "generation_config.json"):
        assert "auto_map" not in json.loads((folder / name).read_text())
    assert not list(folder.glob("*.py")) + list(folder.glob("*.bin"))
