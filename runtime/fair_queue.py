"""Says who is next when places are short: by priority first, and within one priority callers take turns.

What always holds: everything that was added is taken once, or removed; what one caller adds with one priority is taken
in that order; between two turns of one caller, every other caller who waits with the same priority has had one. So
nobody who adds much delays those who add little. A lower priority waits as long as a higher one has anything: it is
not promised a share. No clock, no lock: its owner calls it from one place at a time.
"""

from __future__ import annotations

import itertools
from typing import Generic, NamedTuple, TypeVar

from runtime.sandbox import Priority

Item = TypeVar("Item")


class QueueEntry(NamedTuple):
    """Names an item in the queue, for `remove`."""

    priority: Priority
    caller: str
    number: int


class FairQueue(Generic[Item]):
    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._callers: dict[Priority, dict[str, dict[int, Item]]] = {priority: {} for priority in sorted(Priority)}
        """In each priority the callers in the order of their turns; of each, its items in the order they came."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, item: Item, *, caller: str = "", priority: Priority = Priority.TRAINING) -> QueueEntry:
        entry = QueueEntry(priority, caller, next(self._numbers))
        self._callers[priority].setdefault(caller, {})[entry.number] = item
        self._size += 1
        return entry

    def take(self) -> Item:
        """Takes the next one, which waits no longer. Raises IndexError when nothing waits."""
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
        """Removes it; whether it still waited. Taken or removed before, it is no mistake."""
        callers = self._callers[entry.priority]
        items = callers.get(entry.caller, {})
        if entry.number not in items:
            return False
        del items[entry.number]
        if not items:
            del callers[entry.caller]
        self._size -= 1
        return True
