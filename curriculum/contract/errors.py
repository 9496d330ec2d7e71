"""Errors of task requests: always the caller's mistake, with a hint.

CurriculumError             carries `hint`, a sentence for the person who reads it
├── SeedError               a seed of another split, or an invalid seed
├── UnknownTasksetError     unknown taskset name
├── LevelError              the taskset does not have that level
└── ExhaustedError          fewer different questions exist than were requested
"""

from __future__ import annotations

from common.errors import HintedError


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
