"""What a proof is checked against."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.spec_data import SpecData


class LeanSpec(SpecData):
    """A trusted statement, compiled apart; the submission is a Lean file that proves it."""

    kind: Literal["lean"] = "lean"
    statement: str = Field(max_length=200_000)
