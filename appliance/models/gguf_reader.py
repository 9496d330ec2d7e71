"""Reads GGUF files that somebody else wrote: header fields, and tensors as plain numbers (with the package gguf).

Invariants: lengths, counts and offsets are compared with the file's size and with fixed bounds before anything is
allocated; names are UTF-8 and unique; tensors lie inside the file and do not overlap, so that a small file cannot
describe a large model. Nothing outside the file is opened.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from appliance.readiness.model import UnusableModelError

MAGIC = b"GGUF"
MOST_HEADER = 256 << 20
"""Maximum bytes of fields and tensor descriptions; a vocabulary of 250,000 tokens has 12 MiB."""
MOST_ITEMS = 4_000_000
"""Maximum items of all arrays together."""
MOST_NAME = 256
_COPY_AGAIN = "download or copy the file again"
_TEXT, _ARRAY = 8, 9
_SCALARS = {
    number: struct.Struct("<" + code)
    for number, code in {
        0: "B",
        1: "b",
        2: "H",
        3: "h",
        4: "I",
        5: "i",
        6: "f",
        7: "?",
        10: "Q",
        11: "q",
        12: "d",
    }.items()
}
"""Field types with one number, by the format's numbers."""
_CHUNK = 1 << 23
"""Weights converted at a time."""


@dataclass(frozen=True)
class GgufTensor:
    kind: str
    """Number format, such as `Q4_K`."""
    shape: tuple[int, ...]
    """Rows first, as in safetensors."""
    start: int
    size: int
    """Bytes in the file."""


@dataclass(frozen=True)
class GgufFile:
    path: Path
    fields: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]
    state: tuple[int, ...]
    """Inode, size and time of change when the header was read."""

    def bytes_of(self, name: str) -> NDArray[np.uint8]:
        """Reads a tensor as rows of bytes. Raises UnusableModelError for a file that has changed, and OSError."""
        tensor = self.tensors[name]
        with self.path.open("rb") as stream:
            stream.seek(tensor.start)
            content = stream.read(tensor.size)
            state = _state(stream)
        if len(content) != tensor.size or state != self.state:
            raise UnusableModelError(f"{self.path} was changed while it was read", hint=_COPY_AGAIN)
        return np.frombuffer(content, np.uint8).reshape(math.prod(tensor.shape[:-1]), -1)


def _state(stream: BinaryIO) -> tuple[int, ...]:
    about = os.fstat(stream.fileno())
    return about.st_ino, about.st_size, about.st_mtime_ns


