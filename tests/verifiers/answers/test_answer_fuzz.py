"""Random expressions against a reference that computes with fractions and with mpmath: nothing false is ever proved.

Two trees that the verifier proves equal must have the same value at points that it did not choose; two that it proves
different must differ at the witness that it names.
"""

from __future__ import annotations

import itertools
import math
import operator
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from fuzz_blocks import in_blocks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property_budget import examples

from verifiers.answers.algebra.equality import Truth
from verifiers.answers.algebra.real_sets import canonical, combined, difference, holds, interval
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar.errors import GrammarError
from verifiers.answers.grammar.nodes import (
    Constant,
    Expression,
    FunctionCall,
    Negation,
    Number,
    Power,
    Product,
    Quotient,
    Sum,
    Symbol,
)
from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier

SCALARS = Scalars(20, "real", prove=False)
PRECISION = 60
CLOSE = mpmath.mpf(10) ** -40
POINTS = (
    {"x": "0.7310585", "y": "1.3132616"},
    {"x": "-1.8414709", "y": "0.5403023"},
    {"x": "2.2360679", "y": "-3.6055"},
)

numbers = st.fractions(-6, 6, max_denominator=6).map(Number)
leaves = st.one_of(numbers, st.sampled_from([Symbol("x"), Symbol("y"), Constant("pi"), Constant("e"), Constant("i")]))


def deeper(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    exponents = st.sampled_from([-2, -1, 2, 3, Fraction(1, 2), Fraction(1, 3)]).map(lambda e: Number(Fraction(e)))
    names = st.sampled_from(["sqrt", "abs", "exp", "ln", "sin", "cos", "tan", "atan", "cbrt", "sinh"])
    return st.one_of(
        st.builds(Negation, inner),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Sum(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Product(tuple(parts))),
        st.builds(Quotient, inner, inner),
        st.builds(Power, inner, exponents),
        st.builds(lambda name, of: FunctionCall(name, (of,)), names, inner),
    )


expressions = st.recursive(leaves, deeper, max_leaves=7)


def value(node: Expression, at: dict[str, Any]) -> Any:
    """The principal value by mpmath; None where it has none there, or is too large."""
    match node:
        case Number(of):
            return mpmath.mpf(of.numerator) / of.denominator
        case Symbol(name):
            return at[name]
        case Constant(name):
            return {"pi": mpmath.pi(), "e": mpmath.e(), "i": mpmath.mpc(0, 1)}[name]
        case Negation(of):
            return -value(of, at)
        case Sum(parts):
            return mpmath.fsum(value(part, at) for part in parts)
        case Product(parts):
            return mpmath.fprod(value(part, at) for part in parts)
        case Quotient(above, below):
            return value(above, at) / nonzero(value(below, at))
        case Power(base, exponent):
            under, power = value(base, at), value(exponent, at)
            return nonzero(under) ** power if power < 0 else under**power
        case FunctionCall("cbrt", (of,)):
            under = value(of, at)
            real = not isinstance(under, mpmath.mpc) or under.imag == 0
            return -mpmath.cbrt(-under.real) if real and mpmath.re(under) < 0 else mpmath.cbrt(under)
        case FunctionCall(name, (of,)):
            inside = nonzero(value(of, at)) if name == "ln" else value(of, at)
            if name in ("exp", "sinh", "sin", "cos", "tan") and abs(inside) > 200:
                raise ArithmeticError
            return {"abs": abs, "ln": mpmath.log}.get(name, getattr(mpmath, name, None))(inside)
    raise AssertionError(node)


def nonzero(of: Any) -> Any:
    if abs(of) < CLOSE:
        raise ArithmeticError("near a pole")
    return of


def reference(node: Expression, at: dict[str, Any]) -> Any:
    try:
        found = value(node, at)
        return found if abs(found) < mpmath.mpf(10) ** 15 else None
    except (ArithmeticError, ValueError, TypeError):
        return None


def near_a_cut(node: Expression, at: dict[str, Any]) -> bool:
    """Whether a root or logarithm inside is taken of a value on its cut, where mpmath's rounding decides the branch."""
    from verifiers.answers.grammar.nodes import walk

    for part in walk(node):
        inner = part.base if isinstance(part, Power) else part.arguments[0] if isinstance(part, FunctionCall) else None
        if inner is not None:
            found = reference(inner, at)
            if found is None or (mpmath.re(found) < 0 and abs(mpmath.im(found)) < CLOSE and mpmath.im(found) != 0):
                return True
    return False


def proves_nothing_false(first: Expression, second: Expression) -> None:
    try:
        finding = SCALARS.compare(first, second)
    except GrammarError:
        return
    if finding.truth is not Truth.EQUAL:
        return
    with mpmath.workdps(PRECISION):
        for point in POINTS:
            at = {name: mpmath.mpf(text) for name, text in point.items()}
            if near_a_cut(first, at) or near_a_cut(second, at):
                continue
            left, right = reference(first, at), reference(second, at)
            if left is not None and right is not None:
                assert abs(left - right) <= CLOSE * max(1, abs(left)), (first, second, point)


def rearranged(node: Expression) -> st.SearchStrategy[Expression]:
    """Other ways of writing a tree, right and wrong ones."""
    one = Number(Fraction(1))
    candidates: list[Expression] = [
        node,
        Negation(Negation(node)),
        Power(FunctionCall("sqrt", (node,)), Number(Fraction(2))),
        FunctionCall("sqrt", (Power(node, Number(Fraction(2))),)),
        FunctionCall("abs", (node,)),
        FunctionCall("exp", (FunctionCall("ln", (node,)),)),
        FunctionCall("ln", (FunctionCall("exp", (node,)),)),
        Quotient(one, Quotient(one, node)),
        Power(Power(node, Number(Fraction(1, 2))), Number(Fraction(2))),
        Power(Power(node, Number(Fraction(2))), Number(Fraction(1, 2))),
        Power(FunctionCall("cbrt", (node,)), Number(Fraction(3))),
        FunctionCall("cbrt", (Power(node, Number(Fraction(3))),)),
        FunctionCall("atan", (FunctionCall("tan", (node,)),)),
        FunctionCall("tan", (FunctionCall("atan", (node,)),)),
        Sum((node, Number(Fraction(1, 10**30)))),
        Sum(
            (
                Power(FunctionCall("sin", (node,)), Number(Fraction(2))),
                Power(FunctionCall("cos", (node,)), Number(Fraction(2))),
            )
        ),
    ]
    return st.sampled_from(candidates)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions.flatmap(lambda node: st.tuples(st.just(node), rearranged(node))))
