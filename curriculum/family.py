"""The seam for task families: one file each, with config, levels, generator, reference solution and tool trace.

A family is deterministic: the same (level, seed) gives the same task on every machine. It has no state, reads no clock
and draws all randomness from the generator that it is handed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from verifiers.spec import Spec


@dataclass(frozen=True)
class Problem:
    """One generated item, before it becomes a task."""

    operation: str
    """Which operation of the family: its name in `Family.operations`."""
    numbers: tuple[int, ...]
    prompt: str
    spec: Spec
    answer: str
    """The reference answer; used by demonstrations and tests, never by the agent."""


@dataclass(frozen=True)
class Operation:
    """What a calculator can do about a problem: the right call, and calls that fail first as a beginner's would."""

    name: str
    arity: int
    code: str
    """Python that prints the answer; `{a}`, `{b}`, `{c}` are the problem's numbers."""
    beginner: tuple[str, ...]
    """Variants that raise: a forgotten import, a missing bracket, a function that does not exist."""


@dataclass(frozen=True)
class ToolTrace:
    """Calls in order; the last one prints the answer, those before it fail."""

    calls: tuple[str, ...]


class Family(Protocol):
    name: str
    domain: str
    version: int
    null_answer: str
    """The best constant answer; tests assert that it is right for almost no item."""

    @property
    def operations(self) -> Sequence[Operation]: ...

    @property
    def level_count(self) -> int: ...

    def problem(self, level: int, rng: Random) -> Problem:
        """One item of that level."""
        ...

    def solution(self, problem: Problem, rng: Random, *, fail_first: bool) -> ToolTrace:
        """The reference tool trace, with a beginner's failure or two before it when asked for."""
        ...
