"""Errors about a text that was refused; none concerns the infrastructure.

GrammarError            not in the language, or ambiguous; `str()` is a sentence
├── TooLargeError       within the language, but above the size limits
└── UndefinedError      has no value: a division by zero, 0^0
"""

from __future__ import annotations


class GrammarError(ValueError):
    def __init__(self, message: str, *, position: int = 0) -> None:
        super().__init__(message)
        self.position = position
        """Index of the token at which reading stopped."""


class TooLargeError(GrammarError):
    pass


class UndefinedError(GrammarError):
    pass
