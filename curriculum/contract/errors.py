"""Defines what can go wrong when a task is asked for: always the caller's mistake, with what to do about it.

CurriculumError             carries `hint`, a sentence for the person who reads it
├── SeedError               a seed of another split, or no seed at all
├── UnknownTasksetError     no taskset of that name
├── LevelError              the taskset has no such level
└── ExhaustedError          fewer different questions exist than were asked for
"""

from __future__ import annotations

from runtime.errors import HintedError


class CurriculumError(HintedError):
    exit_code = 2


class SeedError(CurriculumError):
    pass


class UnknownTasksetError(CurriculumError):
    pass


class LevelError(CurriculumError):
    pass


class ExhaustedError(CurriculumError):
    pass
