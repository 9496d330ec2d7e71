"""Why a problem that can be checked is not taken: it is there already, or it would lead to what is sealed.

`refusal` asks each door in turn. Whoever knows another way to recognise a sealed question (overlap of words, near
duplicates) adds a door: a function from a problem to a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from curriculum.contract.task import Task
from curriculum.own.rows import OwnRow, key_of_question

Door = Callable[[OwnRow], str]
"""Says why the problem is not taken; empty where it is."""


def not_seen(known: Collection[str]) -> Door:
    """Refuses a question that is among the `known` keys, or that came through before."""
    seen = set(known)

    def door(row: OwnRow) -> str:
        if row.key in seen:
            return "its question is there already"
        seen.add(row.key)
        return ""

    return door


def not_sealed(sealed: Iterable[Task]) -> Door:
    """Refuses what asks the same as a sealed task, by its key or word for word."""
    keys = set()
    for task in sealed:
        keys |= {task.key, key_of_question(task.question)}

    def door(row: OwnRow) -> str:
        return "its question is sealed: models are evaluated on it" if row.key in keys else ""

    return door


def refusal(row: OwnRow, doors: Iterable[Door]) -> str:
    """The first reason; empty where every door lets it through."""
    return next(filter(None, (door(row) for door in doors)), "")
