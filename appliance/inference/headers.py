"""Reads what safetensors files say of themselves: which tensors they hold, and whether they are whole.

What always holds: only the header is read, by plain JSON. A file has 8 bytes with the header's length, the header, then
as many bytes as the last tensor's end (the format's specification, huggingface/safetensors).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

_LENGTH = struct.Struct("<Q")
MAX_HEADER_BYTES = 100_000_000
"""The format's own limit."""

Shapes = Mapping[str, tuple[int, ...]]
"""Of each tensor, by its name."""


def read_shapes(shard: Path) -> Shapes | None:
    """Returns the tensors of a file; None for one that is not as its header says, or has no header. Raises OSError."""
    size = shard.stat().st_size
    with shard.open("rb") as stream:
        start = stream.read(_LENGTH.size)
        if len(start) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack(start)
        if length > min(MAX_HEADER_BYTES, size - _LENGTH.size):
            return None
        try:
            header = json.loads(stream.read(length))
            tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
            ends = [int(entry["data_offsets"][1]) for entry in tensors.values()]
            shapes = {name: tuple(map(int, entry["shape"])) for name, entry in tensors.items()}
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            return None
    if any(one < 0 for shape in shapes.values() for one in shape):
        return None
    return shapes if size == _LENGTH.size + length + max(ends, default=0) else None
