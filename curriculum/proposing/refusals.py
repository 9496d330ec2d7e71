"""Names why a proposal does not become a task."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """What was wrong with a proposal. Values are what records and figures show."""

    UNREADABLE = "unreadable"
    """Not in the grammar that its prompt asks for."""
    FORBIDDEN = "forbidden"
    """Uses what no proposal may: other imports, sets, classes, text that is run."""
    RAISES = "raises"
    SLOW = "slow"
    """Ran out of time or memory."""
    MACHINE = "machine"
    """Asked for files, clocks, addresses or programs: what no computation needs."""
    CHANGES = "changes"
    """Gave another result the second time."""
    TOO_LARGE = "too_large"
    NOT_PLAIN = "not_plain"
    """The result is not made of whole numbers, texts, lists, tuples and dictionaries."""
    CONSTANT = "constant"
    """The same result for every input."""
    IDENTITY = "identity"
    IGNORES = "ignores_input"
    """One of its arguments makes no difference."""
    NARROW = "narrow"
    """Fails for nearly all inputs but its own."""
    LOOKUP = "lookup"
    """The result is read from a table or a constant of the program."""
    SHOWN = "answer_shown"
    """The answer stands in the question."""
    VACUOUS = "vacuous"
    """Everything meets it, or it is closed at once."""
    CONTRADICTORY = "contradictory"
    """Nothing meets it."""
    AMBIGUOUS = "ambiguous"
    """More than one answer meets it."""
    UNPROVED = "unproved"
    """Not shown to be right within the effort that is given."""
    UNCHECKABLE = "uncheckable"
    """No check can be made of it that turns away an answer without work."""
    KNOWN = "known"
    """The same was proposed before, or is asked by somebody else."""
    NEAR = "near_duplicate"
    SEALED = "sealed"
    """The model will be judged by this question."""


class RefusedProposal(Exception):
    """Says why a proposal earns nothing. `detail` is ours and never the proposal's text."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
