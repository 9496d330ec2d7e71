"""Process of one session: reads source from one pipe, answers on another, prints into a third.

It runs user code, so it is trusted only about itself: the outcome of its own call, once, after the request. Invariants:
it never knows the nonce of a call, and nothing of its parent is on its stack. The loop that reads requests and answers
them consists of C functions called by C: it has no frame, and no object leads user code to it. Its key, read before the
first source, is required in every answer. Code that reads its own process's raw memory, as `ctypes` can, may find the
key; then it can only speak for its own session.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import resource
import struct
import sys
from itertools import repeat
from operator import add

from runtime.guest import chance, kinds, seeds
from runtime.guest.report import FILENAME, report

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

KEY_BYTES, CALL_BYTES, SIZE_BYTES = 16, 8, 4
"""Sizes in bytes. A child first reads its key, and each answer starts with it; the call number follows, so that a
leftover of an earlier call, such as a forked process, cannot answer for a later one."""
ORDER = struct.Struct(">QIB")
"""Order to a child: call number, size of the rest, and its first byte: PLAIN before source, or SEEDED before seed and
source."""
CLAIM = struct.Struct(">IB")
"""Answer header after key and number: size of the report that follows, and the kind."""
PLAIN, SEEDED = 0, 1
MOST_FILES = 1 << 16
Ends = tuple[int, int, int]
"""Pipe ends of a child: requests, replies, output."""


class ForkedError(BaseException):
    """Raised in a newly forked process to unwind it to the bottom of its stack (see `worker`)."""

    def __init__(self, ends: Ends, confine: Callable[[], None] | None = None) -> None:
        """Stores the forked process's ends of its pipes; `confine` is called last before the first request."""
        super().__init__()
        self.ends, self.confine = ends, confine


def bound_memory(size: int) -> None:
    """Limits the address space of this process and its future children permanently, in bytes."""
    _bound(resource.RLIMIT_AS, size)


def bound_files(number: int) -> None:
    """Limits the open descriptors of this process and its future children permanently."""
    _bound(resource.RLIMIT_NOFILE, number)


def _bound(limit: int, value: int) -> None:
    _, most = resource.getrlimit(limit)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(limit, (value, value))


def load(names: list[str]) -> str:
    """Imports modules by name; returns a line with the first error, or an empty string."""
    for name in names:
        try:
            __import__(name)
        except BaseException as error:  # noqa: BLE001
            return " ".join(f"{name} could not be imported: {type(error).__name__}: {error}".split())
    return ""


def life(ends: Ends, confine: Callable[[], None] | None) -> Iterator[int]:
    """Returns an iterator over the process's remaining life: each step executes one call and writes its answer."""
    requests, replies = _settle(ends)
    sys.stdout = sys.stderr = io.TextIOWrapper(
        io.FileIO(1, "w", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )  # line-buffered: lines before a stop or exit are reported
    seeds.begin()  # after the fork, in which `random` reseeds itself
    attempt = _attempts(_fresh_main(), sys.stdout, repeatable=confine is not None)
    source = io.BufferedReader(io.FileIO(requests, closefd=False))
    if confine is not None:
        confine()
    key = source.read(KEY_BYTES)
    if len(key) < KEY_BYTES:
        os._exit(0)
    number: Callable[[bytes, str], int] = int.from_bytes  # type: ignore[assignment]
    marks = map(key.__add__, map(source.read, repeat(CALL_BYTES)))
    orders = map(source.read, map(number, map(source.read, repeat(SIZE_BYTES)), repeat("big")))
    return _hidden(map(os.write, repeat(replies), map(add, marks, map(attempt, orders))))


def _settle(ends: Ends) -> tuple[int, int]:
    """Closes all descriptors but standard input and the pipes, sends both outputs to one; returns the other two."""
    requests, replies, output = ends
    os.dup2(output, 1)
    os.dup2(output, 2)
    low, high = sorted((requests, replies))
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, MOST_FILES)
    return requests, replies


def _fresh_main() -> dict[str, Any]:
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    for name in [name for name in sys.modules if name == "runtime" or name.startswith("runtime.")]:
        del sys.modules[name]
    return vars(main)


def _attempts(names: dict[str, Any], output: io.TextIOWrapper, *, repeatable: bool) -> Callable[[bytes], bytes]:
    """Returns the function that executes a call's source and returns the answer. Above user code it is our only frame
    besides the bottom one.

    With `repeatable`, state that could not be replayed ends the process.
    """

    def attempt(order: bytes) -> bytes:
        if not order:
            os._exit(0)
        if order[0] == SEEDED:
            _seed(order[1 : 1 + seeds.BYTES])
        text = order[1 if order[0] == PLAIN else 1 + seeds.BYTES :].decode("utf-8", "surrogatepass")
        kind, error = kinds.OK, b""
        try:
            exec(compile(text, FILENAME, "exec", dont_inherit=True), names)  # noqa: S102
        except BaseException as failure:  # noqa: BLE001
            kind, error = kinds.EXCEPTION, report(failure, text)
        try:
            _flush(output)
        except BaseException as failure:  # noqa: BLE001
            kind, error = kinds.EXCEPTION, report(failure, text)
        if repeatable and chance.keeps_addresses(names):
            chance.elsewhere()
        return CLAIM.pack(len(error), kind) + error

    return attempt


def _flush(output: io.TextIOWrapper) -> None:
    """Flushes everything that the call printed, including writers that user code installed, as Python does at exit."""
    for writer in (output, getattr(sys, "stdout", None), getattr(sys, "stderr", None)):
        try:
            writer.flush()  # type: ignore[union-attr]
        except (AttributeError, ValueError):  # none, closed or detached: it holds nothing
            continue


def _seed(value: bytes) -> None:
    try:
        seeds.seed_all(value)
    except BaseException:  # noqa: BLE001 - user code replaced the modules: better no process than one
        os._exit(0)  # that draws its siblings' numbers


def _hidden(turns: Iterator[int]) -> Iterator[int]:
    """Hides an iterator and its parts from the garbage collector, and thus from user code; returns the iterator."""
    untrack = ctypes.pythonapi.PyObject_GC_UnTrack
    waiting: list[Any] = [turns]
    while waiting:
        found = waiting.pop()
        if type(found) in HIDDEN:
            untrack(ctypes.py_object(found))
            waiting += gc.get_referents(found)
    return turns


HIDDEN: tuple[type, ...] = (
    map, repeat, tuple, type(b"".__add__), type([].append), io.BufferedReader, io.FileIO,
)  # fmt: skip
