"""Gives seeds to data sets whose item i comes from `Random(seed + i)`: windows of numbers that never overlap. Pure.

Neighbouring seeds of such a data set share all items but one: seeds 0 and 1 of 500 items have 499 in common. What
always holds: two different pairs of batch and level have windows with no number in common, and every number is below
2**31, which all generators of random numbers take. Which split an item belongs to follows from its text
(`curriculum.own.rows`), so an item that two windows made by chance is in one split only.
"""

from __future__ import annotations

from curriculum.contract.errors import CurriculumError
from curriculum.environments.foreign import MOST_ITEMS
from curriculum.own.rows import LEVELS

STRIDE = 1 << 14
"""Between the seeds of two windows: more than a data set may have items."""
BATCHES = (1 << 31) // (STRIDE * LEVELS)
assert STRIDE >= MOST_ITEMS


def seed_of(batch: int, level: int) -> int:
    """The seed of that batch's items of that level. Raises CurriculumError for a batch that there is not."""
    if not (0 <= batch < BATCHES and 0 <= level < LEVELS):
        raise CurriculumError(f"there is no batch {batch}", hint=f"choose one from 0 to {BATCHES - 1}")
    return (batch * LEVELS + level) * STRIDE


def window(batch: int, level: int, size: int) -> range:
    """The numbers that its items come from. Raises CurriculumError."""
    if not 1 <= size <= MOST_ITEMS:
        raise CurriculumError(f"{size} items of a level are too many or too few", hint=f"ask for 1 to {MOST_ITEMS}")
    return range(seed_of(batch, level), seed_of(batch, level) + size)
