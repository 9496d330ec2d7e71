"""Parsed answers: the tree between reading and comparing.

Expressions are in `verifiers.answers.grammar.nodes`. Invariants: a value is finite, immutable and small (the reader
limits its size); reading computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from verifiers.answers.grammar.nodes import ComparisonNode, Expression

NumberSetName = Literal["N", "N0", "Z", "Q", "R", "C"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, or an expression with symbols."""

    of: Expression


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit: the unit's atoms with integer powers, `(("m", 1), ("s", -2))`, as written."""

    of: Expression
    unit: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class BaseNumber:
    """Digits with their base: `101_2`. Without the base the value would differ."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Infinity:
    sign: Literal[1, -1]


@dataclass(frozen=True, slots=True)
class Tuple:
    """Bracketed, ordered items: a point, a vector, a pair."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    r"""Several solutions separated by commas or `or`, without brackets, in any order. `\pm` makes one, too."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class FiniteSet:
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    low: Expression | Infinity
    high: Expression | Infinity
    closed_low: bool
    closed_high: bool


@dataclass(frozen=True, slots=True)
class NumberSet:
    """The natural (from 1; `N0` from 0), whole, rational, real or complex numbers."""

    name: NumberSetName


@dataclass(frozen=True, slots=True)
class SetOperation:
    operation: Literal["union", "intersection", "difference"]
    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Builder:
    """Values of one symbol: `{x | condition}`, or `x in S`."""

    symbol: str
    within: Value | None
    condition: RelationValue | None


@dataclass(frozen=True, slots=True)
class Images:
    """Values of expressions in one symbol over whole numbers: `{2k + 1 : k in Z}`, `x = 3 (mod 7)`."""

    of: tuple[Expression, ...]
    symbol: str
    within: NumberSet
    """Range of the symbol: N, N0 or Z."""
    name: str | None = None
    """Unknown that the images describe: x of `x = k pi`."""


@dataclass(frozen=True, slots=True)
class RelationValue:
    """Equations and inequalities, joined by `and` or `or`: `x = 5`, `1 < x <= 3`, `x < 0 or x > 2`."""

    joined: Literal["and", "or"]
    parts: tuple[ComparisonNode | RelationValue, ...]


@dataclass(frozen=True, slots=True)
class Named:
    r"""A named value that is not a number: `A = \{1, 2\}`, `(x, y) = (1, 2)`, `d = 5 cm`.

    The name is a Scalar (a symbol, or a call such as `f(x)`) or a Tuple of such. Equations of numbers are Relations.
    """

    name: Scalar | Tuple
    value: Value


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of equal length; a column is a matrix, too."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Several numbers of which only the proportions count: `3:2`, `1:2:3`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Values with their conditions; None is the condition of the remaining case."""

    branches: tuple[tuple[Expression, Value | None], ...]


@dataclass(frozen=True, slots=True)
class Approximated:
    r"""An exact value with a decimal that must agree with it: `5/36 \approx 0.139`."""

    of: Value
    exact: Expression
    near: Expression


@dataclass(frozen=True, slots=True)
class Choice:
    """Label of one of several choices: one upper-case letter."""

    label: str
    marked: bool = field(default=False, compare=False)
    r"""True if brackets, a word or `\text` mark it as a label: `(E)` is unambiguous, `E` may be a symbol."""


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """A text answer in lower case with single blanks: `no solution`, `true`, a name, a date."""

    text: str
    written: str = field(default="", compare=False)
    """The text in its own case, which matters in `CO` and `pH`; empty if it does not."""


@dataclass(frozen=True, slots=True)
class ChemicalFormula:
    """A chemical formula as written, with counts and charge in plain characters: `CaCO3`, `SO4^2-`."""

    written: str


Value = (
    Scalar
    | Quantity
    | BaseNumber
    | Infinity
    | Tuple
    | Listing
    | FiniteSet
    | Interval
    | NumberSet
    | SetOperation
    | Builder
    | Images
    | RelationValue
    | Named
    | Matrix
    | Ratio
    | Piecewise
    | Approximated
    | Choice
    | TextAnswer
    | ChemicalFormula
)
