"""Reasons why a proposal does not become a task."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Fault of a proposal. Values appear in records and figures."""

    UNREADABLE = "unreadable"
    """Violates the grammar that its prompt asks for."""
    FORBIDDEN = "forbidden"
    """Uses a construct that is not allowed: other imports, sets, classes, text that is run."""
    RAISES = "raises"
    SLOW = "slow"
    """Exceeded its time or memory."""
    MACHINE = "machine"
    """Used files, clocks, addresses or programs, which no computation needs."""
    CHANGES = "changes"
    """Gave another result the second time."""
    TOO_LARGE = "too_large"
    NOT_PLAIN = "not_plain"
    """The result contains other types than integers, strings, lists, tuples and dictionaries."""
    CONSTANT = "constant"
    """Gives the same result for every input."""
    IDENTITY = "identity"
    IGNORES = "ignores_input"
    """An argument makes no difference."""
    NARROW = "narrow"
    """Fails for nearly all inputs but its own."""
    LOOKUP = "lookup"
    """The result is read from a table or a constant of the program."""
    SHOWN = "answer_shown"
    """The question contains the answer."""
    VACUOUS = "vacuous"
    """Every answer satisfies it, or a trivial proof closes it."""
    CONTRADICTORY = "contradictory"
    """No answer satisfies it."""
    AMBIGUOUS = "ambiguous"
    """More than one answer satisfies it."""
    UNPROVED = "unproved"
    """Not proved within the given effort."""
    UNCHECKABLE = "uncheckable"
    """No check can be made that rejects an answer without work."""
    KNOWN = "known"
    """The same question was proposed before, or exists elsewhere."""
    NEAR = "near_duplicate"
    SEALED = "sealed"
    """The model will be evaluated on this question."""


class RefusedProposal(Exception):
    """Refusal of a proposal, with its reason. `detail` is fixed text, never the proposal's."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
