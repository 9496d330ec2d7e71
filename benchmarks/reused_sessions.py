"""A pool whose places serve one submission after another: for texts of our own, and for nothing else.

A verifier of programs gives each submission a fresh process, because it may be hostile. Reference answers are not: they
say what this repository makes. A place that served one is given to the next, which costs a call instead of a process
or a sandbox. What always holds: a place in which anything did not end well is closed, and one that has had
`MOST_CALLS`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from runtime.sandbox import CallResult, CallStatus, Limits, Sandbox, Session, SessionPool
from verifiers.programs.guests import MOST_CALLS as OF_ONE

MOST_CALLS = 400
"""Of one place, over all that use it; one submission may then still make as many calls as it ever may."""
CALLS = MOST_CALLS + OF_ONE + 1

Place = Session | Sandbox


class LentPlace:
    """One submission's use of a place."""

    def __init__(self, place: Place, calls: int, back: Callable[[Place, int], None]) -> None:
        self._place, self._calls, self._back = place, calls, back
        self._well, self._closed = True, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place, name)

    def run(self, code: str, **given: Any) -> CallResult:
        self._calls += 1
        well, self._well = self._well, False  # where it raises, too
        result = self._place.run(code, **given)
        self._well = well and result.status is CallStatus.OK
        return result

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._well and self._calls < MOST_CALLS:
            self._back(self._place, self._calls)
        else:
            self._place.close()


class ReusedSessions:
    """Of a `SessionPool` what a verifier of programs asks for; the pool stays whose it is."""

    def __init__(self, pool: SessionPool) -> None:
        """The pool has to allow `CALLS` calls of a session."""
        self._pool, self.limits = pool, pool.limits
        self.backends = getattr(pool, "backends", {})
        self._idle: dict[object, list[tuple[Place, int]]] = {}
        self._lock = threading.Lock()

    def open(self, **asked: Any) -> LentPlace:
        return self._lent(str(asked), lambda: self._pool.open(**asked))

    def sandbox(self, limits: Limits | None = None, **asked: Any) -> LentPlace:
        return self._lent((limits, str(asked)), lambda: self._pool.sandbox(limits, **asked))

    def _lent(self, like: object, make: Callable[[], Place]) -> LentPlace:
        with self._lock:
            idle = self._idle.setdefault(like, [])
            place, calls = idle.pop() if idle else (None, 0)
        return LentPlace(make() if place is None else place, calls, lambda used, now: idle.append((used, now)))

    def close(self) -> None:
        """Closes what is idle."""
        with self._lock:
            idle = [place for each in self._idle.values() for place, _ in each]
            self._idle.clear()
        for place in idle:
            place.close()
