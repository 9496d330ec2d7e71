"""Stores frozen linear layers in 4 bits: NF4 with 8-bit block scales (QLoRA, 2305.14314), by bitsandbytes.

Invariants: a layer computes with its dequantised weight, which is also what is hashed, pushed and merged into; the
packed bits stay in their process and never change. Quantising runs on the CPU and does not depend on the number of
threads, so all processes that read the same files have the same weights.
"""

from __future__ import annotations

import copy
import importlib
import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from appliance.inference.engine import ModelError

BLOCKS_OF_SCALES = 256
"""Block scales that share a scale of their own; a block has 64 weights."""
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it recommends to download kernels


@cache
def _library() -> Any:
    """Returns bitsandbytes. Raises ModelError if it cannot be loaded."""
    try:
        return importlib.import_module("bitsandbytes")
    except (ImportError, OSError, RuntimeError) as error:
        raise ModelError(
            f"training.method is qlora, but bitsandbytes cannot be loaded: {error}",
            hint="install bitsandbytes 0.50 or later, or set training.method to lora",
        ) from error


class Nf4Linear(nn.Linear):
    """Linear layer with a packed weight that is never trained. Its gradient passes to the inputs."""

    packed: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        """Quantises a linear layer, whose bias is used as it is, and moves to its device. Raises ModelError without
        bitsandbytes."""
        nn.Module.__init__(self)
        self.in_features, self.out_features, self.bias = linear.in_features, linear.out_features, linear.bias
        packed, self._state = _quantised(linear.weight.detach().cpu())
        self.register_buffer("packed", packed, persistent=False)
        self.to(linear.weight.device)

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The dequantised weight `[out, in]` on the layer's device, in the type that was quantised."""
        found: Tensor = _library().functional.dequantize_4bit(self.packed, self._state)
        return found

    def read(self) -> Tensor:
        """Returns the dequantised weight as computed on a CPU, whose bits are equal in every process."""
        if self.packed.device.type == "cpu":
            return self.weight
        return copy.deepcopy(self).cpu().weight

    def plain(self) -> nn.Linear:
        """Returns an unpacked layer with the same weight."""
        weight = self.read().to(self.packed.device)
        found = nn.Linear(self.in_features, self.out_features, bias=False, device="meta")
        found.weight, found.bias = nn.Parameter(weight, requires_grad=False), self.bias
        return found

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        found: Tensor = _library().matmul_4bit(
            input.to(self._state.dtype), self.packed, bias=self.bias, quant_state=self._state
        )
        return found

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Nf4Linear:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._state.to(self.packed.device)
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.packed


def _quantised(weight: Tensor) -> tuple[Tensor, Any]:
    """Packs a weight on the CPU; returns its bits `[ceil(n / 2), 1]` and bitsandbytes' state. Equals its
    `compress_statistics`, except that the mean of the scales is summed in one order."""
    functional = _library().functional
    packed, first = functional.quantize_4bit(weight, quant_type="nf4", compress_statistics=False)
    offset = torch.tensor(first.absmax.numpy().mean(dtype=np.float64), dtype=torch.float32)
    scales, second = functional.quantize_blockwise(first.absmax - offset, blocksize=BLOCKS_OF_SCALES)
    state = functional.QuantState(
        absmax=scales,
        shape=first.shape,
        code=first.code,
        blocksize=first.blocksize,
        quant_type=first.quant_type,
        dtype=first.dtype,
        offset=offset,
        state2=second,
    )
    return packed, state


def quantise(model: Any) -> None:
    """Packs all linear layers of a transformers model but the head, in place, one at a time; again changes nothing.
    Raises ModelError for a model without such layers, or without bitsandbytes."""
    head, found = model.get_output_embeddings(), 0
    for name, layer in list(model.named_modules()):
        if type(layer) is nn.Linear and layer is not head:
            model.set_submodule(name, Nf4Linear(layer))
        found += isinstance(model.get_submodule(name), Nf4Linear)
    if not found:
        raise ModelError(
            f"{type(model).__name__} has no linear layers to store in 4 bits", hint="set training.method to lora"
        )


def dequantise(model: nn.Module) -> None:
    """Replaces all packed layers of a model by plain ones with the same weights, in place."""
    for name, layer in list(model.named_modules()):
        if isinstance(layer, Nf4Linear):
            model.set_submodule(name, layer.plain())


def reader(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Returns the function that dequantises the model's packed tensors and returns others unchanged."""
    layers = {id(one.packed): one for one in model.modules() if isinstance(one, Nf4Linear)}
    return lambda tensor: layers[id(tensor)].read() if id(tensor) in layers else tensor
