"""Demonstrations for the warm start: a question and the calls to be made, in order. They teach form, not choice.

A demonstration holds no answer. Its caller runs the calls for real, and the final answer shown is whatever the last
one printed. With probability `1 - right_choice` the calls come from another operation with as many numbers: such a
conversation shows how a tool is called, repaired and quoted, and leaves which call is right to be learned from
verified success. The share of right choices thus sets the level at which training starts.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from random import Random

from curriculum.family import Operation
from curriculum.phrased import trace
from curriculum.registry import OPERATIONS
from curriculum.sealed import draw_task
from curriculum.task import Split, Task


@dataclass(frozen=True)
class Demonstration:
    task: Task
    calls: tuple[str, ...]
    """Python sources in order. All but the last one fail."""
    operation: str
    """The one that the calls carry out."""
    right: bool
    """Whether the question asks for it."""


def demonstration(
    rng: Random,
    *,
    right_choice: float,
    fail_first: float,
    exclude: AbstractSet[str] = frozenset(),
    without: AbstractSet[str] = frozenset(),
) -> Demonstration:
    """One demonstration on a training task, uniform over operations.

    It asks nothing in `exclude`, and its family is not in `without`. With probability `fail_first` a beginner's failing
    call comes first, sometimes two. Raises ExhaustedError.
    """
    task, problem = draw_task(Split.TRAIN, rng, set(exclude), without)
    asked = OPERATIONS[problem.operation]
    shown = asked if rng.random() < right_choice else _another(asked, rng)
    calls = trace(shown, problem.numbers, rng, fail_first=rng.random() < fail_first).calls
    return Demonstration(task=task, calls=calls, operation=shown.name, right=shown is asked)


def _another(asked: Operation, rng: Random) -> Operation:
    """Another operation on as many numbers; the same one when there is no other."""
    others = [known for known in OPERATIONS.values() if known.arity == asked.arity and known is not asked]
    return rng.choice(others) if others else asked
