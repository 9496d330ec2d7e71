"""What a text is compared with."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from verifiers.contract.spec_data import SpecModel

ABSTAINED = 0.25
"""The score of an abstention that a spec allows."""


class ExactSpec(SpecModel):
    """The answer is this very text, apart from surrounding white space."""

    kind: Literal["exact"] = "exact"
    expected: str = Field(max_length=10_000)
    abstention: str = Field(default="", max_length=200)
    """The words of who does not know. They fail, but with `ABSTAINED` as their score, more than a wrong answer has;
    empty where nobody may abstain."""

    @model_serializer(mode="wrap")
    def _without_what_nobody_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Specs from before there were abstentions have the same content, and so the same digests, as they had."""
        found: dict[str, Any] = dump(self)
        if not self.abstention:
            found.pop("abstention", None)
        return found

    def summary(self) -> str:
        return f"{self.kind}: {self.expected}"
