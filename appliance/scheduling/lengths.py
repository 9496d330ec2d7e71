"""Learns how long rollouts get, from those that ended and from those that are still under way.

A life table: for each range of lengths, how many rollouts ended in it and how many left it alive. Rollouts under way
count for what they have passed, so the short ones, which end first, do not make all look short (Kaplan and Meier 1958,
doi:10.1080/01621459.1958.10501452).

What always holds: lengths are tokens of a whole conversation, the prompt included; none is above `longest`; what has
never been seen is taken to be as long as it may be.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from runtime.model import FrozenModel

RANGES = 64
"""Ranges of equal width up to the longest: the table's resolution, and what a forecast costs."""
UNSEEN = 1.0
"""Rollouts that are taken to have passed each range beside those that were seen: without any, nothing is short."""
MEMORY = 4096.0
"""Ended rollouts after which all counts are halved, at least: lengths change while a model learns."""

Row = NDArray[np.float64]


class LengthTable(FrozenModel):
    """Is what is kept of a `LengthCurve`."""

    longest: Annotated[int, Field(ge=1)]
    ended: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = (0.0,) * RANGES
    passed: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = (0.0,) * RANGES


class LengthCurve:
    def __init__(self, table: LengthTable) -> None:
        """Raises ValueError for a table of another number of ranges."""
        if {len(table.ended), len(table.passed)} != {RANGES}:
            raise ValueError(f"a table of lengths has {RANGES} ranges, not {len(table.ended)} and {len(table.passed)}")
        self.longest = table.longest
        self.width = table.longest / RANGES
        self._ended, self._passed = np.array(table.ended), np.array(table.passed)
        self.version = 0
        """Changes whenever the curve does."""
        self._memory = MEMORY

    def table(self) -> LengthTable:
        return LengthTable(longest=self.longest, ended=tuple(self._ended), passed=tuple(self._passed))

    def range_of(self, tokens: int) -> int:
        """Finds the range that a rollout of so many tokens is in. Raises ValueError where none is as long."""
        if not 0 < tokens <= self.longest:
            raise ValueError(f"a rollout has 1 to {self.longest} tokens, not {tokens}")
        return min(RANGES - 1, int((tokens - 1) / self.width))

    def expect(self, rollouts: int) -> None:
        """Notes that so many are queued or under way at once. All of them fit into memory: their short ones end first,
        and would wipe out what is known of long ones."""
        self._memory = max(self._memory, float(rollouts))

    def grew(self, before: int, now: int) -> None:
        """Notes that a rollout went on from one range to another."""
        if now > before:
            self._passed[before:now] += 1.0
            self.version += 1

    def end(self, place: int) -> None:
        """Notes that a rollout ended in that range."""
        self._ended[place] += 1.0
        self.version += 1
        if self._ended.sum() >= self._memory:
            self._ended /= 2
            self._passed /= 2

    def alive(self) -> NDArray[np.float64]:
        """Returns [RANGES, RANGES]: how likely a rollout that is in range i is to be alive k ranges further on."""
        ends = self._ended / (self._ended + self._passed + UNSEEN)
        goes_on = np.append(1.0 - ends[:-1], np.zeros(RANGES))  # nothing leaves the last range
        places = np.arange(RANGES)[:, None] + np.arange(RANGES - 1)[None, :]
        later: NDArray[np.float64] = np.cumprod(goes_on[places], axis=1)
        return np.hstack([np.ones((RANGES, 1)), later])

    def sizes(self) -> NDArray[np.float64]:
        """Returns [RANGES, RANGES]: the tokens that a rollout of range i has at most, k ranges further on."""
        places = np.arange(1, RANGES + 1)[:, None] + np.arange(RANGES)[None, :]
        tokens: NDArray[np.float64] = np.minimum(places * self.width, float(self.longest))
        return tokens
