"""Creates the built-in policy model, a small Qwen2, and its folder.

A folder is a normal Hugging Face model folder (`config.json`, `generation_config.json`, `tokenizer.json`,
`tokenizer_config.json`, `model.safetensors`) with `rendering.json`. Writing is not atomic: publish by writing to a
temporary folder and renaming it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import Qwen2Config, Qwen2ForCausalLM

from appliance.inference.folder import quietly
from appliance.rendering.formats import write_markers
from appliance.rendering.markers import SEEDLING
from appliance.seedling import POSITIONS


def new_seedling(tokenizer: Tokenizer, seed: int) -> Any:
    """Creates the built-in policy model, untrained, with 0.66 M parameters. Equal seeds give equal weights, without
    changing global state."""
    config = Qwen2Config(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(SEEDLING.end),
        pad_token_id=tokenizer.token_to_id(SEEDLING.pad),
        initializer_range=0.02,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen2ForCausalLM(config)


def save_model_folder(model: Any, tokenizer: Tokenizer, folder: Path) -> None:
    """Writes a model and its tokenizer as a complete model folder, creating `folder` if missing. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with quietly():
        model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": SEEDLING.end,
        "pad_token": SEEDLING.pad,
        "model_max_length": model.config.max_position_embeddings,
        "clean_up_tokenization_spaces": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    write_markers(folder, SEEDLING)
