"""Reads safetensors headers: tensor shapes, and whether the file is complete.

Invariants: only the header is read, as plain JSON. A file has 8 bytes with the header's length, the header, then the
tensors without gaps, each as long as type and shape say, and nothing else (the format's specification,
huggingface/safetensors).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_LENGTH = struct.Struct("<Q")
MAX_HEADER_BYTES = 100_000_000
"""Maximum header size, set by the format."""
BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
"""Bits per number, by the format's type names."""

Shapes = Mapping[str, tuple[int, ...]]
"""Tensor shapes by name."""


def read_shapes(shard: Path) -> Shapes | None:
    """Returns the tensor shapes in a safetensors file's header; None if the header is missing or does not match the
    file. Raises OSError."""
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
            return _tensors(header, size - _LENGTH.size - length)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            return None


def _tensors(header: Mapping[str, Any], room: int) -> Shapes | None:
    """Returns the tensor shapes in a safetensors header, or None unless its tensors fill exactly `room` bytes."""
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    shapes = {name: tuple(entry["shape"]) for name, entry in entries.items()}
    end = 0
    for start, stop, name in sorted((*entry["data_offsets"], name) for name, entry in entries.items()):
        numbers = (start, stop, *shapes[name])
        if any(type(one) is not int or one < 0 for one in numbers) or start != end:
            return None
        if 8 * (stop - start) != _bits(shapes[name], BITS[entries[name]["dtype"]], 8 * room):
            return None
        end = stop
    return shapes if end == room else None


def _bits(shape: tuple[int, ...], each: int, most: int) -> int:
    """Returns the size of a tensor in bits; a number above `most` for any larger one, however large it claims to be."""
    if 0 in shape:
        return 0
    found = each
    for one in shape:
        found *= one
        if found > most:
            return most + 8
    return found
