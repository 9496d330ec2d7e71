"""What can go wrong when a task is asked for: always the caller's mistake, and always with what to do about it.

CurriculumError             carries `hint`, a sentence for the person who reads it
├── SeedError               a seed of another split, or no seed at all
├── UnknownFamilyError      no family of that name
├── LevelError              the family has no such level
└── ExhaustedError          fewer different questions exist than were asked for
"""

from __future__ import annotations


class CurriculumError(Exception):
    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class SeedError(CurriculumError):
    pass


class UnknownFamilyError(CurriculumError):
    pass


class LevelError(CurriculumError):
    pass


class ExhaustedError(CurriculumError):
    pass
