"""Progress of a worker in memory shared with its zygote: readable without asking, even while the worker hangs."""

from __future__ import annotations

import ctypes
import mmap
import time

NONE = -1


class WorkerProgress(ctypes.Structure):
    """Progress record that a worker shares with its zygote. Created by `shared` before the fork. The worker writes
    every field except `hold`."""

    _fields_ = (
        ("item", ctypes.c_int64),
        ("hold", ctypes.c_int64),
        ("since", ctypes.c_double),
        ("cpu", ctypes.c_double),
        ("batches", ctypes.c_int64),
    )
    item: int
    """Index of the current item, or NONE."""
    hold: int
    """Index of the last item that may be started, or NONE for no limit."""
    since: float
    """Start of the current item, as time.monotonic(), which all processes share."""
    cpu: float
    """CPU seconds that the worker had used at that moment."""
    batches: int
    """Number of finished batches."""

    @classmethod
    def shared(cls) -> WorkerProgress:
        made = cls.from_buffer(mmap.mmap(-1, ctypes.sizeof(cls)))
        made.item = made.hold = NONE
        return made

    def begin(self, index: int) -> bool:
        """Records that the worker starts an item. Returns False if it must not be started."""
        self.cpu = time.process_time()
        self.since = time.monotonic()
        self.item = index
        return self.hold == NONE or index <= self.hold

    def rest(self) -> None:
        """Records that the worker has finished a batch."""
        self.item = NONE
        self.batches += 1
