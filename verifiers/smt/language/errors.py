"""Errors in texts in the language of claims."""

from __future__ import annotations


class ClaimError(Exception):
    """Unreadable SMT-LIB text: not in the language, too large, or of the wrong sort. The message gives the position."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message if at is None else f"{message} (character {at + 1})")


class FormError(ClaimError):
    """Valid SMT-LIB text, but not in the part of the language that was asked for."""


class CommandError(ClaimError):
    """An SMT-LIB command where none is allowed. `tampering` if it addresses the solver or its output."""

    def __init__(self, message: str, at: int | None = None, *, tampering: bool = False) -> None:
        super().__init__(message, at)
        self.tampering = tampering


class Undefined(Exception):
    """A term without a value in our arithmetic: a division by zero, a quantifier, a number too large."""

    def __init__(self, message: str, *, by_zero: bool = False, quantified: bool = False) -> None:
        super().__init__(message)
        self.by_zero = by_zero
        self.quantified = quantified


class SolverBroke(Exception):
    """A solver failed, or solvers contradict each other: nothing is known about the submission."""


class OutOfMemory(MemoryError):
    """A solver exceeded its memory limit. Its state cannot be trusted: this process must end."""
