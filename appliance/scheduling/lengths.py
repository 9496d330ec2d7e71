"""Learns rollout lengths from finished and running rollouts.

A life table: per range of lengths, the rollouts that ended in it and those that passed it. Running rollouts count for
the ranges they passed, so that short ones, which end first, do not make all look short (Kaplan and Meier 1958,
doi:10.1080/01621459.1958.10501452).

Invariants: lengths are tokens of a whole conversation, including the prompt; none exceeds `longest`; unseen lengths are
assumed to be maximal.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from runtime.model import FrozenModel

RANGES = 64
"""Ranges of equal width up to the longest: the table's resolution, and the cost of a forecast."""
UNSEEN = 1.0
"""Prior rollouts assumed to have passed each range: without any, nothing is short."""
MEMORY = 4096.0
"""Minimum ended rollouts after which all counts are halved: lengths change while a model learns."""

Row = NDArray[np.float64]


class LengthTable(FrozenModel):
    """Saved counts of rollout lengths: state of a `LengthCurve`."""

    longest: Annotated[int, Field(ge=1)]
    ended: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = (0.0,) * RANGES
    passed: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = (0.0,) * RANGES


class LengthCurve:
    def __init__(self, table: LengthTable) -> None:
        """Restores the statistics of rollout lengths from a table. Raises ValueError for a table with another number of
        ranges."""
        if {len(table.ended), len(table.passed)} != {RANGES}:
            raise ValueError(f"a length table needs {RANGES} ranges, not {len(table.ended)} and {len(table.passed)}")
        self.longest = table.longest
        self.width = table.longest / RANGES
        self._ended, self._passed = np.array(table.ended), np.array(table.passed)
        self.version = 0
        """Incremented on each change of the curve."""
        self._memory = MEMORY

    def table(self) -> LengthTable:
        return LengthTable(longest=self.longest, ended=tuple(self._ended), passed=tuple(self._passed))

    def range_of(self, tokens: int) -> int:
        """Returns the number of the length range for a rollout of these tokens. Raises ValueError if out of range."""
        if not 0 < tokens <= self.longest:
            raise ValueError(f"a rollout has 1 to {self.longest} tokens, not {tokens}")
        return min(RANGES - 1, int((tokens - 1) / self.width))

    def expect(self, rollouts: int) -> None:
        """Raises the number of remembered lengths for that many concurrent rollouts. Their short ones end first and
        would erase the counts of long ones."""
        self._memory = max(self._memory, float(rollouts))

    def grew(self, before: int, now: int) -> None:
        """Records that a rollout passed from one length range to another."""
        if now > before:
            self._passed[before:now] += 1.0
            self.version += 1

    def end(self, place: int) -> None:
        """Records that a rollout ended in that length range."""
        self._ended[place] += 1.0
        self.version += 1
        if self._ended.sum() >= self._memory:
            self._ended /= 2
            self._passed /= 2

    def alive(self) -> NDArray[np.float64]:
        """Returns [RANGES, RANGES]: probability that a rollout in length range i is still running k ranges later."""
        ends = self._ended / (self._ended + self._passed + UNSEEN)
        goes_on = np.append(1.0 - ends[:-1], np.zeros(RANGES))  # nothing leaves the last range
        places = np.arange(RANGES)[:, None] + np.arange(RANGES - 1)[None, :]
        later: NDArray[np.float64] = np.cumprod(goes_on[places], axis=1)
        return np.hstack([np.ones((RANGES, 1)), later])

    def sizes(self) -> NDArray[np.float64]:
        """Returns [RANGES, RANGES]: maximum tokens of a rollout of length range i, k ranges later."""
        places = np.arange(1, RANGES + 1)[:, None] + np.arange(RANGES)[None, :]
        tokens: NDArray[np.float64] = np.minimum(places * self.width, float(self.longest))
        return tokens
