"""A long fuzz in blocks with seeds of their own: what hypothesis remembers of a run grows with it, and slows it down.

`FUZZ_SEED` (a number, 0 unless it is set) chooses other examples, `FUZZ_EXAMPLES` how many.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

BLOCK = 250
PER_SEED = 10_000
"""Blocks that one `FUZZ_SEED` may have."""
SAYS_SECONDS = 15.0
T = TypeVar("T")


def in_blocks(
    body: Callable[[T], None], strategy: st.SearchStrategy[T], *, examples: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Raises what `body` raises, for the smallest example that hypothesis finds; says how far it is."""
    examples = int(os.environ.get("FUZZ_EXAMPLES", examples))
    first = PER_SEED * int(os.environ.get("FUZZ_SEED", "0"))
    begun = reported = time.monotonic()
    done = 0
    for number, size in blocks(examples):
        checks = settings(max_examples=size, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        seed(first + number)(checks(given(strategy)(lambda value: body(value))))()
        done += size
        if (now := time.monotonic()) > reported + SAYS_SECONDS or done == examples:
            reported = now
            with capsys.disabled():
                print(f"\n{done} of {examples}, {done / (now - begun):.0f} a second", end="", flush=True)


def blocks(examples: int) -> Iterator[tuple[int, int]]:
    """Number and size of each."""
    for number, start in enumerate(range(0, examples, BLOCK)):
        yield number, min(BLOCK, examples - start)