def test_what_is_proved_equal_is_equal(pair: tuple[Expression, Expression]) -> None:
    proves_nothing_false(*pair)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions, expressions)
def test_two_random_expressions_are_never_falsely_equal(first: Expression, second: Expression) -> None:
    proves_nothing_false(first, second)


@pytest.mark.slow
@pytest.mark.timeout(2_400)
def test_what_is_proved_equal_is_equal_at_length(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = expressions.flatmap(lambda node: st.tuples(rearranged(node), rearranged(node)))
    in_blocks(lambda pair: proves_nothing_false(*pair), pairs, examples=20_000, capsys=capsys)


ends = st.fractions(-4, 4, max_denominator=2)
intervals = st.tuples(ends, ends, st.booleans(), st.booleans())
OPERATIONS = {
    "union": lambda a, b: a or b,
    "intersection": lambda a, b: a and b,
    "difference": lambda a, b: a and not b,
}


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), intervals), min_size=1, max_size=5), intervals)
def test_sets_hold_what_their_definition_holds(
    steps: list[tuple[str, tuple[Fraction, Fraction, bool, bool]]], start: tuple[Fraction, Fraction, bool, bool]
) -> None:
    def read(of: tuple[Fraction, Fraction, bool, bool]) -> Any:
        return interval(Number(of[0]), Number(of[1]), of[2], of[3], SCALARS)

    def inside(of: tuple[Fraction, Fraction, bool, bool], point: Fraction) -> bool:
        low, high, closed_low, closed_high = of
        return (low < point or (closed_low and low == point)) and (point < high or (closed_high and point == high))

    total = canonical(read(start), SCALARS)
    for name, other in steps:
        total = canonical(combined(total, read(other), OPERATIONS[name], SCALARS), SCALARS)
    for quarter in range(-20, 21):
        point = Fraction(quarter, 4)
        wanted = inside(start, point)
        for name, other in steps:
            wanted = OPERATIONS[name](wanted, inside(other, point))
        assert holds(total, Number(point), SCALARS) == wanted


