"""Reasons why a proposal does not become a task.

Reads the parts of a proposal: fenced blocks, each with a name.

    ```python
    def f(x): ...
    ```
    ```input
    [3, 1, 2]
    ```

Pure. The text is the model's and hostile. Invariants: each requested part occurs exactly once, closed, within bounds,
in printable characters; other blocks are refused, and text around blocks is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    TRIVIAL = "trivial"
    """One operation gives the same results."""
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


MOST_CHARACTERS = 8_000
MOST_OF_A_PART = 2_000
_FENCE = re.compile(r"^```([a-z]{0,20})[ \t]*$")


def parts(text: str, names: Sequence[str]) -> dict[str, str]:
    """Returns the named fenced blocks of a proposal. Raises RefusedProposal if one is missing, repeated or unclosed."""
    if len(text) > MOST_CHARACTERS:
        raise RefusedProposal(Reason.UNREADABLE, f"longer than {MOST_CHARACTERS} characters")
    found: dict[str, str] = {}
    name: str | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.match(line)
        if name is None:
            if fence:
                name, lines = fence[1], []
        elif fence and not fence[1]:
            if name not in names or name in found:
                raise RefusedProposal(Reason.UNREADABLE, "a block that is not asked for, or twice the same")
            found[name] = "\n".join(lines).strip("\n")
            name = None
        else:
            lines.append(line)
    missing = [one for one in names if not found.get(one, "").strip()]
    if name is not None or missing:
        raise RefusedProposal(Reason.UNREADABLE, f"no whole block for {', '.join(missing) or 'the last fence'}")
    for one in found.values():
        if len(one) > MOST_OF_A_PART or not one.replace("\n", "").isprintable():
            raise RefusedProposal(Reason.UNREADABLE, f"a part beyond {MOST_OF_A_PART} characters, or not printable")
    return found
