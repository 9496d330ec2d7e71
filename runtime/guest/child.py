"""Is the process of one session: takes source from one pipe, answers on another, prints into a third.

It runs user code, so what it says is believed only of itself: how its own call ended, once, after it was asked. What
always holds: it never knows the nonce of a call, and nothing of its parent's is on its stack. What reads requests and
answers them is made of functions of C, called by C: it is in no frame, and no object leads user code to it. It has a
key, read before the first source, without which nothing on the pipe is an answer. What reads the raw memory of its own
process, as `ctypes` can, may find that; then it has a word for its own session.
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

TYPE_CHECKING = False  # what it guards is for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

KEY_BYTES, CALL_BYTES, SIZE_BYTES = 16, 8, 4
"""The key is the first that a child reads, and what each of its answers begins with; the number of the call follows, so
that what was left of an earlier one, as a process that it forked, does not answer for a later one."""
ORDER = struct.Struct(">QIB")
"""To a child: the number of the call, how many bytes follow, and the first of these: PLAIN, and source alone, or
SEEDED, and a seed before it."""
CLAIM = struct.Struct(">IB")
"""From it, behind key and number: bytes of the report, which follows, and the kind."""
PLAIN, SEEDED = 0, 1
MOST_FILES = 1 << 16
Ends = tuple[int, int, int]
"""A child's ends of its pipes: requests, replies, output."""


class ForkedError(BaseException):
    """Is raised in a process that was just forked, and takes it to the bottom of its stack (see `worker`)."""

    def __init__(self, ends: Ends, confine: Callable[[], None] | None = None) -> None:
        """`confine` is called last before it takes the first request."""
        super().__init__()
        self.ends, self.confine = ends, confine


def bound_memory(size: int) -> None:
    """Bounds the address space of this process and of those it will fork, in bytes, for good."""
    _bound(resource.RLIMIT_AS, size)


def bound_files(number: int) -> None:
    """Bounds its open descriptors, likewise."""
    _bound(resource.RLIMIT_NOFILE, number)


def _bound(limit: int, value: int) -> None:
    _, most = resource.getrlimit(limit)
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(limit, (value, value))


def load(names: list[str]) -> str:
    """Imports them; empty, or what was wrong, on one line."""
    for name in names:
        try:
            __import__(name)
        except BaseException as error:  # noqa: BLE001
            return " ".join(f"{name} could not be imported: {type(error).__name__}: {error}".split())
    return ""


def life(ends: Ends, confine: Callable[[], None] | None) -> Iterator[int]:
    """Makes what the process does from here on, each time that the next is asked for: it answers one call."""
    requests, replies = _settle(ends)
    sys.stdout = sys.stderr = io.TextIOWrapper(
        io.FileIO(1, "w", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )  # by lines: those before a call was stopped, or the process ended, are told
    seeds.begin()  # after the fork: `random` has seeded itself anew in it
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
    """Leaves nothing open but standard input, the pipes, and both outputs on the one of them."""
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
    """Makes what carries out an order, and the only frame of ours above user code, but for the one at the bottom. It
    gives what is to be said. `repeatable`: what could not be repeated ends the process."""

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
    """Has all that was printed written, also by writers that the code put in the place of ours, as Python does at its
    end."""
    for writer in (output, getattr(sys, "stdout", None), getattr(sys, "stderr", None)):
        try:
            writer.flush()  # type: ignore[union-attr]
        except (AttributeError, ValueError):  # none, closed or detached: it holds nothing
            continue


def _seed(value: bytes) -> None:
    try:
        seeds.seed_all(value)
    except BaseException:  # noqa: BLE001 - user code took the modules' place: rather no process than one that draws
        os._exit(0)  # what its siblings draw


def _hidden(turns: Iterator[int]) -> Iterator[int]:
    """Takes it, and all that it is made of, from the lists of the garbage collector."""
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
