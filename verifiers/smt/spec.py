"""What a claim in the language of SMT-LIB is checked against."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.spec_data import SpecData


class SmtSpec(SpecData):
    """Sorts, assumptions and a goal belong to the spec; a submission supplies terms, never commands."""

    kind: Literal["smt"] = "smt"
    claim: str = Field(max_length=200_000)
    """SMT-LIB 2.6: declarations, definitions and assertions of the allowed commands only."""
    question: Literal["entails", "model", "optimum", "equivalent"] = "entails"
