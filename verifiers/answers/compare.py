"""Compares an answer with the expected one: proved equal, proved different, or undecided.

Values of the same kind are compared as that kind. If two kinds say the same thing (an interval and an inequality, a
list of solutions and a set, `x = 5` and 5), the expected one determines how the answer is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from verifiers.answers.algebra.equality import EqualityFinding, Truth, decided, different, equal, undecided
from verifiers.answers.algebra.rewriting import has_binder
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.bound_names import other_constants
from verifiers.answers.coerce import coerced, open_interval
from verifiers.answers.compare_relations import compare_relations
from verifiers.answers.compare_sets import compare_sets, is_set, matched_members, only_symbol
from verifiers.answers.grammar import values as v
from verifiers.answers.grammar.nodes import ZERO, Expression, Negation, Number, Product, Quotient, Symbol, symbols
from verifiers.answers.grammar.units import UnitError, UnitMeasure, in_unit, measure, named, rates_differ
from verifiers.answers.grammar.vocabulary import SHORT_WORDS
from verifiers.answers.matching import matched
from verifiers.answers.piecewise import compare_piecewise, compare_signs, has_sign
from verifiers.answers.residue_classes import as_images, compare_images
from verifiers.answers.tolerance import Tolerance

SAME: tuple[frozenset[str], ...] = (
    frozenset(
        {"no solution", "no solutions", "there is no solution", "there are no solutions", "has no solution"}
        | {"no such solution", "empty set", "the empty set", "null set"}
    ),
    frozenset({"no real solution", "no real solutions", "there are no real solutions", "there is no real solution"}),
    frozenset({"does not exist", "dne", "doesn't exist", "it does not exist"}),
    frozenset({"none", "there are none", "there is none", "none exist"}),
    frozenset({"true", "t"}),
    frozenset({"converges", "convergent", "it converges", "is convergent", "the series converges"}),
    frozenset({"diverges", "divergent", "it diverges", "is divergent", "the series diverges"}),
    frozenset({"false", "f"}),
    frozenset({"undefined", "not defined", "is undefined"}),
    frozenset({"infinitely many", "infinitely many solutions", "infinite solutions", "infinite number of solutions"}),
)
ARTICLE = re.compile(r"^(?:the|a|an) (?=\S)", re.IGNORECASE)
BLANKS = re.compile(r"\s+")


LETTERS = re.compile(r"[^\W\d_]+")
SYMBOL = re.compile(r"(?=.*[a-z])(?:[A-Z][a-z]?){2,}|[a-z]+[A-Z].*")
"""Words with inner capitals: `NaCl`, `pH`."""
PAIRED = re.compile(r"(?:(.)\1)+", re.IGNORECASE)
"""Alleles: `Aa`, `BB`, `AaBb`."""


def same_case(first: str, second: str) -> bool:
    """True if two texts of the same words agree in the capital letters of those words that look like symbols. A word of
    one or two letters is a symbol, unless it is an English word not in capitals: `Co` is not `CO`, but `On` is `on`;
    `no` and `ok` are words in capitals, too."""
    pairs = list(zip(*(LETTERS.findall(trimmed(text)) for text in (first, second)), strict=False))
    return all(one == other or not (_is_symbol(one) or _is_symbol(other)) for one, other in pairs)


def _is_symbol(word: str) -> bool:
    short = len(word) < 3 and (
        len(word) == 1 or word.lower() not in SHORT_WORDS or (word.isupper() and word not in ("NO", "OK"))
    )
    return bool(short or SYMBOL.fullmatch(word) or PAIRED.fullmatch(word))


def trimmed(text: str) -> str:
    """Returns a text with single blanks, without a leading article, quotes and a final full stop."""
    return ARTICLE.sub("", BLANKS.sub(" ", text).strip().strip("\"'").rstrip(".").strip())


def same_words(first: str, second: str) -> bool:
    left, right = trimmed(first.lower()), trimmed(second.lower())
    if left == right:
        return bool(left)
    return any(left in same and right in same for same in SAME)


Units = Literal["as_expected", "optional", "ignored"]


KINDS: dict[type, str] = {
    v.Scalar: "a number or an expression",
    v.Quantity: "a quantity with a unit",
    v.Infinity: "infinity",
    v.Tuple: "a list in brackets",
    v.Listing: "several answers",
    v.RelationValue: "an equation or an inequality",
    v.Matrix: "a matrix",
    v.Choice: "a choice",
    v.TextAnswer: "words",
    v.ChemicalFormula: "a chemical formula",
    v.BaseNumber: "a number with its base",
    v.Ratio: "a ratio",
    v.Piecewise: "values by cases",
}


@dataclass(frozen=True)
class Comparer:
    scalars: Scalars
    units: Units = "as_expected"
    any_order: bool = False
    tolerance: Tolerance | None = None

    @property
    def exact(self) -> Comparer:
        """The same comparison without a tolerance."""
        return replace(self, tolerance=None)

    def compare(self, answer: v.Value, expected: v.Value) -> EqualityFinding:
        """Compares an answer of any kind with the expected one. Raises GrammarError if a part has no value."""
        if isinstance(answer, v.Scalar) and isinstance(expected, v.Scalar):
            return self._close(answer.of, expected.of)
        answer, expected = coerced(answer, expected, self.scalars)
        if isinstance(answer, v.Named) or isinstance(expected, v.Named):
            return self._both_named(answer, expected)
        first, second = as_images(answer), as_images(expected)
        if first is not None and second is not None:
            return compare_images(first, second, self.scalars)
        match answer, expected:
            case (v.Scalar() | v.Quantity() | v.BaseNumber(), v.Scalar() | v.Quantity() | v.BaseNumber()):
                return self._numbers(answer, expected)
            case v.Infinity(), v.Infinity():
                return equal("the same infinity") if answer == expected else different("the opposite infinity")
            case v.Choice(), v.Choice():
                return equal("the same choice") if answer == expected else different("a different choice")
            case v.TextAnswer(text, written), v.TextAnswer(other, wanted):
                same = same_words(text, other) and same_case(written, wanted)
                return equal("the same words") if same else different("different words or capitals")
            case (v.Choice(label), v.Scalar(Symbol(name))) | (v.Scalar(Symbol(name)), v.Choice(label)):
                return equal("the same letter") if label == name else different("a different letter")
            case v.ChemicalFormula(), v.ChemicalFormula():
                return equal("the same formula") if answer == expected else different("a different formula")
            case v.Matrix(), v.Matrix():
                return self._matrices(answer, expected)
            case v.Tuple(), v.Tuple():
                return self._tuples(answer.items, expected.items)
            case (v.Matrix(), v.Tuple()) | (v.Tuple(), v.Matrix()):
                return self._vector(answer, expected)
            case (v.Ratio(parts), v.Scalar()) if len(parts) == 2:
                return self._numbers(v.Scalar(Quotient(*parts)), expected)
            case (v.Scalar(), v.Ratio(parts)) if len(parts) == 2:
                return self._numbers(answer, v.Scalar(Quotient(*parts)))
            case v.Ratio(), v.Ratio():
                return self._ratios(answer.items, expected.items)
            case (v.Piecewise() | v.Scalar(), v.Piecewise() | v.Scalar()):
                return compare_piecewise(_by_cases(answer), _by_cases(expected), self.scalars)
            case v.Listing(), v.Listing():
                return matched(answer.items, expected.items, self.compare, repeats=True)
            case v.RelationValue(), v.RelationValue():
                found = compare_relations(answer, expected, self)
                others = other_constants(expected, answer) if found.truth is Truth.DIFFERENT else ()
                if any(compare_relations(one, expected, self).truth is Truth.EQUAL for one in others):
                    return undecided("the same with other letters for constants")
                return found
        return self._mixed(answer, expected)

    def _both_named(self, answer: v.Value, expected: v.Value) -> EqualityFinding:
        if not (isinstance(answer, v.Named) and isinstance(expected, v.Named)):
            if isinstance(answer, v.Tuple) or isinstance(expected, v.Tuple):
                return undecided("the order of its names is open")
            return _other_kind(answer, expected)
        names = self.compare(answer.name, expected.name)
        if names.truth is not Truth.EQUAL:
            return EqualityFinding(names.truth, "a different name")
        return self.compare(answer.value, expected.value)

    def _mixed(self, answer: v.Value, expected: v.Value) -> EqualityFinding:
        names = claimed(answer), claimed(expected)
        if names[0] != names[1] and None not in names:
            return different("about a different unknown")
        match answer, expected:
            case (v.TextAnswer(text), other) | (other, v.TextAnswer(text)) if is_set(other):
                if same_words(text, "no solution"):
                    return compare_sets(v.FiniteSet(()), other, self)
            case (v.Listing(parts), v.FiniteSet(others)) | (v.FiniteSet(parts), v.Listing(others)):
                return matched_members(parts, others, self)
            case (v.Tuple((low, high)), other) if is_set(other) and not isinstance(other, v.FiniteSet):
                read = open_interval(low, high, self.scalars)
                if read is not None:
                    return compare_sets(read, expected, self)
            case (_, v.Tuple((low, high))) if open_interval(low, high, self.scalars) is not None and (
                is_set(answer) or isinstance(answer, v.RelationValue)
            ):
                return undecided("an interval, and two numbers in brackets that are a point or an interval")
        sets = is_set(answer), is_set(expected)
        if all(sets) or (any(sets) and (only_symbol(answer) or only_symbol(expected))):
            return compare_sets(answer, expected, self)
        return _other_kind(answer, expected)

    # -- numbers

    def _numbers(self, answer: v.Value, expected: v.Value) -> EqualityFinding:
        if isinstance(answer, v.Quantity) and isinstance(expected, v.Quantity):
            if answer.unit == expected.unit:
                return self._close(answer.of, expected.of)
            if rates_differ(answer.unit, expected.unit):
                return different("a frequency and an angular velocity: 1 Hz is 2 pi rad/s")
        try:
            first, second = _measured(answer), _measured(expected)
        except UnitError as error:
            return undecided(str(error))
        bare = not isinstance(answer, v.Quantity) and isinstance(expected, v.Quantity)
        if self.units == "ignored" or (self.units == "optional" and bare):
            return self._close(_number(answer), _number(expected))
        if first.dimension != second.dimension:
            return different(f"{named(first.dimension)}, where {named(second.dimension)} was expected")
        if self.tolerance is None or not isinstance(expected, v.Quantity):
            return self._close(first.of, second.of)
        found = self.scalars.compare(first.of, second.of)
        if found.truth is Truth.EQUAL:
            return found
        # The tolerance is in the expected unit.
        return self.tolerance.judge(in_unit(first.of, expected.unit), expected.of, self.scalars) or found

    def _close(self, answer: Expression, expected: Expression) -> EqualityFinding:
        found = self.scalars.compare(answer, expected)
        if found.truth is Truth.OPEN and any(has_sign(side) for side in (answer, expected)):
            found = compare_signs(answer, expected, self.scalars)
        if found.truth is Truth.EQUAL or self.tolerance is None:
            return found
        if symbols(expected):
            return self.tolerance.judge_terms(answer, expected, self.scalars)
        return self.tolerance.judge(answer, expected, self.scalars) or found

    # -- what has parts

    def _tuples(self, answer: tuple[v.Value, ...], expected: tuple[v.Value, ...]) -> EqualityFinding:
        if len(answer) != len(expected):
            return different(f"{len(answer)} entries where {len(expected)} were expected")
        if self.any_order:
            return matched(answer, expected, self.compare, repeats=True)
        return decided((self.compare(a, b) for a, b in zip(answer, expected, strict=True)), "equal entry by entry")

    def _matrices(self, answer: v.Matrix, expected: v.Matrix) -> EqualityFinding:
        shapes = [(len(matrix.rows), len(matrix.rows[0]) if matrix.rows else 0) for matrix in (answer, expected)]
        if shapes[0] != shapes[1]:
            return different(f"{shapes[0][0]} x {shapes[0][1]}, where {shapes[1][0]} x {shapes[1][1]} was expected")
        entries = [[v.Scalar(entry) for row in matrix.rows for entry in row] for matrix in (answer, expected)]
        return decided((self._numbers(a, b) for a, b in zip(*entries, strict=True)), "equal entry by entry")

    def _vector(self, answer: v.Value, expected: v.Value) -> EqualityFinding:
        """Compares a tuple with a matrix of one column or one row."""
        first, second = _entries(answer), _entries(expected)
        if first is None or second is None:
            return _other_kind(answer, expected)
        return self._tuples(first, second)

    def _ratios(self, answer: tuple[Expression, ...], expected: tuple[Expression, ...]) -> EqualityFinding:
        """Compares ratios such as `1:2:3`: those of two numbers by their quotient, longer ones by cross products."""
        if len(answer) != len(expected):
            return different(f"a ratio of {len(answer)} numbers, where {len(expected)} were expected")
        if len(answer) == 2:
            return self._numbers(v.Scalar(Quotient(*answer)), v.Scalar(Quotient(*expected)))
        pairs = list(zip(answer, expected, strict=True))
        for a, b in pairs:
            if self.tolerance is not None:
                shares = ((Quotient(one, a), Quotient(other, b)) for one, other in pairs)
                return decided((self._close(*share) for share in shares), "in proportion within the tolerance")
            if all(self.scalars.compare(part, ZERO).truth is Truth.DIFFERENT for part in (a, b)):
                crossed = ((Product((one, b)), Product((other, a))) for one, other in pairs)
                return decided((self.scalars.compare(*products) for products in crossed), "in proportion")
        return undecided("no two numbers are certainly non-zero")


def _other_kind(answer: v.Value, expected: v.Value) -> EqualityFinding:
    if isinstance(expected, v.Infinity) and isinstance(answer, v.Scalar) and has_binder(answer.of):
        return undecided("a sum, limit or integral that may be infinite")
    names = [KINDS.get(type(value), "a set") for value in (answer, expected)]
    return different(f"{names[0]}, where {names[1]} was expected")


def _by_cases(value: v.Piecewise | v.Scalar) -> v.Piecewise:
    return v.Piecewise(((value.of, None),)) if isinstance(value, v.Scalar) else value


def _entries(value: v.Value) -> tuple[v.Value, ...] | None:
    match value:
        case v.Tuple(items):
            return items
        case v.Matrix((row,)):
            return tuple(map(v.Scalar, row))
        case v.Matrix(rows) if all(len(row) == 1 for row in rows):
            return tuple(v.Scalar(row[0]) for row in rows)
        case _:
            return None


def _measured(value: v.Value) -> UnitMeasure:
    """Converts a number or quantity to base units. Raises UnitError for a unit that cannot be converted."""
    return measure(value.of, value.unit) if isinstance(value, v.Quantity) else UnitMeasure(_number(value), ())


def _number(value: v.Value) -> Expression:
    match value:
        case v.Scalar(of) | v.Quantity(of, _):
            return of
        case v.BaseNumber(digits, base):
            return based(digits, base)
        case _:
            raise TypeError(f"{type(value).__name__} is not a number")


def based(digits: str, base: int) -> Expression:
    """Returns the value of digits in a base, with an optional sign and point."""
    text = digits.strip()
    negative = text.startswith("-")
    whole, _, broken = text.lstrip("+-").partition(".")
    value = Fraction(int(whole + broken or "0", base), base ** len(broken))
    return Negation(Number(value)) if negative else Number(value)


def claimed(value: v.Value) -> str | None:
    """Returns the unknown whose values an answer describes, such as x of `x > 2`; None for a set."""
    return None if isinstance(value, v.Builder) and value.condition is not None else only_symbol(value)
