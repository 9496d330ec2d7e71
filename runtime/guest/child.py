"""Is the process of one session: takes source from one pipe, answers on another, prints into a third.

It runs user code, so nothing it says is believed beyond what the supervisor checks: the nonce of the call in progress,
one reply for one request, and a kind that a user process may claim.
"""

from __future__ import annotations

import io
import os
import resource
import struct
import sys

from runtime.guest import kinds, seeds
from runtime.guest.frames import FrameReader, write_all
from runtime.guest.report import FILENAME, report

TYPE_CHECKING = False  # what it guards is for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

HEADER = struct.Struct(">I16sB")
"""Between supervisor and child: bytes after this header, nonce; on the way in RUN or SEED, on the way out the kind."""
RUN, SEED = 0, 1
MOST_FILES = 1 << 16
Ends = tuple[int, int, int]
"""A child's ends of its pipes: requests, replies, output."""


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


def live(ends: Ends, *, confine: Callable[[], None] | None = None) -> NoReturn:
    """Is the whole life of the process; never returns to the supervisor's code. `confine` is called last before it
    takes the first request."""
    requests, replies = _settle(ends)
    output = io.TextIOWrapper(
        io.FileIO(1, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=False
    )
    sys.stdout = sys.stderr = output
    seeds.seed(seeds.FIRST)  # after the fork: `random` has seeded itself anew in it
    names = _fresh_main()
    if confine is not None:
        confine()
    _serve(requests, replies, output, names)


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


def _serve(requests: int, replies: int, output: io.TextIOWrapper, names: dict[str, Any]) -> NoReturn:
    orders = FrameReader(HEADER)
    while True:
        for (_, nonce, order), body in orders.feed(_read(requests)):
            if order == SEED:
                _seed(body)
                continue
            kind, error = _run(body.decode("utf-8", "surrogatepass"), output, names)
            write_all(replies, HEADER.pack(len(error), nonce, kind) + error)


def _run(text: str, output: io.TextIOWrapper, names: dict[str, Any]) -> tuple[int, bytes]:
    kind, error = kinds.OK, b""
    try:
        exec(compile(text, FILENAME, "exec", dont_inherit=True), names)  # noqa: S102
    except BaseException as failure:  # noqa: BLE001
        kind, error = kinds.EXCEPTION, report(failure, text)
    try:
        output.flush()
    except BaseException as failure:  # noqa: BLE001
        kind, error = kinds.EXCEPTION, report(failure, text)
    return kind, error


def _seed(value: bytes) -> None:
    try:
        seeds.seed(seeds.mixed(value, os.getpid()))
    except BaseException:  # noqa: BLE001 - user code took the modules' place: rather no process than one that draws
        os._exit(0)  # what its siblings draw


def _read(descriptor: int) -> bytes:
    data = os.read(descriptor, 1 << 16)
    if not data:
        os._exit(0)
    return data
