"""Remembers what was trained on, so that no sealed question that is drawn later is one word from it.

What always holds: it depends on the tasks alone, not on their order. It is the rule for what tasksets generate
(`curriculum.separation.rules`), the other way round: a sealed question that this meets would be one word from a task
that was trained on. A key needs no look here, because it belongs to one split.
"""

from __future__ import annotations

from collections.abc import Iterable

from curriculum.contract.task import Task
from curriculum.separation.index import check_of, text_of
from curriculum.separation.rules import FEWEST_TOKENS, SHORT
from curriculum.separation.tokens import shortened, tokens_of


class TrainedQuestions:
    """Holds a few numbers for each task, and none of its text."""

    def __init__(self, tasks: Iterable[Task] = ()) -> None:
        self._marks = {mark for task in tasks for mark in _marks_of(task)}

    def meets(self, task: Task) -> bool:
        """Whether a task that was trained on has the same numbers and check, and differs in one word at most."""
        return bool(self._marks) and not self._marks.isdisjoint(_marks_of(task))


def _marks_of(task: Task) -> set[int]:
    """Two tasks that are a word apart have one of these in common; they mean something in this process alone."""
    tokens = tokens_of(text_of(task))
    if not FEWEST_TOKENS <= len(tokens) <= SHORT:
        return set()
    check = check_of(task)
    return {hash((check, one)) for one in shortened(tokens, words_only=True)}
