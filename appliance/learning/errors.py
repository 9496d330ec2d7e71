"""Errors of learning. `hint` is a sentence for the user.

LearningError           input does not fit the state: a step out of order, another recipe, a NaN gradient
└── CheckpointError     a folder on disk is missing, incomplete, changed, or not writable
"""

from __future__ import annotations

from common.errors import HintedError


class LearningError(HintedError):
    pass


class CheckpointError(LearningError):
    pass


class NotFiniteError(LearningError):
    """A step's gradient is not finite. The weights are as before the step."""