def numbers(rows: NDArray[np.uint8], kind: str) -> Iterator[NDArray[np.float32]]:
    """Yields rows of tensor bytes as float32, some at a time."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    known = GGMLQuantizationType[kind]
    block, size = GGML_QUANT_SIZES[known]
    step = max(1, _CHUNK // (rows.shape[1] // size * block))
    for start in range(0, len(rows), step):
        yield dequantize(rows[start : start + step], known)


def read_gguf(path: Path) -> GgufFile:
    """Reads the header of a GGUF file. Raises UnusableModelError for a damaged, oversized or unsupported one, and
    OSError."""
    if not path.is_file():
        raise UnusableModelError(f"no such file: {path}", hint="check the path")
    size = path.stat().st_size
    with path.open("rb") as stream:
        state = _state(stream)
        header = _GgufHeader(path, stream, size)
        if header.take(4) != MAGIC:
            raise header.fault("not a GGUF file")
        version = header.number(4)
        if version not in (2, 3):
            raise header.fault(f"version {version} of the format is not supported: use 2 or 3, little-endian")
        count = header.number(10)
        fields: dict[str, Any] = {}
        for _ in range(header.bounded(header.number(10), 13, "fields")):
            name = header.name(fields)
            fields[name] = header.value(header.number(4))
        described: dict[str, tuple[str, tuple[int, ...], int, int]] = {}
        for _ in range(header.bounded(count, 24, "tensors")):
            name = header.name(described)
            described[name] = header.tensor(name)
        align = fields.get("general.alignment", 32)
        if type(align) is not int or not 0 < align <= 1 << 16 or align & (align - 1):
            raise header.fault(f"invalid general.alignment ({align!r:.40})")
        begin = -(-stream.tell() // align) * align
    tensors = {
        name: GgufTensor(kind, shape, begin + at, length) for name, (kind, shape, at, length) in described.items()
    }
    end = begin
    for name, one in sorted(tensors.items(), key=lambda item: item[1].start):
        if one.start < end or one.start + one.size > size:
            raise header.fault(f"tensor {name!a:.80} lies outside the file, or in another tensor")
        end = one.start + one.size
    for kind in {one.kind for one in tensors.values()}:
        _require_readable(path, kind)
    return GgufFile(path, fields, tensors, state)


class _GgufHeader:
    """Sequential reader of a header within the bounds."""

    def __init__(self, path: Path, stream: BinaryIO, size: int) -> None:
        self._path, self._stream = path, stream
        self._left = min(size, MOST_HEADER)
        self._items = MOST_ITEMS

    def fault(self, problem: str) -> UnusableModelError:
        return UnusableModelError(f"{self._path}: {problem}", hint=_COPY_AGAIN)

    def take(self, size: int) -> bytes:
        if size > self._left:
            raise self.fault("its header claims more than the file has")
        self._left -= size
        content = self._stream.read(size)
        if len(content) != size:
            raise self.fault("it was truncated while it was read")
        return content

    def number(self, kind: int) -> Any:
        form = _SCALARS[kind]
        return form.unpack(self.take(form.size))[0]

    def bounded(self, count: int, least: int, of: str) -> int:
        """Returns a count of items that take at least `least` bytes each, if the header can hold so many."""
        if count * least > self._left or count > self._items:
            raise self.fault(f"its header claims {count} {of}")
        self._items -= count
        return count

    def text(self, most: int = MOST_HEADER) -> str:
        size = self.number(10)
        if size > most:
            raise self.fault(f"its header has a text of {size} bytes")
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise self.fault("its header has a text that is not UTF-8") from error

    def name(self, taken: Mapping[str, Any]) -> str:
        name = self.text(MOST_NAME)
        if not name or name in taken:
            raise self.fault(f"it has two entries named {name!a:.80}" if name else "it has an entry without a name")
        return name

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind in _SCALARS:
            return self.number(kind)
        if kind != _ARRAY:
            raise self.fault(f"its header has a field of unknown type {kind}")
        inner, count = self.number(4), self.number(10)
        if inner == _TEXT:
            return [self.text() for _ in range(self.bounded(count, 8, "texts"))]
        if inner not in _SCALARS:
            raise self.fault(f"its header has an array of unknown type {inner}")
        form = _SCALARS[inner]
        content = self.take(self.bounded(count, form.size, "numbers") * form.size)
        return [one[0] for one in form.iter_unpack(content)]

    def tensor(self, name: str) -> tuple[str, tuple[int, ...], int, int]:
        """Reads a tensor's description: number format, shape, offset behind the header, and size in bytes."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        dimensions = self.number(4)
        if not 1 <= dimensions <= 4:
            raise self.fault(f"tensor {name!a:.80} has {dimensions} dimensions")
        shape = tuple(self.number(10) for _ in range(dimensions))[::-1]
        number, start = self.number(4), self.number(10)
        try:
            kind = GGMLQuantizationType(number)
            block, size = GGML_QUANT_SIZES[kind]
        except (ValueError, KeyError) as error:
            raise self.fault(f"tensor {name!a:.80} has an unknown number format ({number})") from error
        if 0 in shape or shape[-1] % block:
            raise self.fault(f"tensor {name!a:.80} has a shape that its number format {kind.name} cannot have")
        return kind.name, shape, start, math.prod(shape) // block * size


def _require_readable(path: Path, kind: str) -> None:
    """Raises UnusableModelError unless the installed package gguf converts this number format to float32."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    if kind in ("F64", "I8", "I16", "I32", "I64"):
        raise UnusableModelError(
            f"{path}: tensors of type {kind} are not weights of a language model", hint=_COPY_AGAIN
        )
    try:
        next(numbers(np.zeros((1, GGML_QUANT_SIZES[GGMLQuantizationType[kind]][1]), np.uint8), kind))
    except NotImplementedError as error:
        raise UnusableModelError(
            f"{path}: quantization {kind} cannot be converted back to numbers by the package gguf",
            hint="import the same model in another quantization, such as Q4_K_M or Q8_0, or its original folder",
        ) from error
