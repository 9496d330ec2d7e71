"""The seam to what grades a soft item: anything that gives each of a few choices a probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class JudgeError(Exception):
    """The judge gave no grade: it is missing, broke, or its answer is no probabilities."""


class Judge(Protocol):
    def judge(self, prompt: str, choices: Sequence[str]) -> Sequence[float]:
        """How likely it is to answer each of the choices, which are short and differ in their first character.

        Deterministic. Raises JudgeError.
        """
