"""Interface of a model judge: a model that assigns probabilities to a few choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class JudgeError(Exception):
    """The judge gave no grade: it is missing, failed, or returned invalid probabilities."""


class Judge(Protocol):
    def judge(self, prompt: str, choices: Sequence[str]) -> Sequence[float]:
        """Returns the probability of each choice. Choices are short and differ in their first character.

        Deterministic. Raises JudgeError.
        """
