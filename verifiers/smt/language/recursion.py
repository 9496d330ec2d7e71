"""Recursion without Python's call stack, so that depth is limited only by our own limits."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


def recurse(question: Q, answer: Callable[[Q], A | Generator[Q, A, A]]) -> A:
    """Returns `answer(question)`. An answer is a value, or a generator that yields subquestions, receives their
    answers, and returns its own."""
    waiting: list[Generator[Q, A, A]] = []
    found: Any = answer(question)
    while True:
        if isinstance(found, GeneratorType):
            waiting.append(found)
            found = None
        elif not waiting:
            return found  # type: ignore[no-any-return]
        try:
            question = waiting[-1].send(found)
        except StopIteration as done:
            waiting.pop()
            found = done.value
        else:
            found = answer(question)
