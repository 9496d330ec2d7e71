"""Spec of the kind `exact`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from verifiers.contract.spec_data import SpecModel

ABSTAINED = 0.25
"""Score of an abstention that a spec allows."""


class ExactSpec(SpecModel):
    """The answer must equal this text, apart from surrounding white space."""

    kind: Literal["exact"] = "exact"
    expected: str = Field(max_length=10_000)
    abstention: str = Field(default="", max_length=200)
    """Text of an abstention; empty if abstaining is not allowed. An abstention fails, but scores `ABSTAINED`, which is
    more than a wrong answer."""

    @model_serializer(mode="wrap")
    def _without_what_nobody_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omits an empty `abstention`, so that older specs keep their content and digests."""
        found: dict[str, Any] = dump(self)
        if not self.abstention:
            found.pop("abstention", None)
        return found

    def summary(self) -> str:
        return f"{self.kind}: {self.expected}"
