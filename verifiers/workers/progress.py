"""How far a worker has come, in memory that it shares with its zygote: read without asking it, also while it hangs."""

from __future__ import annotations

import ctypes
import mmap
import time

NONE = -1


class WorkerProgress(ctypes.Structure):
    """Made by `shared`, before the fork. The worker writes all but `hold`."""

    _fields_ = (
        ("item", ctypes.c_int64),
        ("hold", ctypes.c_int64),
        ("since", ctypes.c_double),
        ("cpu", ctypes.c_double),
        ("batches", ctypes.c_int64),
    )
    item: int
    """The index of what is under way, or NONE."""
    hold: int
    """Nothing after the item of this index is to be begun; NONE where all may be."""
    since: float
    """Moment of time.monotonic(), the same clock in all processes, at which the item was begun."""
    cpu: float
    """Processor seconds that the worker had used by then."""
    batches: int
    """How many are done."""

    @classmethod
    def shared(cls) -> WorkerProgress:
        made = cls.from_buffer(mmap.mmap(-1, ctypes.sizeof(cls)))
        made.item = made.hold = NONE
        return made

    def begin(self, index: int) -> bool:
        """Says that this item is begun now; whether it may be."""
        self.cpu = time.process_time()
        self.since = time.monotonic()
        self.item = index
        return self.hold == NONE or index <= self.hold

    def rest(self) -> None:
        """One more batch is done, and nothing is under way."""
        self.item = NONE
        self.batches += 1
