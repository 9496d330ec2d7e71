"""Says which seeds belong to which split: each to exactly one, whoever asks and on every machine.

Seeds are whole numbers from 0 to 2**63 - 1, so that every store holds them. The remainder modulo four names the split:
no configuration can move a seed, and a task made from a sealed seed is never made from a training seed. Two seeds may
still give the same question by chance: so a question, too, belongs to one split (`split_of_question`), by its key and
whatever its seed, and is drawn for no other. However many nights there are, none trains on what another is judged by.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from random import Random

from curriculum.contract.errors import SeedError
from curriculum.contract.task import Split

LIMIT = 2**63
"""Seeds lie below it."""

_RESIDUE = {Split.TRAIN: 0, Split.VALIDATION: 1, Split.SEALED: 2, Split.JOB: 3}
_QUESTIONS = (Split.TRAIN, Split.TRAIN, Split.VALIDATION, Split.SEALED)
_SPLIT = {residue: split for split, residue in _RESIDUE.items()}


def split_of(seed: int) -> Split:
    """The split that owns the seed. Raises SeedError when it is out of range."""
    if not 0 <= seed < LIMIT:
        raise SeedError(f"{seed} is no seed", hint="use a whole number from 0 to 2**63 - 1")
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
    """The split that owns what a key asks (`TaskDraft.key`): training has a half of all questions, validation and the
    sealed sets a quarter each."""
    return _QUESTIONS[digest_of("question", key)[0] % len(_QUESTIONS)]


def seeds(split: Split, start: int = 0) -> Iterator[int]:
    """All seeds of the split, ascending, from the `start`-th on."""
    if start < 0:
        raise SeedError(f"cannot start at seed number {start}", hint="count from 0")
    return iter(range(_RESIDUE[split] + start * len(_SPLIT), LIMIT, len(_SPLIT)))


def draw(split: Split, rng: Random) -> int:
    """Some seed of the split, uniformly."""
    return rng.randrange(_RESIDUE[split], LIMIT, len(_SPLIT))


def derive(*parts: str | int) -> int:
    """A 63-bit seed from the parts, for one random choice; equal parts give equal seeds on every machine.

    >>> derive("night", 0) == derive("night", 0) != derive("night", 1)
    True
    """
    return int.from_bytes(digest_of(*parts)[:8], "big") >> 1


def digest_of(*parts: str | int) -> bytes:
    """SHA-256 of the parts, which stay apart."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
