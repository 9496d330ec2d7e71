"""Tolerances for decimal answers, decided by interval enclosures, never by floating point.

A tolerance is for numbers. One that would accept zero, or the number with the opposite sign, is refused as a bad spec.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.algebra.equality import EqualityFinding, equal
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar.nodes import ONE, Expression, FunctionCall, Number, Product, minus, symbols
from verifiers.contract.errors import SpecError

WRITTEN = re.compile(r"(?:[0-9]{1,20}(?:\.[0-9]{1,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?|[0-9]{1,20}/[0-9]{1,20}")
MOST_RELATIVE = Fraction(1, 10)


def number(text: str, name: str) -> Fraction | None:
    """Parses a tolerance; None for an empty or zero one. Raises SpecError."""
    if not text.strip():
        return None
    if not WRITTEN.fullmatch(text.strip()):
        raise SpecError(
            f"the {name} tolerance is not a number", hint="Write it exactly: 0.001, 1/1000 or 1e-3; not nan or inf."
        )
    try:
        value = Fraction(text.strip())
    except ZeroDivisionError as error:
        raise SpecError(f"the {name} tolerance divides by zero", hint="Write it as 0.001 or 1/1000.") from error
    if value == 0:
        return None
    if name == "relative" and value > MOST_RELATIVE:
        raise SpecError("a relative tolerance of more than 1/10 accepts too much", hint="Use 1/100 or less.")
    return value


@dataclass(frozen=True)
class Tolerance:
    absolute: Fraction | None
    relative: Fraction | None

    def judge(self, answer: Expression, expected: Expression, scalars: Scalars) -> EqualityFinding | None:
        """Returns equality if two constants agree within the tolerance; None otherwise, or if either has symbols."""
        if symbols(answer, expected):
            return None
        apart = FunctionCall("abs", (minus(answer, expected),))
        for name, bound, unit in (
            ("absolute", self.absolute, ONE),
            ("relative", self.relative, FunctionCall("abs", (expected,))),
        ):
            order = None if bound is None else scalars.order(apart, Product((Number(bound), unit)))
            if order is not None and order <= 0:
                return equal(f"within the {name} tolerance")
        return None

    def check(self, expected: Expression, scalars: Scalars) -> None:
        """Raises SpecError if the tolerance would accept nearly anything of that size."""
        if self.absolute is None or symbols(expected):
            return
        size = FunctionCall("abs", (expected,))
        most = ONE if scalars.sign(expected) == 0 else Product((Number(Fraction(1, 2)), size))
        order = scalars.order(Number(self.absolute), most)
        if order is None or order > 0:
            raise SpecError(
                "the absolute tolerance is more than half of the expected value: it accepts too much",
                hint="Choose one that only forgives rounding.",
            )
