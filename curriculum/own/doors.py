"""Filters that reject checkable problems: duplicates, and questions too close to sealed ones.

`refusal` applies filters in turn. A new one is a function from a problem to a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from curriculum.contract.task import Task
from curriculum.own.rows import OwnRow
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Check, Match

Door = Callable[[OwnRow], str]
"""Returns the reason why a problem is rejected; empty if accepted."""


def not_there(known: Collection[str]) -> Door:
    """Returns a filter that rejects a row whose question key is in `known` at call time. The caller adds keys of
    accepted rows."""

    def door(row: OwnRow) -> str:
        return "its question exists already" if row.key in known else ""

    return door


def not_sealed(sealed: Iterable[Task], beside: Iterable[str] = ()) -> Door:
    """Returns a filter that rejects questions equal or close to a sealed task's (`curriculum.separation.rules`).
    `beside` are the owner's other questions, from which forms are detected."""
    kept = SeparationIndex(sealed, beside)

    def door(row: OwnRow) -> str:
        match = kept.met_by_text(row.question, row.key)
        if match is not None:
            return _too_near(match)
        held = (kept.met_by_result(text, row.question) for text in row.texts)
        match = next(filter(None, held), None)
        return "" if match is None else f"one of its files contains a sealed question: {match.check.value}"

    return door


def _too_near(match: Match) -> str:
    """Returns the reason for rejecting a question that matches a sealed one. It differs for the same question and a
    close one."""
    if match.check in (Check.KEY, Check.EXACT):
        return "its question is sealed: models are evaluated on it"
    return f"too close to a sealed question that models are evaluated on ({match.check.value})"


def refusal(row: OwnRow, doors: Iterable[Door]) -> str:
    """Returns the reason of the first filter that rejects the row; empty if all accept it."""
    return next(filter(None, (door(row) for door in doors)), "")
