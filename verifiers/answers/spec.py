"""What an answer is checked against. The submission is always the text of the final answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from verifiers.spec_data import SpecData


class ExactSpec(SpecData):
    """The answer is this very text, apart from surrounding white space."""

    kind: Literal["exact"] = "exact"
    expected: str = Field(max_length=10_000)


class IntegerSpec(SpecData):
    """The answer is this integer, written in decimal digits with at most a sign: `42`, `-7`, `+3`; not `42.0`."""

    kind: Literal["integer"] = "integer"
    expected: str = Field(pattern=r"^-?[0-9]+$", max_length=2_001)


class ExpressionSpec(SpecData):
    """The answer is mathematically equal to `expected`: `2*x + 2` for `2(x+1)`, `1/2` for `0.5`."""

    kind: Literal["expression"] = "expression"
    expected: str = Field(max_length=2_000)
    variables: tuple[str, ...] = ()
    """Free symbols that may occur; any other makes the answer fail."""


class PredicateSpec(SpecData):
    """The answer is a value that makes `predicate` true. No known answer is needed: it is substituted and decided.

    `predicate` is a comparison, or several joined by `and`, over arithmetic: `7*x + 3 == 45`, `n % 7 == 2 and n > 100`.
    """

    kind: Literal["predicate"] = "predicate"
    predicate: str = Field(max_length=2_000)
    variable: str = Field(default="x", pattern=r"^[a-zA-Z]$")
    domain: Literal["integer", "rational", "real", "complex"] = "real"


class AnswerSpec(SpecData):
    """The answer says the same as `expected`, whatever kind of thing that is: a number, an expression, a set, an
    interval, a tuple, an equation or inequality, a matrix, a quantity with its unit, a text choice. Plain mathematics
    or LaTeX on both sides."""

    kind: Literal["answer"] = "answer"
    expected: str = Field(max_length=10_000)
    final: Literal["whole", "boxed"] = "whole"
    """`whole`: the submission is the answer. `boxed`: it has exactly one `\\boxed{...}`, and that holds it."""
    form: Literal["equal", "worked_out", "simplified", "same"] = "worked_out"
    """`equal`: any form. `worked_out`: nothing is left to compute that the expected answer has computed. `simplified`:
    also fractions in lowest terms, radicals denested, like terms collected. `same`: written alike, apart from notation
    (`\\frac{1}{2}` is `1/2`, and `0.5` is neither)."""
    absolute: str = Field(default="", max_length=64)
    """Decimals this close are accepted: a rational number, written exactly. Empty: none."""
    relative: str = Field(default="", max_length=64)
    """Likewise, as a share of the expected value."""
    order: Literal["as_written", "any"] = "as_written"
    """Whether a list in brackets may come in another order. A list without brackets, and a set, always may."""
    units: Literal["as_expected", "optional", "ignored"] = "as_expected"
    """`as_expected`: a unit of the same dimension where the expected answer has one, and none where it has none;
    converted. `optional`: the unit may be missing. `ignored`: a unit says nothing."""
    variables: tuple[str, ...] | None = None
    """Symbols that may occur; None: those of the expected answer."""
    domain: Literal["real", "complex", "positive", "integer"] = "real"
    """What symbols stand for: sqrt(x^2) is |x| for real ones, and x for positive ones only."""
