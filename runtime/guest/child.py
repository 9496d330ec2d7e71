"""The process of one session: takes source from one pipe, answers on another, prints into a third.

It runs user code, so nothing it says is believed beyond what the supervisor checks: the nonce of the call in progress,
one reply for one request, and a kind that a user process may claim.
"""

from __future__ import annotations

import io
import os
import resource
import struct
import sys
import types
from typing import Any, NamedTuple

from runtime.guest import confine, seeds, wire
from runtime.guest.report import FILENAME, report

REQUESTS, REPLIES = 100, 101
"""Descriptors of the child's own ends; 1 and 2 are its output, 0 is empty."""
HEADER = struct.Struct(">I16sB")
"""Between supervisor and child: bytes after this header, nonce, `Kind` (on the way in RUN or SEED)."""
RUN, SEED = 0, 1


class Pipes(NamedTuple):
    """The child's ends before it has moved them to where they belong."""

    requests: int
    replies: int
    output: int


def _read_exactly(descriptor: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = os.read(descriptor, size - len(data))
        if not more:
            os._exit(0)
        data += more
    return data


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _settle(pipes: Pipes) -> None:
    """Moves the pipes to their places and closes every other descriptor, the zygote's line among them."""
    os.dup2(pipes.requests, REQUESTS, inheritable=False)
    os.dup2(pipes.replies, REPLIES, inheritable=False)
    os.dup2(pipes.output, 1)
    os.dup2(pipes.output, 2)
    os.closerange(3, REQUESTS)
    os.closerange(REPLIES + 1, 1024)


def _fresh_main() -> dict[str, Any]:
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    for name in [name for name in sys.modules if name == "runtime" or name.startswith("runtime.")]:
        del sys.modules[name]
    return vars(main)


def live(pipes: Pipes, *, confined: bool, memory_bytes: int, machine: str) -> None:
    """The whole life of the process; never returns to the supervisor's code."""
    _settle(pipes)
    output = io.TextIOWrapper(
        io.FileIO(1, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=False
    )
    sys.stdout = sys.stderr = output
    seeds.seed(seeds.FIRST)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    names = _fresh_main()
    if confined:
        confine.compute_only(machine)
    while True:
        size, nonce, order = HEADER.unpack(_read_exactly(REQUESTS, HEADER.size))
        body = _read_exactly(REQUESTS, size)
        if order == SEED:
            try:
                seeds.seed(seeds.mixed(body, os.getpid()))
            except BaseException:  # noqa: BLE001
                os._exit(0)  # its own code took these modules' place: no process that draws what others draw
            continue
        text = body.decode("utf-8", "surrogatepass")
        kind, error = wire.Kind.OK, b""
        try:
            exec(compile(text, FILENAME, "exec", dont_inherit=True), names)  # noqa: S102
        except BaseException as failure:  # noqa: BLE001
            kind, error = wire.Kind.EXCEPTION, report(failure, text)
        try:
            output.flush()
        except BaseException as failure:  # noqa: BLE001
            kind, error = wire.Kind.EXCEPTION, report(failure, text)
        _write_all(REPLIES, HEADER.pack(len(error), nonce, kind) + error)
