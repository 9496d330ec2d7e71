"""Whether an answer says the same as the expected one: proved equal, proved different, or open.

Values of the same kind are compared as that kind; where two kinds say the same thing (an interval and an inequality, a
list of solutions and a set, `x = 5` and 5), the expected one says how the answer is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from verifiers.answers.compare_relations import compare_relations, solved
from verifiers.answers.compare_sets import compare_sets, decided, is_set, matched, only_symbol
from verifiers.answers.equality import Finding, Truth
from verifiers.answers.grammar.nodes import Expression, Negation, Number, Quotient, Symbol
from verifiers.answers.images import as_images, compare_images
from verifiers.answers.meeting import end_of, met, open_interval
from verifiers.answers.piecewise import compare_piecewise
from verifiers.answers.proportions import compare_ratios
from verifiers.answers.scalars import Scalars
from verifiers.answers.tolerances import Tolerance
from verifiers.answers.units import Dimension, UnitError, in_unit, measure, named
from verifiers.answers.values import (
    BaseNumber,
    Builder,
    Choice,
    FiniteSet,
    Infinity,
    Interval,
    Listing,
    Matrix,
    Named,
    Piecewise,
    Quantity,
    Ratio,
    Relation,
    Scalar,
    Tuple,
    Value,
    Words,
)
from verifiers.answers.words import same_words

Units = Literal["as_expected", "optional", "ignored"]


def kind(value: Value) -> str:
    match value:
        case Scalar():
            return "a number or an expression"
        case Quantity():
            return "a quantity with a unit"
        case Infinity():
            return "infinity"
        case Tuple():
            return "a list in brackets"
        case Listing():
            return "several answers"
        case Relation():
            return "an equation or an inequality"
        case Matrix():
            return "a matrix"
        case Choice():
            return "a choice"
        case Words():
            return "words"
        case BaseNumber():
            return "a number with its base"
        case Ratio():
            return "a ratio"
        case Piecewise():
            return "values by cases"
        case _:
            return "a set"


@dataclass(frozen=True)
class Comparer:
    scalars: Scalars
    units: Units = "as_expected"
    any_order: bool = False
    tolerance: Tolerance | None = None

    def compare(self, answer: Value, expected: Value) -> Finding:
        """Raises GrammarError where a part of either has no value."""
        answer, expected = met(answer, expected, self.scalars)
        if isinstance(answer, Named) or isinstance(expected, Named):
            return self._both_named(answer, expected)
        first, second = as_images(answer), as_images(expected)
        if first is not None and second is not None:
            return compare_images(first, second, self.scalars)
        match answer, expected:
            case (Scalar() | Quantity() | BaseNumber(), Scalar() | Quantity() | BaseNumber()):
                return self._numbers(answer, expected)
            case Infinity(), Infinity():
                same = answer.sign == expected.sign
                return Finding(Truth.EQUAL, "the same infinity") if same else _different("the other infinity")
            case Choice(), Choice():
                same = answer.label == expected.label
                return Finding(Truth.EQUAL, "the same choice") if same else _different("another choice")
            case Words(), Words():
                same = same_words(answer.text, expected.text)
                return Finding(Truth.EQUAL, "the same words") if same else _different("other words")
            case (Choice(label), Scalar(Symbol(name))) | (Scalar(Symbol(name)), Choice(label)):
                return Finding(Truth.EQUAL, "the same letter") if label == name else _different("another letter")
            case Matrix(), Matrix():
                return self._matrices(answer, expected)
            case Tuple(), Tuple():
                return self._tuples(answer.items, expected.items)
            case (Matrix(), Tuple()) | (Tuple(), Matrix()):
                return self._vector(answer, expected)
            case (Ratio((above, below)), Scalar()):
                return self._numbers(Scalar(Quotient(above, below)), expected)
            case (Scalar(), Ratio((above, below))):
                return self._numbers(answer, Scalar(Quotient(above, below)))
            case Ratio(), Ratio():
                return compare_ratios(answer, expected, self._numbers, self.scalars)
            case (Piecewise(), Piecewise()):
                return compare_piecewise(answer, expected, self.scalars)
            case (Piecewise(), Scalar(of)):
                return compare_piecewise(answer, Piecewise(((of, None),)), self.scalars)
            case (Scalar(of), Piecewise()):
                return compare_piecewise(Piecewise(((of, None),)), expected, self.scalars)
            case (Listing(), Listing()):
                return matched(answer.items, expected.items, self.compare, repeats=True)
            case Relation(), Relation():
                return self._relations(answer, expected)
        return self._mixed(answer, expected)

    def _both_named(self, answer: Value, expected: Value) -> Finding:
        if not (isinstance(answer, Named) and isinstance(expected, Named)):
            return self._kinds(answer, expected)
        names = self.compare(answer.name, expected.name)
        if names.truth is not Truth.EQUAL:
            return Finding(names.truth, "another name")
        return self.compare(answer.value, expected.value)

    def _relations(self, answer: Relation, expected: Relation) -> Finding:
        close = self._close_relations(answer, expected)
        return close or compare_relations(answer, expected, self.compare, self.scalars)

    def _close_relations(self, answer: Relation, expected: Relation) -> Finding | None:
        """Solved unknowns within the tolerance."""
        if self.tolerance is None:
            return None
        first, second = solved(answer), solved(expected)
        if first is None or second is None or first.keys() != second.keys():
            return None
        pairs = [(Scalar(first[name]), Scalar(second[name])) for name in second]
        found = decided((self._numbers(a, b) for a, b in pairs), "each unknown within the tolerance")
        return found if found.truth is Truth.EQUAL else None

    def _mixed(self, answer: Value, expected: Value) -> Finding:
        names = claimed(answer), claimed(expected)
        if names[0] != names[1] and None not in names:
            return _different("about another unknown")
        match answer, expected:
            case (Words(text), other) | (other, Words(text)) if is_set(other):
                if same_words(text, "no solution"):
                    return compare_sets(FiniteSet(()), other, self.compare, self.scalars)
            case (Listing(first), FiniteSet(second)) | (FiniteSet(first), Listing(second)):
                return matched(first, second, self.compare, repeats=False)
            case (Tuple((low, high)), other) if is_set(other) and not isinstance(other, FiniteSet):
                read = open_interval(low, high, self.scalars)
                if read is not None:
                    return compare_sets(read, expected, self.compare, self.scalars)
            case (Interval(), Tuple(items)) if len(items) == 2 and not (answer.closed_low or answer.closed_high):
                return self._tuples((end_of(answer.low), end_of(answer.high)), items)
        if is_set(answer) and is_set(expected):
            return compare_sets(answer, expected, self.compare, self.scalars)
        if (is_set(answer) or is_set(expected)) and (only_symbol(answer) or only_symbol(expected)):
            return compare_sets(answer, expected, self.compare, self.scalars)
        return self._kinds(answer, expected)

    def _kinds(self, answer: Value, expected: Value) -> Finding:
        return _different(f"{kind(answer)}, where {kind(expected)} was expected")

    # -- numbers

    def _numbers(self, answer: Value, expected: Value) -> Finding:
        try:
            first, second = self._measured(answer), self._measured(expected)
        except UnitError as error:
            if isinstance(answer, Quantity) and isinstance(expected, Quantity) and answer.unit == expected.unit:
                return self._close(answer.of, expected.of)
            return Finding(Truth.OPEN, str(error))
        if self.units == "ignored":
            return self._close(_number(answer), _number(expected))
        bare = not isinstance(answer, Quantity) and isinstance(expected, Quantity)
        if self.units == "optional" and bare:
            return self._close(_number(answer), _number(expected))
        if first[1] != second[1]:
            return _different(f"{named(first[1])}, where {named(second[1])} was expected")
        if isinstance(answer, Quantity) and isinstance(expected, Quantity) and answer.unit == expected.unit:
            return self._close(answer.of, expected.of)
        if self.tolerance is None or not isinstance(expected, Quantity):
            return self._close(first[0], second[0])
        found = self.scalars.compare(first[0], second[0])
        if found.truth is Truth.EQUAL:
            return found
        # A tolerance is in the unit that was expected.
        return self.tolerance.judge(in_unit(first[0], expected.unit), expected.of, self.scalars) or found

    def _measured(self, value: Value) -> tuple[Expression, Dimension]:
        if isinstance(value, Quantity):
            found = measure(value.of, value.unit)
            return found.of, found.dimension
        return _number(value), ()

    def _close(self, answer: Expression, expected: Expression) -> Finding:
        found = self.scalars.compare(answer, expected)
        if found.truth is Truth.EQUAL or self.tolerance is None:
            return found
        return self.tolerance.judge(answer, expected, self.scalars) or found

    # -- what has parts

    def _tuples(self, answer: tuple[Value, ...], expected: tuple[Value, ...]) -> Finding:
        if len(answer) != len(expected):
            return _different(f"{len(answer)} entries where {len(expected)} were expected")
        if self.any_order:
            return matched(answer, expected, self.compare, repeats=True)
        return decided((self.compare(a, b) for a, b in zip(answer, expected, strict=True)), "equal entry by entry")

    def _matrices(self, answer: Matrix, expected: Matrix) -> Finding:
        shapes = [(len(matrix.rows), len(matrix.rows[0]) if matrix.rows else 0) for matrix in (answer, expected)]
        if shapes[0] != shapes[1]:
            return _different(f"{shapes[0][0]} x {shapes[0][1]}, where {shapes[1][0]} x {shapes[1][1]} was expected")
        entries = [[Scalar(entry) for row in matrix.rows for entry in row] for matrix in (answer, expected)]
        return decided((self._numbers(a, b) for a, b in zip(*entries, strict=True)), "equal entry by entry")

    def _vector(self, answer: Value, expected: Value) -> Finding:
        """A list in brackets and a matrix of one column or one row."""
        entries = [_entries(value) for value in (answer, expected)]
        if entries[0] is None or entries[1] is None:
            return self._kinds(answer, expected)
        return self._tuples(entries[0], entries[1])


def _entries(value: Value) -> tuple[Value, ...] | None:
    match value:
        case Tuple(items):
            return items
        case Matrix((row,)):
            return tuple(map(Scalar, row))
        case Matrix(rows) if all(len(row) == 1 for row in rows):
            return tuple(Scalar(row[0]) for row in rows)
        case _:
            return None


def _number(value: Value) -> Expression:
    match value:
        case Scalar(of) | Quantity(of, _):
            return of
        case BaseNumber(digits, base):
            return based(digits, base)
        case _:
            raise TypeError(f"{type(value).__name__} is not a number")


def based(digits: str, base: int) -> Expression:
    """The value of digits with an optional sign and a point. Python's `int` reads the digits."""
    text = digits.strip()
    negative = text.startswith("-")
    whole, _, broken = text.lstrip("+-").partition(".")
    value = Fraction(int(whole + broken or "0", base), base ** len(broken))
    return Negation(Number(value)) if negative else Number(value)


def claimed(value: Value) -> str | None:
    """The unknown that a value speaks about: x of `x > 2` and of `x \\in S`; a set names none."""
    return None if isinstance(value, Builder) and value.condition is not None else only_symbol(value)


def _different(because: str) -> Finding:
    return Finding(Truth.DIFFERENT, because)
