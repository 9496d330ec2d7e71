"""What a submission is checked against. The agent never sees a spec.

A spec is plain data, a discriminated union on `kind`: it can be stored, hashed, put into a bundle and checked again by
somebody else. The submission is always the text of the final answer.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExactSpec(_Spec):
    """The answer is this very text, apart from surrounding white space."""

    kind: Literal["exact"] = "exact"
    expected: str = Field(max_length=10_000)


class IntegerSpec(_Spec):
    """The answer is this integer, written in decimal digits with at most a sign: `42`, `-7`, `+3`; not `42.0`."""

    kind: Literal["integer"] = "integer"
    expected: str = Field(pattern=r"^-?\d{1,2000}$")


class ExpressionSpec(_Spec):
    """The answer is mathematically equal to `expected`: `2*x + 2` for `2(x+1)`, `1/2` for `0.5`."""

    kind: Literal["expression"] = "expression"
    expected: str = Field(max_length=2_000)
    variables: tuple[str, ...] = ()
    """Free symbols that may occur; any other makes the answer fail."""


class PredicateSpec(_Spec):
    """The answer is a value that makes `predicate` true. No known answer is needed: it is substituted and decided.

    `predicate` is a comparison, or several joined by `and`, over arithmetic: `7*x + 3 == 45`, `n % 7 == 2 and n > 100`.
    """

    kind: Literal["predicate"] = "predicate"
    predicate: str = Field(max_length=2_000)
    variable: str = Field(default="x", pattern=r"^[a-zA-Z]$")
    domain: Literal["integer", "rational", "real", "complex"] = "real"


Spec = Annotated[ExactSpec | IntegerSpec | ExpressionSpec | PredicateSpec, Field(discriminator="kind")]
SPEC: TypeAdapter[Spec] = TypeAdapter(Spec)
"""Validates a spec from JSON or from a dictionary."""
