"""What a program is checked against."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.spec_data import SpecData


class ProgramSpec(SpecData):
    """Tests, visible and hidden; the submission is the source. Expected values never enter its sandbox."""

    kind: Literal["program"] = "program"
    language: str = Field(default="python", max_length=40)
