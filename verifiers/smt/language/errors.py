"""What can be wrong with a text in the language of claims."""

from __future__ import annotations


class ClaimError(Exception):
    """It cannot be read: not in the language, too large, or of the wrong sort. The message says where."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message if at is None else f"{message} (character {at + 1})")


class FormError(ClaimError):
    """It is in the language, but not in the part of it that was asked for."""


class CommandError(ClaimError):
    """It holds a command that has no place there. `tampering` where it speaks to the solver or to its output."""

    def __init__(self, message: str, at: int | None = None, *, tampering: bool = False) -> None:
        super().__init__(message, at)
        self.tampering = tampering


class Undefined(Exception):
    """This term has no value that our arithmetic can give: a division by zero, a quantifier, a number too large."""

    def __init__(self, message: str, *, by_zero: bool = False, quantified: bool = False) -> None:
        super().__init__(message)
        self.by_zero = by_zero
        self.quantified = quantified


class SolverBroke(Exception):
    """A solver, or two of them, contradict themselves or fail: nothing is known of the submission."""


class OutOfMemory(MemoryError):
    """A solver took more memory than it may. What it leaves behind cannot be trusted: this process has to end."""
