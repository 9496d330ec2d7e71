"""Chooses the torch engine's device and data type, and reports exhausted memory."""

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
"""Share of a GPU's memory for the KV cache."""


@dataclass(frozen=True)
class Placement:
    device: torch.device
    dtype: torch.dtype
    """Data type of weights and KV cache; log-probabilities are always float32."""

    @property
    def gpu(self) -> bool:
        return self.device.type == "cuda"

    def kv_memory(self) -> int:
        """Returns the bytes available for the KV cache: most of a GPU's free memory, or a third of the machine's."""
        if self.gpu:
            free, _ = torch.cuda.mem_get_info(self.device)
            return int(free * KV_SHARE)
        return memory_limit() // 3

    def most_kv_memory(self) -> int:
        """Returns the bytes for the KV cache if nobody else used the device."""
        if self.gpu:
            _, total = torch.cuda.mem_get_info(self.device)
            return int(total * KV_SHARE)
        return self.kv_memory()

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """Context that converts torch's out-of-memory error to OutOfMemoryError; `doing` is the work in its message."""
        try:
            yield
        except torch.OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"the {'GPU' if self.gpu else 'machine'} ran out of memory while {doing}",
                hint="stop other programs on it, lower recipe.agent.concurrent or recipe.agent.max_tokens, or set "
                "model.dtype to bfloat16",
            ) from error


def choose_placement(device: str = "auto", dtype: str = "auto") -> Placement:
    """Chooses torch's device and number type for `[model] device` and `dtype`; "auto" is bfloat16 on a GPU if
    available, else float32 on the CPU. Raises ModelError for an unknown name, and InfrastructureError for a missing
    GPU."""
    if device not in ("auto", "cpu", "cuda"):
        raise ModelError(f"invalid device {device!r}", hint="set model.device to auto, cpu or cuda")
    if dtype not in ("auto", *DTYPES):
        raise ModelError(f"invalid type {dtype!r}", hint="set model.dtype to auto, float32 or bfloat16")
    there = device != "cpu" and torch.cuda.is_available()
    if device == "cuda" and not there:
        raise InfrastructureError(
            "model.device is cuda, but torch finds no GPU here",
            hint="check GPUs with `nvidia-smi` and install a torch build with CUDA, or set model.device to auto or cpu",
        )
    if dtype == "auto":
        dtype = "bfloat16" if there else "float32"
    return Placement(torch.device("cuda", 0) if there else torch.device("cpu"), DTYPES[dtype])


def is_gpus(error: BaseException) -> bool:
    """True if a GPU ran out of memory or failed, which is not the model's fault."""
    return isinstance(error, torch.OutOfMemoryError) or "CUDA error" in str(error)


def token_bytes(config: Any, dtype: torch.dtype) -> int:
    """Returns the KV cache bytes per token, over all layers of a model with this configuration."""
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    shared = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * shared * size * dtype.itemsize)