@settings(max_examples=examples(50), deadline=None)
@given(intervals, intervals)
def test_two_sets_differ_exactly_when_a_number_tells_them_apart(
    first: tuple[Fraction, Fraction, bool, bool], second: tuple[Fraction, Fraction, bool, bool]
) -> None:
    sets = [canonical(interval(Number(of[0]), Number(of[1]), of[2], of[3], SCALARS), SCALARS) for of in (first, second)]
    witness = difference(sets[0], sets[1], SCALARS)
    if witness is None:
        assert sets[0] == sets[1]
    else:
        assert not isinstance(witness, str)
        assert holds(sets[0], witness, SCALARS) != holds(sets[1], witness, SCALARS)


roots = st.lists(st.fractions(-4, 4, max_denominator=2), min_size=1, max_size=3, unique=True).map(sorted)
changes = st.sampled_from(["", "", "closed", "moved", "missing"])
GRID = [Fraction(eighth, 8) for eighth in range(-48, 49)]
"""Finer than roots are apart, and beyond all of them."""
HOLDS = {"<": operator.lt, r"\le": operator.le, ">": operator.gt, r"\ge": operator.ge}
Piece = tuple[Fraction | None, Fraction | None, bool, bool]
"""Its ends, and whether each belongs to it; without an end it goes on for ever."""


def written(low: Fraction | None, high: Fraction | None, low_in: bool, high_in: bool) -> str:
    left = r"(-\infty" if low is None else f"{'[' if low_in else '('}{low}"
    right = r"\infty)" if high is None else f"{high}{']' if high_in else ')'}"
    return f"{left},{right}"


def within(point: Fraction, low: Fraction | None, high: Fraction | None, low_in: bool, high_in: bool) -> bool:
    above = low is None or low < point or (low_in and low == point)
    return above and (high is None or point < high or (high_in and high == point))


def changed(piece: Piece, change: str) -> list[Piece]:
    low, high, low_in, high_in = piece
    match change:
        case "missing":
            return []
        case "closed":
            return [(low, high, low_in != (low is not None), high_in != (high is not None and low is None))]
        case "moved" if low is not None:
            return [(low - Fraction(1, 8), high, low_in, high_in)]
        case "moved" if high is not None:
            return [(low, high + Fraction(1, 8), low_in, high_in)]
    return [piece]


@settings(max_examples=examples(60), deadline=None)
@given(roots, st.sampled_from(sorted(HOLDS)), st.sampled_from([1, -1]), changes, st.integers(0, 3))
def test_an_inequality_is_taken_for_its_set_and_for_no_other(
    roots: list[Fraction], sign: str, lead: int, change: str, which: int
) -> None:
    """The set is looked at by brute force; in the answer an end may be closed or moved, or a piece missing."""
    text = f"({lead})" + "".join(f"*(x-({root}))" for root in roots)
    ends_in = sign in (r"\le", r"\ge")
    signs = [lead * (-1) ** (len(roots) - place) for place in range(len(roots) + 1)]
    pieces: list[Piece] = [
        (low, high, ends_in and low is not None, ends_in and high is not None)
        for (low, high), positive in zip(itertools.pairwise([None, *roots, None]), signs, strict=True)
        if HOLDS[sign](positive, 0)
    ]
    pieces += changed(pieces.pop(which % len(pieces)), change)
    answer = r"\cup ".join(written(*piece) for piece in pieces) or r"\{\}"
    same = all(
        HOLDS[sign](lead * math.prod(point - root for root in roots), 0)
        == any(within(point, *piece) for piece in pieces)
        for point in GRID
    )
    assert same == (change == "")
    verdict = AnswerVerifier().verify(AnswerSpec(expected=f"{text} {sign} 0"), answer)
    assert verdict.passed == same, (text, sign, answer, verdict.reason)
