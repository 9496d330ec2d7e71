"""Inside a box: processes forked from the server that have imported a header, and fork again for each step.

Invariants: one step at a time; a header's process serves only its own box, so one that a submission could reach never
checks anything; every request is answered within the step's own time limit, which includes the header's import. Headers
are ended, least recently used first, above MOST_HEADERS or if idle ones take more memory than a step leaves them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from runtime.framing import FrameError
from verifiers.boxes.frames import Frames, encode
from verifiers.lean.running import PR_SET_PDEATHSIG, Lean, LeanStep, resident, wall_limit
from verifiers.lean.warm import NotWarm, Warm

MOST_HEADERS = 6
IDLE_MIB = 64.0
"""Memory limit of idle headers in MiB, unless a step sets another."""
GRACE = 0.3
"""Seconds beyond a step's own time limit for a header's process to report the timeout."""
LOOK_SECONDS = 0.02
PR_SET_CHILD_SUBREAPER = 36


class HeadersLost(Exception):
    """The process with preimported modules gave no answer. `ended` is `timeout`, `memory` or `cold`."""

    def __init__(self, ended: str, message: str = "") -> None:
        super().__init__(message)
        self.ended = ended


class Header:
    """Process that has imported a header, which is a list of Lean modules, and runs steps with it."""

    def __init__(
        self, lean: Lean, modules: tuple[str, ...], deadline: float, memory_mib: float, foreign: Iterable[int]
    ) -> None:
        """Forks a process that imports the modules, and waits for it. `foreign` are descriptors that it must close.
        Raises HeadersLost."""
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            _serve(lean, modules, theirs, [ours.detach(), *foreign])
        theirs.close()
        self._socket = ours
        self._frames = Frames()
        try:
            greeting = self._receive(deadline, memory_mib)
        except HeadersLost:
            self.end()
            raise
        if greeting["problem"]:
            self.end()
            raise HeadersLost("cold", greeting["problem"])

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Runs a Lean step in the header's process, and returns its answer. Raises HeadersLost; then end the header."""
        deadline = time.monotonic() + wall_limit(message) + GRACE
        try:
            self._socket.sendall(encode(message))
        except OSError as error:
            raise HeadersLost("cold", f"the header's process is gone: {error}") from error
        return self._receive(deadline)

    @property
    def descriptor(self) -> int:
        return self._socket.fileno()

    @property
    def mib(self) -> float:
        """Returns the process's memory in MiB, beyond what it shares with the server that forked it."""
        return resident(self.pid) - resident(os.getpid())

    def end(self) -> None:
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _receive(self, deadline: float, memory_mib: float | None = None) -> dict[str, Any]:
        while True:
            try:
                found = self._frames.next()
            except FrameError as error:
                raise HeadersLost("cold", str(error)) from error
            if found is not None:
                return dict(found)
            left = deadline - time.monotonic()
            if left <= 0:
                raise HeadersLost("timeout")
            if memory_mib is not None and self.mib > memory_mib:
                raise HeadersLost("memory")
            look = left if memory_mib is None else min(left, LOOK_SECONDS)
            if select.select([self._socket], [], [], look)[0]:
                try:
                    data = self._socket.recv(1 << 20)
                except OSError:
                    data = b""
                if not data:
                    raise HeadersLost("cold", "the header's process ended")
                self._frames.feed(data)


class Headers:
    """Cache of processes that have imported Lean modules, for one server."""

    def __init__(self, lean: Lean, foreign: Sequence[int] = ()) -> None:
        """Creates an empty cache of processes. `foreign` are the server's descriptors that they must close."""
        self._lean = lean
        self._foreign = foreign
        self._cache: OrderedDict[tuple[str, ...], Header] = OrderedDict()

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(header.pid for header in self._cache.values())

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Runs a step in a process that has already imported the modules of its "header". Returns the step's answer; if
        that process is lost, ends it and returns an answer with the cause."""
        began = time.monotonic()
        modules = tuple(message["header"])
        try:
            return self._header(modules, began + wall_limit(message), message).ask(message)
        except HeadersLost as error:
            if modules in self._cache:
                self._cache.pop(modules).end()
            return no_answer(error.ended, str(error), time.monotonic() - began)

    def end(self) -> None:
        while self._cache:
            self._cache.popitem()[1].end()

    def _header(self, modules: tuple[str, ...], deadline: float, message: dict[str, Any]) -> Header:
        if modules not in self._cache:
            most = float(message.get("idle_mib", IDLE_MIB))
            while len(self._cache) >= MOST_HEADERS or sum(header.mib for header in self._cache.values()) > most:
                self._cache.popitem(last=False)[1].end()
            foreign = [*self._foreign, *(header.descriptor for header in self._cache.values())]
            self._cache[modules] = Header(self._lean, modules, deadline, float(message["memory_mib"]), foreign)
        self._cache.move_to_end(modules)
        return self._cache[modules]


def no_answer(ended: str, message: str, seconds: float = 0.0) -> dict[str, Any]:
    """Returns the answer message for a Lean step that did not run."""
    rest = {"seconds": round(seconds, 4), "cpu": 0.0, "peak_mib": 0.0, "out": "", "err": message[:2000]}
    return {"ended": ended, "code": 0} | rest


def _serve(lean: Lean, modules: tuple[str, ...], connection: socket.socket, foreign: Iterable[int]) -> None:
    """Imports the modules and answers steps, in the forked process; never returns. Descriptors of Lean's own event loop
    stay open: it would reuse their numbers."""
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        for descriptor in (nothing, *foreign):
            os.close(descriptor)
        try:
            warm = Warm(lean.library, modules, lean.plain)
        except NotWarm as error:
            connection.sendall(encode({"problem": str(error)[:2000]}))
            os._exit(0)
        connection.sendall(encode({"problem": ""}))
        frames = Frames()
        while data := connection.recv(1 << 20):
            frames.feed(data)
            while (message := frames.next()) is not None:
                connection.sendall(encode(LeanStep(lean, message, warm=warm).run()))
    finally:
        os._exit(0)
