"""What is wrong with a job that somebody asks for."""

from __future__ import annotations


class RequestError(Exception):
    """What was asked for cannot be understood; `hint` says what to write instead."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
