"""What a text is compared with."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecModel


class ExactSpec(SpecModel):
    """The answer is this very text, apart from surrounding white space."""

    kind: Literal["exact"] = "exact"
    expected: str = Field(max_length=10_000)

    def summary(self) -> str:
        return f"{self.kind}: {self.expected}"
