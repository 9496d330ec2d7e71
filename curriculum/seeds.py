"""Assigns each seed to exactly one split, the same on every machine.

Seeds are whole numbers from 0 to 2**63 - 1, so that every store holds them. The remainder modulo four is the split: no
configuration can move a seed, and a task made from a sealed seed is never made from a training seed. Two seeds may
still give the same question by chance: so each question also belongs to one split (`split_of_question`), by its key,
and is drawn for no other. No cycle ever trains on a question that another is evaluated on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from random import Random

from curriculum.contract.errors import SeedError
from curriculum.contract.task import Split

LIMIT = 2**63
"""Exclusive upper bound of seeds."""

_RESIDUE = {Split.TRAIN: 0, Split.VALIDATION: 1, Split.SEALED: 2, Split.JOB: 3}
_FACTS = " @ facts of "
_QUESTIONS = (Split.TRAIN, Split.TRAIN, Split.VALIDATION, Split.SEALED)
_SPLIT = {residue: split for split, residue in _RESIDUE.items()}


def split_of(seed: int) -> Split:
    """Returns the split that owns the seed. Raises SeedError if it is out of range."""
    if not 0 <= seed < LIMIT:
        raise SeedError(f"invalid seed {seed}", hint="use a whole number from 0 to 2**63 - 1")
    return _SPLIT[seed % len(_SPLIT)]


def require(seed: int, split: Split) -> None:
    """Raises SeedError unless the seed belongs to the split."""
    owner = split_of(seed)
    if owner is not split:
        raise SeedError(
            f"seed {seed} belongs to the split {owner.value}, not to {split.value}",
            hint=f"take seeds from curriculum.seeds.seeds(Split.{split.name})",
        )


def split_of_question(key: str) -> Split:
    """Returns the split that owns a question key (`TaskDraft.key`). Training owns half of all questions, validation and
    the sealed sets a quarter each. Questions whose keys name the same facts (`about`) belong to one split."""
    return _QUESTIONS[digest_of("question", key.rpartition(_FACTS)[2])[0] % len(_QUESTIONS)]


def about(facts: str, key: str) -> str:
    """Returns a question key that names the facts which the answer is learned from, such as a corpus: a model that
    remembers them from training knows nothing of another split's questions."""
    return f"{key}{_FACTS}{facts}"


def seeds(split: Split, start: int = 0) -> Iterator[int]:
    """Yields all seeds that belong to the split, ascending, from the `start`-th on."""
    if start < 0:
        raise SeedError(f"invalid start {start}", hint="count seeds from 0")
    return iter(range(_RESIDUE[split] + start * len(_SPLIT), LIMIT, len(_SPLIT)))


def draw(split: Split, rng: Random) -> int:
    """Draws a random seed that belongs to the split."""
    return rng.randrange(_RESIDUE[split], LIMIT, len(_SPLIT))


def derive(*parts: str | int) -> int:
    """Derives a 63-bit seed from the parts, for one random choice; equal parts give equal seeds on every machine.

    >>> derive("night", 0) == derive("night", 0) != derive("night", 1)
    True
    """
    return int.from_bytes(digest_of(*parts)[:8], "big") >> 1


def digest_of(*parts: str | int) -> bytes:
    """Returns the SHA-256 digest of several texts or numbers, written as text and joined by U+001F."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
