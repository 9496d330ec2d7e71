"""Tasksets whose questions are a phrase filled with numbers, answered by one line on a calculator.

For each operation, such a family defines its phrases, the numbers of each level, the calculator line, and a beginner's
mistakes. Drawing is deterministic: all randomness comes from the given generator. Templates are filled with integers
only, so no text of a question ever becomes code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from curriculum.contract.task import asked
from curriculum.contract.taskset import TaskDraft, ToolTrace, require_level
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec
from verifiers.registry.spec import Spec

Level = Mapping[str, int]
"""Bounds of the drawn numbers, by name: the largest number of each kind."""

SECOND_FAILURE = 0.15
"""Share of the traces with a failing call that show another one before the repair."""

IMPOSSIBLE = 10**19
"""Lower bound of numbers with more digits than any answer."""

_SLOT = re.compile(r"\{([abc])\}")


@dataclass(frozen=True)
class Operation:
    """Calculator operation: the right call, and calls that fail as a beginner's would."""

    name: str
    code: str
    """Python that prints the answer; `{a}`, `{b}`, `{c}` are the question's numbers."""
    beginner: tuple[str, ...]
    """Variants that raise: a forgotten import, a missing bracket, a function that does not exist."""

    @property
    def arity(self) -> int:
        """Number of operands of the calculator operation."""
        return len(set(_SLOT.findall(self.code)))


@dataclass(frozen=True)
class Question:
    """One operation, with its phrases, numbers and answer."""

    operation: Operation
    phrases: tuple[str, ...]
    draw: Callable[[Level, Random], tuple[int, ...]]
    answer: Callable[..., int | str]
    """Computes the answer from the drawn numbers. A string is a numeral in another base, compared as text."""


@dataclass(frozen=True, kw_only=True)
class PhrasedDraft(TaskDraft):
    """Question whose topic is an operation's name."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class PhrasedTaskset:
    """Taskset made of a table of questions and a list of levels, easiest first."""

    name: str
    version: int
    null_answers: Sequence[str]
    levels: Sequence[Level]
    questions: Sequence[Question]
    others: Sequence[Operation] = ()
    """Operations of all families together, for demonstrations of a wrong choice."""

    @property
    def level_count(self) -> int:
        return len(self.levels)

    @property
    def topics(self) -> Sequence[str]:
        return tuple(question.operation.name for question in self.questions)

    def topic_of(self, rng: Random) -> str:
        return rng.choice(self.questions).operation.name

    def draft(self, level: int, rng: Random) -> PhrasedDraft:
        """Makes one calculator question, its operation drawn uniformly. Raises LevelError for an unknown level."""
        require_level(self, level)
        question = rng.choice(self.questions)
        numbers = question.draw(self.levels[level], rng)
        answer = question.answer(*numbers)
        topic = question.operation.name
        return PhrasedDraft(
            topic=topic,
            key=f"{topic}:{','.join(map(str, numbers))}",
            messages=asked(fill(rng.choice(question.phrases), numbers)),
            spec=ExactSpec(expected=answer) if isinstance(answer, str) else AnswerSpec(expected=str(answer)),
            answer=str(answer),
            numbers=numbers,
        )

    def unsolvable(self, draft: TaskDraft, number: int) -> Spec:
        """Returns a spec that no honest answer passes: a number of twenty digits, unrelated to the question."""
        return AnswerSpec(notation="digits", expected=str(IMPOSSIBLE + number))

    def missing(self) -> str:
        return ""

    def demonstrate(self, draft: TaskDraft, rng: Random, *, right_choice: float, fail_first: float) -> ToolTrace:
        """Returns calculator calls of the question's operation. With probability `1 - right_choice` they are those of
        another one of equal arity, if one exists; with `fail_first` failing calls come first."""
        assert isinstance(draft, PhrasedDraft)
        shown = next(question.operation for question in self.questions if question.operation.name == draft.topic)
        if rng.random() >= right_choice:
            others = [one for one in self.others if one.arity == shown.arity and one is not shown]
            shown = rng.choice(others) if others else shown
        return trace(shown, draft.numbers, rng, fail_first=rng.random() < fail_first)


def calculators(*families: PhrasedTaskset) -> tuple[PhrasedTaskset, ...]:
    """Returns the calculator tasksets, each knowing the operations of all. So a demonstration of a wrong choice may use
    another taskset's operation."""
    operations = tuple(question.operation for family in families for question in family.questions)
    return tuple(replace(family, others=operations) for family in families)


def trace(operation: Operation, numbers: Sequence[int], rng: Random, *, fail_first: bool) -> ToolTrace:
    """Returns calculator calls of an operation on these numbers: the right one, with `fail_first` after failures."""
    failures = 1 + (rng.random() < SECOND_FAILURE) if fail_first else 0
    wrong = [fill(rng.choice(operation.beginner), numbers) for _ in range(failures)]
    return ToolTrace((*wrong, fill(operation.code, numbers)), operation.name)


def fill(template: str, numbers: Sequence[int]) -> str:
    """Returns `template` with the numbers in place of `{a}`, `{b}` and `{c}`; other braces are left alone.

    Raises ValueError if the template names a missing number, or a number is not an integer.
    """
    if not all(type(number) is int for number in numbers):
        raise ValueError(f"templates take integers only, not {numbers!r}")
    values = dict(zip("abc", numbers, strict=False))
    missing = {slot for slot in _SLOT.findall(template) if slot not in values}
    if missing:
        raise ValueError(f"the template needs {', '.join(sorted(missing))} but has {len(values)} numbers")
    return _SLOT.sub(lambda match: str(values[match[1]]), template)
