"""Why a problem that can be checked is not taken: it is there already, or it would lead to what is sealed.

`refusal` asks each door in turn. Another one is a function from a problem to a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from curriculum.contract.task import Task
from curriculum.own.rows import OwnRow
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Check, Match

Door = Callable[[OwnRow], str]
"""Says why the problem is not taken; empty where it is."""


def not_there(known: Collection[str]) -> Door:
    """Refuses a question that is among the `known` keys when it is asked for: whoever takes one adds its key."""

    def door(row: OwnRow) -> str:
        return "its question is there already" if row.key in known else ""

    return door


def not_sealed(sealed: Iterable[Task], beside: Iterable[str] = ()) -> Door:
    """Refuses what asks the same as a sealed task, or is nearly its text (`curriculum.separation.rules`). `beside` are
    the owner's other questions, which show what is a form."""
    kept = SeparationIndex(sealed, beside)

    def door(row: OwnRow) -> str:
        match = kept.met_by_text(row.question, row.key)
        if match is not None:
            return _too_near(match)
        held = (kept.met_by_result(text, row.question) for text in row.texts)
        match = next(filter(None, held), None)
        return "" if match is None else f"one of its files holds a sealed question: {match.check.value}"

    return door


def _too_near(match: Match) -> str:
    """A question that is sealed itself is told from one that only looks like it."""
    if match.check in (Check.KEY, Check.EXACT):
        return "its question is sealed: models are evaluated on it"
    return f"too near to a sealed question that models are evaluated on ({match.check.value})"


def refusal(row: OwnRow, doors: Iterable[Door]) -> str:
    """The first reason; empty where every door lets it through."""
    return next(filter(None, (door(row) for door in doors)), "")
