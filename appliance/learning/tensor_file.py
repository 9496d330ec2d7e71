"""Writes tensors as a safetensors file in chunks, so that a model-sized file is never in memory.

Invariants: the bytes equal `safetensors.torch.save` of the same tensors: 8 bytes with the header's length, a JSON
header padded to a multiple of 8, then the tensors, wide elements first, then by name (the format's specification,
huggingface/safetensors).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from appliance.inference.shards import whole

_NAMES = {
    torch.float64: "F64",
    torch.int64: "I64",
    torch.float32: "F32",
    torch.int32: "I32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int16: "I16",
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.bool: "BOOL",
}
_ORDER = {dtype: place for place, dtype in enumerate((torch.float64, torch.int64, torch.float32, torch.int32))} | {
    dtype: 4 + place
    for place, dtype in enumerate((torch.bfloat16, torch.float16, torch.int16, torch.int8, torch.uint8, torch.bool))
}


class TensorFile:
    """Content of a safetensors file as an iterable of chunks, repeatable. Tensors are read when their turn comes."""

    def __init__(self, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
        self._tensors = sorted(tensors.items(), key=lambda item: (_ORDER[item[1].dtype], item[0]))
        self._metadata = metadata

    def __iter__(self) -> Iterator[bytes | memoryview]:
        header: dict[str, object] = {"__metadata__": dict(self._metadata)} if self._metadata else {}
        start = 0
        for name, tensor in self._tensors:
            end = start + tensor.numel() * tensor.element_size()
            header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
            start = end
        written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        written += b" " * (-len(written) % 8)
        yield struct.pack("<Q", len(written))
        yield written
        for _, tensor in self._tensors:
            yield whole(tensor.detach()).cpu().contiguous().flatten().view(torch.uint8).numpy().data
