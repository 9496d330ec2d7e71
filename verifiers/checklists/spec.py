"""What a text is checked against."""

from __future__ import annotations

from typing import Literal

from verifiers.spec_data import SpecData


class ChecklistSpec(SpecData):
    """Items, hard and soft; the submission is the text."""

    kind: Literal["checklist"] = "checklist"
