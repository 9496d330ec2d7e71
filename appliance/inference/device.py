"""Chooses what the torch engine computes on and in, and says in one sentence when that has no memory left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from appliance.inference.engine import ModelError, OutOfMemoryError
from appliance.inference.memory import memory_limit
from runtime.errors import InfrastructureError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
KV_SHARE = 0.8
"""Of a GPU's memory, for keys and values."""


@dataclass(frozen=True)
class Placement:
    device: torch.device
    dtype: torch.dtype
    """Of weights, keys and values; log-probabilities are computed in float32 whatever it is."""

    @property
    def gpu(self) -> bool:
        return self.device.type == "cuda"

    def kv_memory(self) -> int:
        """Bytes that keys and values may take: most of what a GPU has free, or a third of the machine's memory."""
        if self.gpu:
            free, _ = torch.cuda.mem_get_info(self.device)
            return int(free * KV_SHARE)
        return memory_limit() // 3

    def most_kv_memory(self) -> int:
        """Bytes that they could take if nobody else used the device."""
        if self.gpu:
            _, total = torch.cuda.mem_get_info(self.device)
            return int(total * KV_SHARE)
        return self.kv_memory()

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """Makes one OutOfMemoryError of what torch says of a GPU without memory."""
        try:
            yield
        except torch.OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"the {'GPU' if self.gpu else 'machine'} ran out of memory while {doing}",
                hint="end what else uses it, lower recipe.agent.concurrent or recipe.agent.max_tokens, or set "
                "model.dtype to bfloat16",
            ) from error


def choose_placement(device: str = "auto", dtype: str = "auto") -> Placement:
    """Takes what `[model] device` and `dtype` say; "auto" is a GPU in bfloat16 where there is one, else the processor
    in float32. Raises ModelError for an unknown name, and InfrastructureError for a GPU that is not there, or not any
    more."""
    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f"there is no device {device!r}", hint="set model.device to auto, cpu or cuda")
    if dtype not in ("auto", *DTYPES):
        raise ModelError(f"there is no type {dtype!r}", hint="set model.dtype to auto, float32 or bfloat16")
    there = device != "cpu" and torch.cuda.is_available()
    if device == "cuda" and not there:
        raise InfrastructureError(
            "model.device is cuda, but torch finds no GPU here",
            hint="`nvidia-smi` shows GPUs, and the torch that is installed must be one with CUDA; or set model.device "
            "to auto or cpu",
        )
    if dtype == "auto":
        dtype = "bfloat16" if there else "float32"
    return Placement(torch.device("cuda", 0) if there else torch.device("cpu"), DTYPES[dtype])


def is_gpus(error: BaseException) -> bool:
    """Says whether a GPU had no memory left, or broke: no model is to blame for that."""
    return isinstance(error, torch.OutOfMemoryError) or "CUDA error" in str(error)


def token_bytes(config: Any, dtype: torch.dtype) -> int:
    """Counts what keys and values of one token take in all layers of a model with this configuration."""
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    shared = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * shared * size * dtype.itemsize)
