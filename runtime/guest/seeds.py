"""Seeds a session's processes: equal random numbers at first, different ones in each branch.

Seeded at first: the global generators of `random` and, if loaded, of `numpy.random` and SymPy, and numpy's source of
seeds for unseeded generators. A branch reseeds these and every other existing generator, of `random.Random` and of
numpy's bit generators, each from the new seed and its own state, so that a replay draws the same numbers. Not covered:
values already drawn, the address space layout, and the seed of string hashes, which is equal in all guests. The guest's
kernel takes its random numbers from the host at each read.
"""

from __future__ import annotations

import gc
import struct
import sys

TYPE_CHECKING = False  # guards imports for type checkers: a guest does not load `typing`
if TYPE_CHECKING:
    from typing import Any

WORDS = struct.Struct("<8I")
BYTES = WORDS.size
FIRST = bytes(BYTES)
"""Initial seed of every process: a history replayed elsewhere draws the same numbers."""
DUMMIES = 1_000_000
"""First number of SymPy's dummy symbols, which it sorts by number; otherwise SymPy draws a random one."""


def begin() -> None:
    """Applies the initial random seed, and fixes values that a library drew from the kernel when it was loaded."""
    seed(FIRST)
    symbol = sys.modules.get("sympy.core.symbol")
    if symbol is not None:
        symbol.Dummy._base_dummy_index = DUMMIES


def seed(value: bytes) -> None:
    """Seeds the random generators of `random`, NumPy and SymPy, if loaded, from 32 bytes. Raises any error of
    replacements that user code installed."""
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
    """Seeds the random generators of modules and those created by user code. Raises like `seed`."""
    plain: Any = getattr(sys.modules.get("random"), "Random", ())
    bits: Any = getattr(sys.modules.get("numpy.random"), "BitGenerator", ())
    for found in gc.get_objects():
        if isinstance(found, plain) and type(found).random is plain.random:
            plain.seed(found, value + repr(plain.getstate(found)).encode())
        elif isinstance(found, bits):
            found.state = type(found)(list(value + repr(found.state).encode())).state
    seed(value)


def mixed(value: bytes, number: int) -> bytes:
    """Derives a seed of 32 bytes, different for each number, from another seed."""
    words = WORDS.unpack(value)
    return WORDS.pack((words[0] ^ number) & 0xFFFFFFFF, *words[1:])
