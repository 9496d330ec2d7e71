"""Families whose questions are a phrase filled with numbers, answered by one line on a calculator.

Every such family says for each of its operations how it is asked, which numbers a level draws, what a calculator would
be told and how a beginner gets that wrong. Drawing is deterministic: all randomness comes from the generator handed in.
Templates are filled with integers and with nothing else, so no text of a question ever becomes code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from curriculum.errors import LevelError
from curriculum.family import Operation, Problem, ToolTrace
from verifiers.spec import ExactSpec, IntegerSpec, Spec

L = TypeVar("L")

SECOND_FAILURE = 0.15
"""Share of the traces with a failing call that show another one before the repair."""

_SLOT = re.compile(r"\{([abc])\}")


@dataclass(frozen=True)
class Question(Generic[L]):
    """One operation, and all that is needed to ask for it."""

    operation: Operation
    phrases: tuple[str, ...]
    draw: Callable[[L, Random], tuple[int, ...]]
    answer: Callable[..., int | str]
    """Of the drawn numbers. A string is a numeral in another base, compared as text."""


class PhrasedFamily(Generic[L]):
    """A family made of a table of questions and a list of levels, easiest first. It is a `Family`."""

    def __init__(
        self,
        *,
        name: str,
        domain: str,
        version: int,
        null_answer: str,
        levels: Sequence[L],
        questions: Sequence[Question[L]],
    ) -> None:
        self.name = name
        self.domain = domain
        self.version = version
        self.null_answer = null_answer
        self._levels = tuple(levels)
        self._questions = tuple(questions)

    @property
    def operations(self) -> Sequence[Operation]:
        return tuple(question.operation for question in self._questions)

    @property
    def level_count(self) -> int:
        return len(self._levels)

    def problem(self, level: int, rng: Random) -> Problem:
        """One item, its operation drawn uniformly. Raises LevelError when the family has no such level."""
        if not 0 <= level < len(self._levels):
            raise LevelError(
                f"family {self.name} has no level {level}",
                hint=f"choose a level from 0 to {len(self._levels) - 1}",
            )
        question = rng.choice(self._questions)
        numbers = question.draw(self._levels[level], rng)
        answer = question.answer(*numbers)
        return Problem(
            operation=question.operation.name,
            numbers=numbers,
            prompt=fill(rng.choice(question.phrases), numbers),
            spec=_spec(answer),
            answer=str(answer),
        )

    def solution(self, problem: Problem, rng: Random, *, fail_first: bool) -> ToolTrace:
        """The call that prints the answer, after a beginner's failure or two when asked for."""
        operation = next(known for known in self.operations if known.name == problem.operation)
        return trace(operation, problem.numbers, rng, fail_first=fail_first)


def trace(operation: Operation, numbers: Sequence[int], rng: Random, *, fail_first: bool) -> ToolTrace:
    """Calls of that operation on these numbers: the right one, and before it what a beginner writes."""
    failures = 1 + (rng.random() < SECOND_FAILURE) if fail_first else 0
    wrong = [fill(rng.choice(operation.beginner), numbers) for _ in range(failures)]
    return ToolTrace(calls=(*wrong, fill(operation.code, numbers)))


def fill(template: str, numbers: Sequence[int]) -> str:
    """`template` with the numbers in place of `{a}`, `{b}` and `{c}`; other braces are left alone.

    Raises ValueError when the template names a number that is not there, or when a number is no integer.
    """
    if not all(type(number) is int for number in numbers):
        raise ValueError(f"templates take integers only, not {numbers!r}")
    values = dict(zip("abc", numbers, strict=False))
    missing = {slot for slot in _SLOT.findall(template) if slot not in values}
    if missing:
        raise ValueError(f"the template needs {', '.join(sorted(missing))} but has {len(values)} numbers")
    return _SLOT.sub(lambda match: str(values[match[1]]), template)


def _spec(answer: int | str) -> Spec:
    return ExactSpec(expected=answer) if isinstance(answer, str) else IntegerSpec(expected=str(answer))
