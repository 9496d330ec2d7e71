"""Sandboxes that are ready and that nobody has asked for yet.

What always holds: each was answered by its guest, no user code of a holder has run in it since it came from its image
(a copy of a snapshot goes on from there, and only for those who may use that snapshot), and it is given away once.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

from runtime.broker.boxes import Live

COPY_MIB = 32.0
"""What one takes until there are some to be measured."""


class Ready:
    def __init__(self) -> None:
        self._copies: dict[str, deque[Live]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._copies.values()))

    def count(self, key: str) -> int:
        return len(self._copies.get(key, ()))

    def counts(self) -> dict[str, int]:
        return {key: len(copies) for key, copies in self._copies.items()}

    def put(self, live: Live) -> None:
        self._copies.setdefault(live.key, deque()).append(live)

    def take(self, key: str) -> Live | None:
        """The one that waits for longest; None when there is none."""
        copies = self._copies.get(key)
        if not copies:
            return None
        live = copies.popleft()
        if not copies:
            del self._copies[key]
        return live

    def remove(self, live: Live) -> bool:
        """Whether it was there."""
        copies = self._copies.get(live.key)
        if copies is None or live not in copies:
            return False
        copies.remove(live)
        if not copies:
            del self._copies[live.key]
        return True


def available_mib(meminfo: Path = Path("/proc/meminfo")) -> float:
    """Memory that programs may still take without swapping, as the kernel reckons (proc(5), MemAvailable)."""
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return 0.0
