"""How far a hand has come, in memory that it shares with its zygote: read without asking it, also while it hangs."""

from __future__ import annotations

import mmap
import struct
import time

NONE = -1
_FIELD = struct.Struct("=q")
_STAMP = struct.Struct("=d")
_ITEM, _HOLD, _SINCE, _CPU, _BATCHES = 0, 8, 16, 24, 32
SIZE = 40


class Progress:
    """Made before the fork. The hand writes all but `hold`."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SIZE)
        _FIELD.pack_into(self._memory, _ITEM, NONE)
        _FIELD.pack_into(self._memory, _HOLD, NONE)

    def begin(self, index: int) -> bool:
        """Says that this item is begun now; whether it may be."""
        _STAMP.pack_into(self._memory, _CPU, time.process_time())
        _STAMP.pack_into(self._memory, _SINCE, time.monotonic())
        _FIELD.pack_into(self._memory, _ITEM, index)
        hold = int(_FIELD.unpack_from(self._memory, _HOLD)[0])
        return hold == NONE or index <= hold

    def rest(self) -> None:
        """One more batch is done, and nothing is under way."""
        _FIELD.pack_into(self._memory, _ITEM, NONE)
        _FIELD.pack_into(self._memory, _BATCHES, self.batches + 1)

    def hold(self, index: int) -> None:
        """Nothing after this item is to be begun."""
        _FIELD.pack_into(self._memory, _HOLD, index)

    @property
    def item(self) -> int:
        return int(_FIELD.unpack_from(self._memory, _ITEM)[0])

    @property
    def batches(self) -> int:
        """How many are done."""
        return int(_FIELD.unpack_from(self._memory, _BATCHES)[0])

    @property
    def since(self) -> float:
        """Moment of time.monotonic(), the same clock in all processes, at which the item was begun."""
        return float(_STAMP.unpack_from(self._memory, _SINCE)[0])

    @property
    def cpu(self) -> float:
        """Processor seconds that the hand had used by then."""
        return float(_STAMP.unpack_from(self._memory, _CPU)[0])

    def close(self) -> None:
        self._memory.close()
