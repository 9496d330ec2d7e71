"""Queue of sandbox requests: who gets which sandbox, and which to start next. Pure: no clock, no lock, one caller.

Requests wait for a sandbox of some key (an image or a snapshot). Two decisions are made separately, each round-robin:
which key to start next, over all requests, and who gets a ready sandbox of a key. So a sandbox started for one request
may go to another for the same key, and nobody waits for a start that is no longer needed.

Invariants: every request is served once, or cancelled; for one key and priority, a caller's requests keep their order,
and callers take turns; there are never more starts than waiting requests; an unblocked waiting request is covered by a
running start, or `next_start` eventually returns its key.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from runtime.errors import BusyError
from runtime.fair_queue import FairQueue, QueueEntry
from runtime.sandbox import Priority

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class QueuePosition(NamedTuple, Generic[Key]):
    """Position of a request in the queue, with the key of its sandbox; serves to cancel it."""

    number: int
    key: Key


class _Waiting(NamedTuple, Generic[Item]):
    item: Item
    priority: Priority
    to_start: QueueEntry
    to_serve: QueueEntry


class Queue(Generic[Key, Item]):
    def __init__(self, most: int) -> None:
        """Creates an empty queue. At most `most` requests wait per priority, so training cannot crowd out jobs."""
        self._most = most
        self._numbers = itertools.count()
        self._waiting: dict[int, _Waiting[Item]] = {}
        self._count = dict.fromkeys(Priority, 0)
        self._to_start: FairQueue[Key] = FairQueue()
        self._to_serve: dict[Key, FairQueue[int]] = {}
        self._unasked: dict[Key, int] = {}
        """Requests by key whose turn to start a sandbox has not come."""
        self._starting: dict[Key, int] = {}
        self._owed: dict[Key, None] = {}
        """Keys whose turn came while blocked, or whose start failed."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: Item, key: Key, *, caller: str, priority: Priority) -> QueuePosition[Key]:
        """Queues a request for a sandbox of this key; returns its position. Raises BusyError if too many wait."""
        if self._count[priority] >= self._most:
            raise BusyError(
                f"{self._count[priority]} sandbox requests are already waiting", hint="Try again later, with fewer."
            )
        number = next(self._numbers)
        to_start = self._to_start.add(key, caller=caller, priority=priority)
        to_serve = self._to_serve.setdefault(key, FairQueue()).add(number, caller=caller, priority=priority)
        self._waiting[number] = _Waiting(item, priority, to_start, to_serve)
        self._count[priority] += 1
        self._unasked[key] = self._unasked.get(key, 0) + 1
        return QueuePosition(number, key)

    def cancel(self, position: QueuePosition[Key]) -> bool:
        """Removes a request from the queue; True if it was still waiting."""
        if position.number not in self._waiting:
            return False
        self._to_serve[position.key].remove(self._waiting[position.number].to_serve)
        self._leave(position.number, position.key)
        return True

    def serve(self, key: Key) -> Item | None:
        """Removes and returns the next request for a sandbox of this key; None if there is none."""
        turns = self._to_serve.get(key)
        if not turns:
            return None
        number = turns.take()
        item = self._waiting[number].item
        self._leave(number, key)
        return item

    def waits_for(self, key: Key) -> int:
        turns = self._to_serve.get(key)
        return len(turns) if turns else 0

    def starting(self, key: Key) -> int:
        """Returns the number of sandboxes of this key that are starting."""
        return self._starting.get(key, 0)

    def next_start(self, blocked: Callable[[Key], bool]) -> Key | None:
        """Returns the key of the sandbox to start next, or None if every request is covered or blocked. Call `started`
        if you start it."""
        for key in list(self._owed):
            if self._uncovered(key) <= 0:
                del self._owed[key]
            elif not blocked(key):
                return key
        while self._to_start:
            key = self._to_start.take()
            self._asked(key)
            if self._uncovered(key) <= 0:
                continue
            self._owed[key] = None
            if not blocked(key):
                return key
        return None

    def started(self, key: Key) -> None:
        """Records that a sandbox of this key is starting, for a request or ahead of demand."""
        self._starting[key] = self._starting.get(key, 0) + 1

    def finished(self, key: Key) -> None:
        """Records that a sandbox start succeeded or failed; the caller then serves the next request with the result."""
        self._starting[key] -= 1
        if not self._starting[key]:
            del self._starting[key]
        if self.waits_for(key):
            self._owed[key] = None

    def _uncovered(self, key: Key) -> int:
        return self.waits_for(key) - self._starting.get(key, 0) - self._unasked.get(key, 0)

    def _asked(self, key: Key) -> None:
        self._unasked[key] -= 1
        if not self._unasked[key]:
            del self._unasked[key]

    def _leave(self, number: int, key: Key) -> None:
        waiting = self._waiting.pop(number)
        self._count[waiting.priority] -= 1
        if self._to_start.remove(waiting.to_start):
            self._asked(key)
        if not self._to_serve[key]:
            del self._to_serve[key]
