"""Seeds a session's processes: the same random numbers in all at first, others after a restore that asks for it.

What is seeded: the global generators of `random` and, where it is loaded, of `numpy.random`. What cannot be: a
generator that user code made itself (`random.Random()`, `numpy.random.default_rng()`), values already drawn, the layout
of the address space, and the seed of string hashes, which is the same in all guests anyway. The guest's kernel takes
what it gives out as random from the host at each read.
"""

from __future__ import annotations

import struct
import sys

WORDS = struct.Struct("<8I")
BYTES = WORDS.size
FIRST = bytes(BYTES)
"""What every process of a session begins with: a history that is repeated elsewhere draws the same numbers."""


def seed(value: bytes) -> None:
    """Seeds all that is loaded, from 32 bytes. Raises what user code may have put in the place of these modules."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed(value)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(WORDS.unpack(value))


def mixed(value: bytes, number: int) -> bytes:
    """Makes other 32 bytes for each number."""
    words = WORDS.unpack(value)
    return WORDS.pack((words[0] ^ number) & 0xFFFFFFFF, *words[1:])
