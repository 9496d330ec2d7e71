"""Defines what an answer says, once it has been read: the tree between reading and comparing.

Expressions are `verifiers.answers.grammar.nodes`. What always holds: a value is finite, immutable and small (its reader
has counted); reading computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from verifiers.answers.grammar.nodes import ComparisonNode, Expression

NumberSetName = Literal["N", "N0", "Z", "Q", "R", "C"]


@dataclass(frozen=True, slots=True)
class Scalar:
    """Is a number or an expression with symbols."""

    of: Expression


@dataclass(frozen=True, slots=True)
class Quantity:
    """Is a number with a unit: the product of the unit's atoms to whole powers, `(("m", 1), ("s", -2))`, as written."""

    of: Expression
    unit: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class BaseNumber:
    """Is digits that name their base: `101_2`. The value without its base would be another one."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Infinity:
    sign: Literal[1, -1]


@dataclass(frozen=True, slots=True)
class Tuple:
    """Is in brackets, so in order: a point, a vector, a pair."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Is several solutions between commas or `or`, without brackets, in any order. `\\pm` makes one, too."""

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
    """Is all natural (from 1; `N0` from 0), whole, rational, real or complex numbers."""

    name: NumberSetName


@dataclass(frozen=True, slots=True)
class SetOperation:
    operation: Literal["union", "intersection", "difference"]
    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Builder:
    """Describes the values of one symbol: `{x | condition}`, or `x in S`."""

    symbol: str
    within: Value | None
    condition: RelationValue | None


@dataclass(frozen=True, slots=True)
class Images:
    """Holds what expressions in one symbol give for whole numbers: `{2k + 1 : k in Z}`, `x = 3 (mod 7)`."""

    of: tuple[Expression, ...]
    symbol: str
    within: NumberSet
    """N, N0 or Z."""
    name: str | None = None
    """The unknown that it is said about: x of `x = k pi`."""


@dataclass(frozen=True, slots=True)
class RelationValue:
    """Holds equations and inequalities, joined by `and` or `or`: `x = 5`, `1 < x <= 3`, `x < 0 or x > 2`."""

    joined: Literal["and", "or"]
    parts: tuple[ComparisonNode | RelationValue, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """Is a value with its name, where it is no number: `A = \\{1, 2\\}`, `(x, y) = (1, 2)`, `d = 5 cm`.

    The name is a Scalar (a symbol, or a call such as `f(x)`) or a Tuple of such. Equations of numbers are Relations."""

    name: Scalar | Tuple
    value: Value


@dataclass(frozen=True, slots=True)
class Matrix:
    """Has rows of the same length; a column is a matrix, too."""

    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Is several numbers of which only the proportions count: `3:2`, `1:2:3`."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Holds values, each with the condition under which it holds; None for whatever the others leave."""

    branches: tuple[tuple[Expression, Value | None], ...]


@dataclass(frozen=True, slots=True)
class Approximated:
    """Is an exact value with a decimal that has to agree with it: `5/36 \\approx 0.139`."""

    of: Value
    exact: Expression
    near: Expression


@dataclass(frozen=True, slots=True)
class Choice:
    """Is the label of one of several choices: one letter, upper case."""

    label: str
    marked: bool = field(default=False, compare=False)
    """Whether brackets, a word or `\\text` say that it is a label: `(E)` is nothing else, `E` may be a symbol."""


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """Is a text answer, folded to lower case and single blanks: `no solution`, `true`, a name, a date."""

    text: str
    written: str = field(default="", compare=False)
    """Likewise in its own case, which says something in `CO` and `pH`; empty where it does not."""


@dataclass(frozen=True, slots=True)
class ChemicalFormula:
    """Is a chemical formula as it is written, its counts and its charge in plain signs: `CaCO3`, `SO4^2-`."""

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
