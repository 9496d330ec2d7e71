"""Reads a model's shape from config.json and the weights' headers, without loading it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from appliance.planning import Shape
from appliance.seedling import POSITIONS

EMBEDDED = Shape(
    parameters=657_024,
    linear=((128, 128), (64, 128), (64, 128), (128, 128), (384, 128), (384, 128), (128, 384)) * 3,
    layers=3,
    hidden=128,
    intermediate=384,
    attention=128,
    key_value=64,
    vocabulary=512,
    tied=True,
    positions=POSITIONS,
    file_bytes=2_632_080,
)
"""Shape of the built-in model, which has no folder at first."""
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out)\.weight$")
_EMBEDDING = re.compile(r"(^|\.)(embed_tokens|wte|embed_in|word_embeddings|tok_embeddings|lm_head|embed_out)\.weight$")
"""Embeddings with a row per token; GPT-2's `wpe` has one per position."""
_MIXTURE = re.compile(r"\.experts\.|\.gate\.weight$")
"""Experts and their gates, which get no adapter."""
_LAYER = re.compile(r"(^|\.)(?:layers|h|blocks)\.(\d+)\.")


def shape_of(config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], file_bytes: int = 0) -> Shape:
    """Returns the sizes that decide a model's memory use, from its config.json and its tensors. Missing settings come
    from the tensors or the Llama family's defaults."""
    inner = config.get("text_config")
    text: Mapping[str, Any] = inner if isinstance(inner, dict) else config
    # Some families are tied without a setting: a model without a head tensor uses the embedding.
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings")) is True
    tied = tied or not any(map(_HEAD.search, shapes))
    linear = tuple(
        (shape[0], shape[1])
        for name, shape in shapes.items()
        if len(shape) == 2 and _LAYER.search(name) and not _EMBEDDING.search(name) and not _MIXTURE.search(name)
    )
    embedding = next((shape for name, shape in shapes.items() if len(shape) == 2 and _EMBEDDING.search(name)), (0, 0))
    hidden = _number(text, "hidden_size", "n_embd", "d_model") or embedding[1]
    layers = _number(text, "num_hidden_layers", "n_layer", "num_layers") or max(1, layers_in(shapes))
    heads = _number(text, "num_attention_heads", "n_head") or 1
    size = _number(text, "head_dim") or hidden // heads
    parameters = sum(
        math.prod(shape) for name, shape in shapes.items() if not (tied and name.endswith("lm_head.weight"))
    )
    return Shape(
        parameters=parameters,
        linear=linear,
        layers=layers,
        hidden=hidden,
        intermediate=_number(text, "intermediate_size", "n_inner", "ffn_dim") or 4 * hidden,
        attention=heads * size,
        key_value=(_number(text, "num_key_value_heads") or heads) * size,
        vocabulary=embedding[0] or _number(text, "vocab_size"),
        tied=tied,
        positions=_number(text, "max_position_embeddings", "n_positions"),
        file_bytes=file_bytes,
    )


def layers_in(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Counts a model's layers by these tensor names; 0 if unknown."""
    return len({found[2] for found in map(_LAYER.search, shapes) if found})


def _number(table: Mapping[str, Any], *names: str) -> int:
    """Returns the first of these settings that is a whole number above 0, of at most 31 bits; else 0."""
    found = (table.get(name) for name in names)
    return next((value for value in found if type(value) is int and 0 < value < 1 << 31), 0)
