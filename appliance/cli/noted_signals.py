"""Notes signals where threads work together, for whoever waits for them to look at.

What always holds: a handler takes no lock. Python runs it between any two steps of the main thread, also when that has
just taken the lock of an Event or a Future: one that sets an Event would wait for itself, and a KeyboardInterrupt there
leaves the lock taken, so that the thread that ends the Future waits for ever.
"""

from __future__ import annotations

import signal
from types import TracebackType
from typing import Self

STOPS = frozenset((signal.SIGINT, signal.SIGTERM))


def noted(*numbers: signal.Signals) -> set[int]:
    """From now on these signals end nothing: their numbers are added to the set. One that is ignored stays so. Belongs
    to the main thread."""
    came: set[int] = set()
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: came.add(number))
    return came


class HeldInterrupt:
    """Holds Ctrl-C back in its block, which looks at `came`; what came is raised at the end at the latest. Where a
    signal was ignored, it still is. Belongs to the main thread."""

    def __enter__(self) -> Self:
        self._before = {one: signal.getsignal(one) for one in STOPS}
        self._seen = noted(*(one for one, handler in self._before.items() if handler is signal.default_int_handler))
        return self

    @property
    def came(self) -> bool:
        return bool(self._seen)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Raises KeyboardInterrupt where one came and nothing else was raised."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.came and kind is None:
            raise KeyboardInterrupt
