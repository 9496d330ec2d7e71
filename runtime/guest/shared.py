"""Shared tier: snippets that the host proved pure, from many sessions, in one interpreter.

Invariants: each session has its own names and builtins, which contain only immutable types and C functions, so no
snippet within the host's allow-list can reach another session. Pure code cannot catch an interrupt, so a timer ends a
snippet that exceeds its slice; if even that fails, the host kills the whole worker.
"""

from __future__ import annotations

import builtins
import cmath
import gc
import io
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import CodeType, FrameType
from typing import Any

from runtime.guest import frames, kinds, ops
from runtime.guest.report import FILENAME, report

Namespace = dict[str, Any]

PURE_NAMES = (
    "abs all any ascii bin bool chr complex dict divmod enumerate float hex int len list map max min oct ord pow range"
    " repr round sorted str sum tuple zip"
)
PURE_BUILTINS = PURE_NAMES.split()
"""Builtins that neither call snippet-defined code nor keep what they iterate over."""
PURE_MODULES = {"math": math, "cmath": cmath}


FRAMES = 3
"""Additional own frames below a snippet, compared with other tiers: values nest equally deeply in all of them."""


class SliceOverError(BaseException):
    """Raised in a snippet that ran longer than its slice of the shared interpreter."""


class OutputFullError(BaseException):
    """Raised in a snippet that printed more than a call may."""


def import_pure(name: str, _globals: object = None, _locals: object = None, _names: object = (), level: int = 0) -> Any:
    if level == 0 and name in PURE_MODULES:
        return PURE_MODULES[name]
    raise ImportError(f"No module named {name!r}")


class Printer(io.RawIOBase):
    """Collects the output of the running call, keeps all before an error, stops the snippet at the byte cap."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        under: Any = self
        self._text = io.TextIOWrapper(under, encoding="utf-8", errors="backslashreplace")
        self.flush_text = self._text.flush
        self.print: Callable[..., None] = partial(print, file=self._text)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data[: self._max_bytes - self._size]))
        self._size += len(data)
        if self._size > self._max_bytes:
            raise OutputFullError
        return len(data)

    def take(self) -> bytes:
        with suppress(OutputFullError):
            self.flush_text()
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
        sys.setrecursionlimit(sys.getrecursionlimit() + FRAMES)

    def serve(self, source: int, sink: int) -> None:
        """Sends READY, then answers the host's requests in order until the host closes the pipe."""
        os.write(sink, frames.pack_reply(frames.NO_NONCE, kinds.READY))
        requests = frames.FrameReader(frames.REQUEST)
        while data := os.read(source, 1 << 16):
            for (_, nonce, op, session), body in requests.feed(data):
                if op == ops.DROP:
                    self._sessions.pop(session, None)
                    continue
                if op in (ops.PING, ops.RESEED):  # pure code draws no random numbers: there is nothing to seed
                    kind, error = kinds.READY, b""
                else:
                    kind, error = self._call(op, session, body)
                if kind == kinds.MEMORY and not self._has_room():
                    error = kinds.FULL
                # one by one: an answer must not wait for, or be charged for, the next call
                frames.write_all(sink, frames.pack_reply(nonce, kind, self._printer.take(), error))

    def _call(self, op: int, session: int, body: bytes) -> tuple[int, bytes]:
        text = body.decode("utf-8", "surrogatepass")
        signal.setitimer(signal.ITIMER_REAL, self._slice, self._slice)
        try:
            self._armed = True
            code = compile(text, FILENAME, "exec", dont_inherit=True)
            if op == ops.COMPILE:
                return kinds.IMPURE, b""
            kind, error = self._run(code, text, self._namespace(session))
            self._printer.flush_text()
            return kind, error
        except SliceOverError:
            self._armed = False  # first: freeing memory may last until the next alarm
            return self._forget(session, kinds.SLICE)
        except OutputFullError:
            self._armed = False  # first: freeing memory may last until the next alarm
            return self._forget(session, kinds.OUTPUT)
        except MemoryError:
            self._armed = False  # first: freeing memory may last until the next alarm
            return self._forget(session, kinds.MEMORY)
        except BaseException as error:  # noqa: BLE001
            self._armed = False
            return kinds.EXCEPTION, report(error, text)
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _run(self, code: CodeType, text: str, names: Namespace) -> tuple[int, bytes]:
        try:
            exec(code, names)  # noqa: S102
        except (SliceOverError, OutputFullError, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001
            return kinds.EXCEPTION, report(error, text)
        return kinds.OK, b""

    def _forget(self, session: int, kind: int) -> tuple[int, bytes]:
        """Drops a session's state after a partial snippet (the host replays the complete ones); returns the reply."""
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
            own.update(print=self._printer.print, __import__=import_pure)
            names = self._sessions[session] = {"__name__": "__main__", "__builtins__": own}
        return names
