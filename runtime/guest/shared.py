"""The shared tier: snippets that the host proved pure, from many sessions, in one interpreter.

What always holds: each session has names and builtins of its own, and what is in them are immutable types and functions
of C, so no snippet that keeps to the host's allow-list can reach another session. Pure code cannot catch an interrupt,
so a timer ends what takes longer than its slice; the host kills the whole worker when even that does not help.
"""

from __future__ import annotations

import builtins
import cmath
import gc
import itertools
import math
import os
import resource
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from runtime.guest import wire
from runtime.guest.report import FILENAME, report
from runtime.guest.wire import Kind, Op

Namespace = dict[str, Any]

PURE_NAMES = (
    "ArithmeticError AssertionError False None True abs all any ascii bin bool bytes chr complex dict divmod enumerate"
    " filter float frozenset hex int isinstance len list map max min next oct ord pow range repr reversed round set"
    " sorted str sum tuple zip"
)
PURE_BUILTINS = PURE_NAMES.split()
"""Without what lets pure code read or write freed memory (CPython 3.11: a bytearray emptied while it joins, an iterator
over a callable that its own callable ends)."""
PURE_MODULES = {"math": math, "cmath": cmath, "itertools": itertools}


class SliceOverError(BaseException):
    """The snippet ran longer than the shared interpreter gives to anyone."""


class OutputFullError(BaseException):
    """The snippet printed more than a call may."""


def import_pure(name: str, _globals: object = None, _locals: object = None, _names: object = (), level: int = 0) -> Any:
    if level == 0 and name in PURE_MODULES:
        return PURE_MODULES[name]
    raise ImportError(f"No module named {name!r}")


class Printer:
    """The `print` of one session. Counts bytes and stops the snippet at the cap."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def print(self, *values: object, sep: str | None = None, end: str | None = None) -> None:
        for name, given in (("sep", sep), ("end", end)):
            if given is not None and type(given) is not str:
                raise TypeError(f"{name} must be None or a string, not {type(given).__name__}")
        text = (" " if sep is None else sep).join([str(value) for value in values]) + ("\n" if end is None else end)
        data = text.encode("utf-8", "backslashreplace")
        self._parts.append(data[: self._max_bytes - self._size])
        self._size += len(data)
        if self._size > self._max_bytes:
            raise OutputFullError

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts, self._size = [], 0
        return data


class SharedWorker:
    def __init__(self, *, slice_seconds: float, output_bytes: int, memory_bytes: int) -> None:
        self._slice = slice_seconds
        self._printer = Printer(output_bytes)
        self._sessions: dict[int, Namespace] = {}
        self._armed = False
        self._room = memory_bytes // 2
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        signal.signal(signal.SIGALRM, self._interrupt)

    def serve(self, source: int, sink: int) -> None:
        """Says READY, then answers requests in order until the host closes the pipe."""
        os.write(sink, wire.pack_reply(wire.NO_NONCE, Kind.READY))
        requests = wire.Requests()
        while data := os.read(source, 1 << 16):
            for request in requests.feed(data):
                if request.op == Op.DROP:
                    self._sessions.pop(request.session, None)
                    continue
                # pure code draws no random numbers: there is nothing to seed
                asks_nothing = request.op in (Op.PING, Op.RESEED)
                kind, error = (Kind.READY, b"") if asks_nothing else self._call(request)
                if kind is Kind.MEMORY and not self._has_room():
                    error = wire.FULL
                answer = memoryview(wire.pack_reply(request.nonce, kind, self._printer.take(), error))
                while answer:
                    answer = answer[os.write(sink, answer) :]

    def _call(self, request: wire.Request) -> tuple[Kind, bytes]:
        text = request.body.decode("utf-8", "surrogatepass")
        signal.setitimer(signal.ITIMER_REAL, self._slice, self._slice)
        try:
            self._armed = True
            code = compile(text, FILENAME, "exec", dont_inherit=True)
            if request.op == Op.COMPILE:
                return Kind.IMPURE, b""
            exec(code, self._namespace(request.session))  # noqa: S102
            return Kind.OK, b""
        except SliceOverError:
            return self._forget(request.session, Kind.SLICE)
        except OutputFullError:
            return self._forget(request.session, Kind.OUTPUT)
        except MemoryError:
            return self._forget(request.session, Kind.MEMORY)
        except BaseException as error:  # noqa: BLE001
            self._armed = False
            return Kind.EXCEPTION, report(error, text)
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _forget(self, session: int, kind: Kind) -> tuple[Kind, bytes]:
        """Half a snippet is no state to go on from: the host replays what was whole."""
        self._armed = False
        self._sessions.pop(session, None)
        return kind, b""

    def _has_room(self) -> bool:
        gc.collect()
        try:
            bytes(self._room)
        except MemoryError:
            return False
        return True

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self._armed:
            raise SliceOverError

    def _namespace(self, session: int) -> Namespace:
        names = self._sessions.get(session)
        if names is None:
            own: dict[str, Any] = {name: getattr(builtins, name) for name in PURE_BUILTINS}
            printer: Callable[..., None] = self._printer.print
            own.update(print=printer, __import__=import_pure)
            names = self._sessions[session] = {"__name__": "__main__", "__builtins__": own}
        return names
