"""Spec of the kind `predicate`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.contract.spec_data import SpecModel


class PredicateSpec(SpecModel):
    """The answer is a value that makes `predicate` true; it is substituted and decided.

    `predicate` is a comparison, or several joined by `and`, over arithmetic: `7*x + 3 == 45`, `n % 7 == 2 and n > 100`.
    """

    kind: Literal["predicate"] = "predicate"
    predicate: str = Field(max_length=2_000)
    variable: str = Field(default="x", pattern=r"^[a-zA-Z]$")
    domain: Literal["integer", "rational", "real", "complex"] = "real"

    def summary(self) -> str:
        return f"{self.predicate}  ({self.variable} is {self.domain})"
