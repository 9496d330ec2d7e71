"""Stores frozen linear layers in 4 bits: NF4 with 8-bit block scales (QLoRA, 2305.14314), by bitsandbytes.

Invariants: a layer computes with its dequantised weight, which is also what is hashed, pushed and merged into; the
packed bits stay in their process and never change. Quantising runs on the CPU and does not depend on the number of
threads, so all processes that read the same files have the same weights.

A model that was published beside 4 bits lies near their grid, and packing it again would round off what it learned
(0 to 6 % stays). There the rest's largest singular parts begin the new adapter, after LoftQ (2310.08659), and all but
3 to 30 % of it stays.
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
ON_GRID = 0.05
"""Maximum norm of what packing rounds off, as a share of the weight's, for a weight that was in 4 bits before; others
lose some 0.09."""
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

    def __init__(self, linear: nn.Linear, dtype: torch.dtype, rank: int = 0) -> None:
        """Quantises a linear layer, which computes in `dtype` from now on, on its device. With `rank`, sets `start` if
        the weight was in 4 bits before. Raises ModelError without bitsandbytes."""
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.bias = linear.bias
        weight = linear.weight.detach().cpu()
        packed, self._state = _quantised(weight.to(dtype))
        self.register_buffer("packed", packed, persistent=False)
        self.start: tuple[Tensor, Tensor] | None = None
        """Factors `[rank, in]` and `[out, rank]`, float32, that a new adapter begins with."""
        if rank:
            rest = weight.float() - self.weight.float()
            if rest.norm() < ON_GRID * weight.float().norm():
                self.start = _factors(rest, rank)
        self.to(linear.weight.device, dtype)

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The dequantised weight `[out, in]` on the layer's device, in the type that was quantised."""
        found: Tensor = _library().functional.dequantize_4bit(self.packed, self._state)
        return found

    def read(self) -> Tensor:
        """Returns the dequantised weight as computed on a CPU, whose bits are equal in every process."""
        state = copy.deepcopy(self._state)
        state.to("cpu")
        found: Tensor = _library().functional.dequantize_4bit(self.packed.cpu(), state)
        return found

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
    """Packs a weight on the CPU; returns its bits `[ceil(n / 2), 1]` and bitsandbytes' state, as of its
    `compress_statistics`. But scales are then fitted to the chosen codes by least squares, which finds those of a
    weight that was packed before, and their mean is summed in one order."""
    functional = _library().functional
    packed, first = functional.quantize_4bit(weight, quant_type="nf4", compress_statistics=False)
    exact, near = (
        nn.functional.pad(one.float().flatten(), (0, -one.numel() % first.blocksize)).view(-1, first.blocksize)
        for one in (weight, functional.dequantize_4bit(packed, first))
    )
    squares = (near * near).sum(1)
    first.absmax *= torch.where(squares > 0, (exact * near).sum(1) / squares, 1.0)
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


def _factors(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Returns factors `[rank, in]` and `[out, rank]` of about the nearest matrix of this rank; equal on each call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        left, sizes, right = torch.svd_lowrank(matrix, q=min(rank + 8, *matrix.shape), niter=4)
    root = sizes[:rank].sqrt()
    first, second = torch.zeros(rank, matrix.shape[1]), torch.zeros(matrix.shape[0], rank)
    first[: len(root)], second[:, : len(root)] = (right[:, :rank] * root).T, left[:, :rank] * root
    return first, second


def quantise(model: Any, dtype: torch.dtype, rank: int = 0) -> None:
    """Packs all linear layers of a transformers model but the head, in place, one at a time, and casts the rest to
    `dtype`; again changes nothing. `rank` is that of the adapter to come. Raises ModelError for a model without such
    layers, or without bitsandbytes."""
    head, found = model.get_output_embeddings(), 0
    for name, layer in list(model.named_modules()):
        if type(layer) is nn.Linear and layer is not head:
            model.set_submodule(name, Nf4Linear(layer, dtype, rank))
        found += isinstance(model.get_submodule(name), Nf4Linear)
    if not found:
        raise ModelError(
            f"{type(model).__name__} has no linear layers to store in 4 bits", hint="set training.method to lora"
        )
    for parameter in model.parameters():  # buffers keep their types, as on opening
        parameter.data = parameter.data.to(dtype)


def dequantise(model: nn.Module) -> None:
    """Replaces all packed layers of a model by plain ones with the same weights, in place."""
    for name, layer in list(model.named_modules()):
        if isinstance(layer, Nf4Linear):
            model.set_submodule(name, layer.plain())


def reader(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Returns the function that dequantises the model's packed tensors and returns others unchanged."""
    layers = {id(one.packed): one for one in model.modules() if isinstance(one, Nf4Linear)}
    return lambda tensor: layers[id(tensor)].read() if id(tensor) in layers else tensor
