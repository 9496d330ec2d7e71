"""Remembers trained questions, so that no sealed question drawn later is one word from them.

Invariants: it depends on the tasks alone, not on their order. It applies the rule for generated tasks
(`curriculum.separation.rules`) in the other direction: a sealed question that matches here is one word from a trained
task. Keys need no check, because each belongs to one split.
"""

from __future__ import annotations

from collections.abc import Iterable

from curriculum.contract.task import Task
from curriculum.separation.index import check_of, text_of
from curriculum.separation.rules import FEWEST_TOKENS, SHORT
from curriculum.separation.tokens import shortened, tokens_of


class TrainedQuestions:
    """Set of tasks trained on before, kept as hashes without their text."""

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self._marks = {mark for task in tasks for mark in _marks_of(task)}

    def meets(self, task: Task) -> bool:
        """True if a question trained on before has the same numbers and check, and differs in at most one word."""
        return bool(self._marks) and not self._marks.isdisjoint(_marks_of(task))


def _marks_of(task: Task) -> set[int]:
    """Returns hashes of a task; two tasks one word apart share one. Valid in this process only; none for very short or
    long tasks."""
    tokens = tokens_of(text_of(task))
    if not FEWEST_TOKENS <= len(tokens) <= SHORT:
        return set()
    check = check_of(task)
    return {hash((check, one)) for one in shortened(tokens, words_only=True)}
