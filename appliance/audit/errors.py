"""What can keep an entry from being logged. What cannot be logged does not happen."""

from __future__ import annotations


class AuditError(Exception):
    """The audit log cannot be used; the message says why and `hint` what to do."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class AuditBroken(AuditError):
    """It does not hold: somebody changed it. `number` is the first bad entry."""

    def __init__(self, message: str, number: int, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.number = number
