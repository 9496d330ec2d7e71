"""Queue for scarce places: highest priority first, round-robin among callers of one priority.

Invariants: every added item is taken once, or removed; a caller's items of one priority keep their order; between two
turns of a caller, every other waiting caller of that priority has had one. So heavy callers barely delay light ones. A
lower priority waits while a higher one has items: it has no guaranteed share. No clock, no lock: the owner serializes
calls.
"""

from __future__ import annotations

import itertools
from typing import Generic, NamedTuple, TypeVar

from runtime.sandbox import Priority

Item = TypeVar("Item")


class QueueEntry(NamedTuple):
    """Key of a queued item, with which it can be removed."""

    priority: Priority
    caller: str
    number: int


class FairQueue(Generic[Item]):
    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._callers: dict[Priority, dict[str, dict[int, Item]]] = {priority: {} for priority in sorted(Priority)}
        """Callers by priority in turn order, each with its items in order of arrival."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, item: Item, *, caller: str = "", priority: Priority = Priority.TRAINING) -> QueueEntry:
        entry = QueueEntry(priority, caller, next(self._numbers))
        self._callers[priority].setdefault(caller, {})[entry.number] = item
        self._size += 1
        return entry

    def take(self) -> Item:
        """Removes and returns the item whose turn it is. Raises IndexError when the queue is empty."""
        for callers in self._callers.values():
            if callers:
                caller = next(iter(callers))
                items = callers.pop(caller)
                item = items.pop(next(iter(items)))
                if items:
                    callers[caller] = items
                self._size -= 1
                return item
        raise IndexError("nobody waits")

    def remove(self, entry: QueueEntry) -> bool:
        """Removes an item from the queue; True if it was there. An item already taken or removed is not an error."""
        callers = self._callers[entry.priority]
        items = callers.get(entry.caller, {})
        if entry.number not in items:
            return False
        del items[entry.number]
        if not items:
            del callers[entry.caller]
        self._size -= 1
        return True
