"""Seeds a session's processes: the same random numbers in all at first, others in each branch.

What is seeded at first: the global generators of `random` and, where they are loaded, of `numpy.random` and SymPy, and
what numpy seeds others with that are given no seed. A
branch seeds these and every other generator that is there: of `random.Random`, and of numpy's bit generators, each from
the new seed and its own state, so that a history that is repeated draws the same again. What cannot be: values already
drawn, the layout of the address space, and the seed of string hashes, which is the same in all guests anyway. The
guest's kernel takes what it gives out as random from the host at each read.
"""

from __future__ import annotations

import gc
import struct
import sys

TYPE_CHECKING = False  # what it guards is for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from typing import Any

WORDS = struct.Struct("<8I")
BYTES = WORDS.size
FIRST = bytes(BYTES)
"""What every process of a session begins with: a history that is repeated elsewhere draws the same numbers."""
DUMMIES = 1_000_000
"""Where SymPy begins to number its dummy symbols, which it sorts by that; else it draws one of seven digits."""


def begin() -> None:
    """Seeds with what all begin with, and makes the same what a library drew from the kernel when it was loaded."""
    seed(FIRST)
    symbol = sys.modules.get("sympy.core.symbol")
    if symbol is not None:
        symbol.Dummy._base_dummy_index = DUMMIES


def seed(value: bytes) -> None:
    """Seeds what modules draw from, from 32 bytes. Raises what user code may have put in the place of these."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed(value)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None and random is not None:
        numpy_random.seed(WORDS.unpack(value))
        sys.modules["numpy.random.bit_generator"].randbits = random.Random(value).getrandbits  # type: ignore[attr-defined]
    sympy_random = sys.modules.get("sympy.core.random")
    if sympy_random is not None:
        sympy_random.rng.seed(value)


def seed_all(value: bytes) -> None:
    """Seeds also what user code made itself. Raises likewise."""
    plain: Any = getattr(sys.modules.get("random"), "Random", ())
    bits: Any = getattr(sys.modules.get("numpy.random"), "BitGenerator", ())
    for found in gc.get_objects():
        if isinstance(found, plain) and type(found).random is plain.random:
            plain.seed(found, value + repr(plain.getstate(found)).encode())
        elif isinstance(found, bits):
            found.state = type(found)(list(value + repr(found.state).encode())).state
    seed(value)


def mixed(value: bytes, number: int) -> bytes:
    """Makes other 32 bytes for each number."""
    words = WORDS.unpack(value)
    return WORDS.pack((words[0] ^ number) & 0xFFFFFFFF, *words[1:])
