"""What can go wrong while learning, and who has to act. `hint` is a sentence for the person who reads it.

LearningError           the material does not fit the state: a step out of order, another recipe, a gradient of NaN
└── CheckpointError     a folder on disk is missing, incomplete, changed, or cannot be written
"""

from __future__ import annotations


class LearningError(Exception):
    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class CheckpointError(LearningError):
    pass
