"""What a solver offers, and what it may use.

What always holds: a solver only proposes. Nothing that it says is believed: each text goes through the spec's verifier
like any answer of the policy model. Code that it wants to run, runs in a sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from runtime.sandbox import CallResult


class Proposal(NamedTuple):
    """`text` may have passed through a guest: hostile."""

    text: str
    by: str
    """Who solved it, for the artifact: `enumeration of integers`, `lean: omega`."""


class Bench(Protocol):
    """A sandbox to compute in; names persist from call to call, files of the job lie in /work."""

    def run(self, code: str, *, seconds: float | None = None) -> CallResult: ...


class Propose(Protocol):
    def __call__(self, bench: Bench) -> Iterator[Proposal]: ...


LINES = 8
"""The most that is taken from one search."""
CHARS = 2_000


def lines_of(result: CallResult, by: str) -> Iterator[Proposal]:
    """One proposal for each line that a search printed, whatever ended it."""
    seen = dict.fromkeys(line.strip() for line in result.output.splitlines())
    for text in [line for line in seen if line and len(line) <= CHARS][:LINES]:
        yield Proposal(text, by)
