"""The families in use, and the one way to make a task from them.

`make_task` is a pure function: the same (family, level, seed) gives the same question on every machine. The table is
written out; importing a module never adds to it.
"""

from __future__ import annotations

import hashlib
from random import Random

from curriculum import seeds
from curriculum.errors import UnknownFamilyError
from curriculum.families.arithmetic import ARITHMETIC
from curriculum.families.counting import COUNTING
from curriculum.families.digits import DIGITS
from curriculum.families.divisors import DIVISORS
from curriculum.families.linear import LINEAR
from curriculum.families.powers import POWERS
from curriculum.families.sequences import SEQUENCES
from curriculum.family import Family, Operation, Problem
from curriculum.task import Split, Task

FAMILIES: dict[str, Family] = {
    "arithmetic": ARITHMETIC,
    "divisors": DIVISORS,
    "powers": POWERS,
    "counting": COUNTING,
    "sequences": SEQUENCES,
    "digits": DIGITS,
    "linear": LINEAR,
}

OPERATIONS: dict[str, Operation] = {
    operation.name: operation for family in FAMILIES.values() for operation in family.operations
}
"""Every operation of every family. Names are unique across families."""


def family_named(name: str) -> Family:
    """Raises UnknownFamilyError, with the names that exist."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise UnknownFamilyError(
            f"there is no family {name!r}", hint=f"choose one of {', '.join(sorted(FAMILIES))}"
        ) from None


def make_problem(family: str, level: int, seed: int) -> Problem:
    """The item behind (family, level, seed), with its answer: for demonstrations and tests, never for the agent.

    Raises UnknownFamilyError or LevelError.
    """
    return family_named(family).problem(level, stable_random("problem", family, level, seed))


def make_task(family: str, level: int, seed: int, split: Split) -> Task:
    """The task of (family, level, seed). Raises SeedError, UnknownFamilyError or LevelError."""
    seeds.require(seed, split)
    return task_of(make_problem(family, level, seed), family, level, seed)


def task_of(problem: Problem, family: str, level: int, seed: int) -> Task:
    """The task that a problem made by `make_problem` with these arguments becomes."""
    return Task(
        family=family,
        level=level,
        seed=seed,
        split=seeds.split_of(seed),
        prompt=problem.prompt,
        spec=problem.spec,
        provenance=f"{family}@{family_named(family).version}",
    )


def problem_of(task: Task) -> Problem:
    """The problem that a generated task was made from. Raises as `make_problem` does, for example for a job's task."""
    return make_problem(task.family, task.level, task.seed)


def operation_of(task: Task) -> Operation:
    """The operation that a generated task asks for."""
    return OPERATIONS[problem_of(task).operation]


def stable_random(*parts: str | int) -> Random:
    """A generator that depends on these parts alone: no salt of the process, no clock."""
    text = "\x1f".join(map(str, parts))
    return Random(int.from_bytes(hashlib.sha256(text.encode()).digest()))
