"""Decides who gets which sandbox, and which to start next. Pure: no clock, no lock; its owner calls it from one place.

Requests wait for a sandbox of some key (an image or a snapshot). Two questions are answered apart, each by turns: which
key to start next, over all requests, and who gets a sandbox of a key that became ready. So a sandbox started for one
request may go to another that asked for the same, and nobody waits for a start that somebody else no longer needs.

What always holds: every request is served once, or cancelled; of one key and priority, one caller's requests are served
in the order they came, and callers have turns; there are never more starts asked for than requests that wait; while one
waits whose key is not blocked, it is covered by a start under way or `next_start` gives its key sooner or later.
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
    """Names a request in the queue, for `cancel`."""

    number: int
    key: Key


class _Waiting(NamedTuple, Generic[Item]):
    item: Item
    priority: Priority
    to_start: QueueEntry
    to_serve: QueueEntry


class Queue(Generic[Key, Item]):
    def __init__(self, most: int) -> None:
        """`most` may wait in each priority, so that training cannot turn jobs away."""
        self._most = most
        self._numbers = itertools.count()
        self._waiting: dict[int, _Waiting[Item]] = {}
        self._count = dict.fromkeys(Priority, 0)
        self._to_start: FairQueue[Key] = FairQueue()
        self._to_serve: dict[Key, FairQueue[int]] = {}
        self._unasked: dict[Key, int] = {}
        """Of each key, requests whose turn to start one has not come yet."""
        self._starting: dict[Key, int] = {}
        self._owed: dict[Key, None] = {}
        """Keys whose turn came while they were blocked, or whose start failed."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: Item, key: Key, *, caller: str, priority: Priority) -> QueuePosition[Key]:
        """Raises BusyError when too many wait already."""
        if self._count[priority] >= self._most:
            raise BusyError(
                f"{self._count[priority]} requests for a sandbox wait already", hint="Try again later, with fewer."
            )
        number = next(self._numbers)
        to_start = self._to_start.add(key, caller=caller, priority=priority)
        to_serve = self._to_serve.setdefault(key, FairQueue()).add(number, caller=caller, priority=priority)
        self._waiting[number] = _Waiting(item, priority, to_start, to_serve)
        self._count[priority] += 1
        self._unasked[key] = self._unasked.get(key, 0) + 1
        return QueuePosition(number, key)

    def cancel(self, position: QueuePosition[Key]) -> bool:
        """Removes it; whether it still waited."""
        if position.number not in self._waiting:
            return False
        self._to_serve[position.key].remove(self._waiting[position.number].to_serve)
        self._leave(position.number, position.key)
        return True

    def serve(self, key: Key) -> Item | None:
        """Takes the request that is next for a sandbox of this key; None when nobody waits for one."""
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
        """Starts of this key under way."""
        return self._starting.get(key, 0)

    def next_start(self, blocked: Callable[[Key], bool]) -> Key | None:
        """Finds the key to start next, or None when every request is covered or blocked. Tell `started` if you do."""
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
        """A sandbox of this key is being started, for a request or ahead of need."""
        self._starting[key] = self._starting.get(key, 0) + 1

    def finished(self, key: Key) -> None:
        """It is ready, or failed: the caller serves whoever is next, with one or the other."""
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
