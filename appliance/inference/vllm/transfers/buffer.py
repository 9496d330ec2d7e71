"""Packs tensors into one block of memory, and views them there.

Invariants: each tensor begins at a multiple of `ALIGNMENT` bytes, and a view is not a copy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

ALIGNMENT = 256
DTYPES = {
    str(one).removeprefix("torch."): one
    for one in (
        *(torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    )
}

Layout = list[dict[str, Any]]
"""One row per tensor: `name`, `dtype`, `shape`, and `at`, its first byte."""


def lay_out(tensors: Mapping[str, Tensor]) -> tuple[Layout, int]:
    """Assigns each tensor an offset in one buffer; returns the layout and the total bytes."""
    layout: Layout = []
    size = 0
    for name, tensor in tensors.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        layout.append({"name": name, "dtype": dtype, "shape": list(tensor.shape), "at": size})
        size += -(-tensor.nbytes // ALIGNMENT) * ALIGNMENT
    return layout, max(size, ALIGNMENT)


def views(memory: Tensor, layout: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """Returns views of the tensors laid out in a buffer `[bytes]` of type uint8."""
    found = {}
    for row in layout:
        dtype, shape = DTYPES[row["dtype"]], row["shape"]
        part = memory[row["at"] : row["at"] + math.prod(shape) * dtype.itemsize]
        found[row["name"]] = part.view(dtype).view(shape)
    return found


def fill(memory: Tensor, tensors: Mapping[str, Tensor], layout: Sequence[Mapping[str, Any]]) -> None:
    """Copies the tensors to their offsets in a buffer."""
    for name, place in views(memory, layout).items():
        place.copy_(tensors[name])
