"""Says why a text was refused. All errors are about the text, none about us.

GrammarError            not in the language, or ambiguous; `str()` is a sentence
├── TooLargeError       within the language, but larger than what is computed with
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
