"""Computes vLLM's start parameters: KV cache size and maximum adapter rank."""

from __future__ import annotations

import json

from appliance.inference.engine import ADAPTER, ADAPTER_CONFIG, ModelError, ModelFiles

CACHE_BYTES = 1 << 28
"""Maximum bytes of the KV cache without a GPU; less if all rows need less."""
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Maximum adapter ranks that vLLM accepts."""


def cache_bytes(config: str, rows: int, slots: int) -> int:
    """Returns the KV cache bytes of an engine with `rows` full rows in float32. They are at most `CACHE_BYTES`, unless
    two conversations need more."""
    known = json.loads(config)
    heads = known.get("num_key_value_heads") or known.get("num_attention_heads") or 1
    width = known.get("head_dim") or known.get("hidden_size", 1) // (known.get("num_attention_heads") or 1)
    token = 2 * 4 * heads * width * (known.get("num_hidden_layers") or 1)
    conversation = token * (slots + 128)
    return int(max(1 << 22, 2 * conversation, min(conversation * (rows + 1), CACHE_BYTES)))


def rank_of(files: ModelFiles) -> int:
    """Returns the smallest of vLLM's maximum LoRA ranks that allows this adapter. Raises ModelError."""
    header = files.get(ADAPTER, b"")[: 1 << 20]
    if b"lm_head" in header or b"embed_tokens" in header:
        raise ModelError(
            "the adapter changes the embedding or the head, which vLLM cannot score",
            hint="train an adapter of the linear layers only",
        )
    try:
        known = json.loads(files[ADAPTER_CONFIG])
        rank = max([int(known["r"]), *(known.get("rank_pattern") or {}).values()])
        return next(step for step in RANKS if step >= rank)
    except (KeyError, ValueError, TypeError, StopIteration) as error:
        raise ModelError(
            "the adapter's adapter_config.json is missing, or its rank exceeds 512",
            hint="provide the files that peft saves: adapter_config.json and adapter_model.safetensors",
        ) from error
