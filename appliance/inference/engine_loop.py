"""Shares an engine among many callers: one thread makes all calls, and each caller waits for its own turn.

Invariants: an accepted request ends with a `Turn` or an error, also if the engine fails or closes. New weights are
loaded when no request is running; later requests wait. A failed engine is not called again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from torch import nn

from appliance.inference.engine import Engine, GenerationRequest, ModelError, ModelFiles, PushProof, Turn


class AbortedError(Exception):
    """The caller aborted the request."""


class EngineLoop:
    """Context manager: runs the engine in a thread of its own, and closes it."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._version = engine, engine.version
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._numbers = count()
        self._turns: dict[int, Future[Turn]] = {}
        self._pushes: deque[Callable[[], None]] = deque()
        self._held: deque[tuple[GenerationRequest, Future[Turn]]] = deque()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self.failure: Exception | None = None
        """Error of a failed engine."""
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def __enter__(self) -> EngineLoop:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            if self._closed.is_set():
                return
            self._closed.set()
            self._inbox.put(lambda: None)
        self._thread.join()

    @property
    def version(self) -> str:
        """Version of the engine's weights after the last push; empty if the push left it without any."""
        return self._version

    @property
    def restricts(self) -> bool:
        """True if the engine can restrict its draws (`DrawRule`); one that does not say so cannot."""
        return bool(getattr(self._engine, "restricts", False))

    def generate(self, request: GenerationRequest) -> tuple[int, Future[Turn]]:
        """Requests one sampled turn; returns the number for `abort`, and a future of the turn. The request's own id is
        ignored. The future raises ValueError for an unservable request."""
        number, turn = next(self._numbers), Future[Turn]()
        turn.set_running_or_notify_cancel()  # a caller that gives up must not cancel it while the engine runs
        asked = replace(request, id=number)
        self._put(lambda: self._start(asked, turn), turn)
        return number, turn

    def abort(self, number: int) -> None:
        """Aborts a generation request: its future raises AbortedError. Ignores a finished one."""
        self._put(lambda: self._end(number, AbortedError("the request was aborted")))

    def push(self, weights: ModelFiles | nn.Module, version: str) -> PushProof:
        """Loads new weights into the engine once running requests have ended, and waits; see `Engine.push`."""
        proof = Future[PushProof]()

        def push() -> None:
            try:
                proved = self._engine.push(weights, version)
            except Exception as error:  # noqa: BLE001 - passed to the caller
                self._version = self._engine.version
                proof.set_exception(error)
            else:
                self._version = self._engine.version
                proof.set_result(proved)

        self._put(lambda: self._pushes.append(push), proof)
        return proof.result()

    def _put(self, ask: Callable[[], None], future: Future[Any] | None = None) -> None:
        with self._lock:
            if not self._closed.is_set():
                self._inbox.put(ask)
                return
        if future is not None:
            future.set_exception(ModelError("the engine is closed", hint="restart it"))

    def _start(self, request: GenerationRequest, turn: Future[Turn]) -> None:
        if self.failure is not None:
            turn.set_exception(self.failure)
        elif request.rule is not None and not self.restricts:
            turn.set_exception(ValueError("this engine draws from the whole distribution alone"))
        elif self._pushes:
            self._held.append((request, turn))
        else:
            try:
                self._engine.submit(request)
                self._turns[request.id] = turn
            except Exception as error:  # noqa: BLE001 - passed to the caller
                turn.set_exception(error)

    def _end(self, number: int, error: Exception) -> None:
        turn = self._turns.pop(number, None)
        if turn is not None:
            self._engine.finish(number)
            turn.set_exception(error)
        for held in [one for one in self._held if one[0].id == number]:
            self._held.remove(held)
            held[1].set_exception(error)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                while True:
                    self._inbox.get(block=not (self._turns or self._pushes or self._closed.is_set()))()
            except Empty:
                pass
            if self._closed.is_set():
                break
            if self._turns:
                self._step()
            else:
                self._push()
        self._fail(ModelError("the engine was closed before it answered", hint="retry the request"))
        self._engine.close()

    def _step(self) -> None:
        try:
            turns = self._engine.step()
        except Exception as error:  # noqa: BLE001 - passed to every caller, and to the engine's owner
            self.failure = error
            self._fail(error)
            return
        for turn in turns:
            asker = self._turns.pop(turn.request, None)
            if asker is not None:
                self._engine.finish(turn.request)
                asker.set_result(turn)

    def _push(self) -> None:
        while self._pushes:
            self._pushes.popleft()()
        held, self._held = self._held, deque()
        for request, turn in held:
            self._start(request, turn)

    def _fail(self, error: Exception) -> None:
        """Fails every pending request to the engine with this error."""
        for number in [*self._turns, *(request.id for request, _ in self._held)]:
            self._end(number, error)
        while not self._inbox.empty():
            self._inbox.get()()
        for number in [*self._turns, *(request.id for request, _ in self._held)]:
            self._end(number, error)
        while self._closed.is_set() and self._pushes:
            self._pushes.popleft()()
