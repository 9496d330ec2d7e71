"""Defines what can go wrong while learning. `hint` is a sentence for the person who reads it.

LearningError           the material does not fit the state: a step out of order, another recipe, a gradient of NaN
└── CheckpointError     a folder on disk is missing, incomplete, changed, or cannot be written
"""

from __future__ import annotations

from runtime.errors import HintedError


class LearningError(HintedError):
    pass


class CheckpointError(LearningError):
    pass


class NotFiniteError(LearningError):
    """Says that a step cannot be learned: its gradient is not finite. The weights are as they were before it."""
