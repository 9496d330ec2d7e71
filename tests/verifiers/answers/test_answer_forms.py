"""Forms of answers against what they mean by brute force: classes of numbers, cases, ratios, approximations, dots."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st
from property_budget import examples

from verifiers.answers.algebra.equality import Truth
from verifiers.answers.algebra.scalars import Scalars
from verifiers.answers.grammar.nodes import ComparisonNode, Constant, Expression, Number, Product, Sum, Symbol
from verifiers.answers.grammar.values import Images, NumberSet, Piecewise, RelationValue
from verifiers.answers.piecewise import compare_piecewise
from verifiers.answers.residue_classes import compare_images
from verifiers.answers.spec import AnswerSpec
from verifiers.answers.verifier import AnswerVerifier
from verifiers.contract.verdict import Ground

VERIFIER = AnswerVerifier()
SCALARS = Scalars(seed=7)
STEPS = [Fraction(step) for step in ("1", "2", "3", "4", "6", "-2", "1/2", "3/2")]
classes = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(-6, 6)), min_size=1, max_size=4)
UNITS = {"1": Number(Fraction(1)), "pi": Constant("pi")}


def passes(expected: str, answer: str) -> bool:
    return VERIFIER.verify(AnswerSpec(expected=expected), answer).passed


def images(of: list[tuple[Fraction, int]], unit: Expression) -> Images:
    expressions = [
        Product((Sum((Number(Fraction(start, 2)), Product((Number(step), Symbol("#"))))), unit)) for step, start in of
    ]
    return Images(tuple(expressions), "#", NumberSet("Z"))


def held(of: list[tuple[Fraction, int]]) -> set[Fraction]:
    """Quarters from 0 to 12, which is a multiple of every step."""
    points = [Fraction(quarter, 4) for quarter in range(48)]
    return {
        point for point in points if any(((point - Fraction(start, 2)) / step).denominator == 1 for step, start in of)
    }


@settings(max_examples=examples(40), deadline=None)
@given(classes, classes, st.sampled_from(sorted(UNITS)))
def test_two_unions_of_classes_are_equal_exactly_when_they_hold_the_same_numbers(
    first: list[tuple[Fraction, int]], second: list[tuple[Fraction, int]], unit: str
) -> None:
    found = compare_images(images(first, UNITS[unit]), images(second, UNITS[unit]), SCALARS)
    assert (found.truth is Truth.EQUAL) == (held(first) == held(second))
    assert found.truth is not Truth.OPEN


cuts = st.lists(st.integers(-3, 3), min_size=1, max_size=3, unique=True).map(sorted)
lines = st.tuples(st.integers(-1, 1), st.integers(-1, 1))


def piecewise(of: tuple[list[int], list[tuple[int, int]], bool]) -> Piecewise:
    """Lines between cuts, each of which belongs to the piece on its left, or else to the one on its right."""
    marks, values, left = of
    x = Symbol("x")
    branches: list[tuple[Expression, RelationValue]] = []
    for index, (slope, height) in enumerate(values[: len(marks) + 1]):
        conditions: list[ComparisonNode] = []
        if index:
            conditions.append(ComparisonNode((x, Number(Fraction(marks[index - 1]))), (">" if left else ">=",)))
        if index < len(marks):
            conditions.append(ComparisonNode((x, Number(Fraction(marks[index]))), ("<=" if left else "<",)))
        value = Sum((Product((Number(Fraction(slope)), x)), Number(Fraction(height))))
        branches.append((value, RelationValue("and", tuple(conditions))))
    return Piecewise(tuple(branches))


def value_at(of: tuple[list[int], list[tuple[int, int]], bool], point: Fraction) -> Fraction:
    marks, values, left = of
    index = sum(mark < point if left else mark <= point for mark in marks)
    slope, height = values[index]
    return slope * point + height


functions = st.tuples(cuts, st.lists(lines, min_size=4, max_size=4), st.booleans())


@settings(max_examples=examples(40), deadline=None)
@example(([0], [(1, -1), (0, 0), (0, 0), (0, 0)], False), ([0], [(1, -1), (1, -1), (0, 0), (0, 0)], False))
@given(functions, functions)
def test_cases_are_equal_exactly_when_their_values_are(
    first: tuple[list[int], list[tuple[int, int]], bool], second: tuple[list[int], list[tuple[int, int]], bool]
) -> None:
    points = [Fraction(quarter, 4) for quarter in range(-20, 21)]
    for one, other in ((first, second), (first, (first[0], first[1], not first[2]))):
        found = compare_piecewise(piecewise(one), piecewise(other), SCALARS)
        same = all(value_at(one, point) == value_at(other, point) for point in points)
        assert (found.truth is Truth.EQUAL) == same
        assert found.truth is not Truth.OPEN


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=4),
    st.fractions(Fraction(1, 9), 9, max_denominator=9),
    st.integers(0, 3),
)
def test_ratios_are_equal_exactly_when_they_are_in_proportion(numbers: list[int], factor: Fraction, off: int) -> None:
    scaled = [number * factor for number in numbers]
    scaled[-1] += Fraction(off, 7)
    answer = " : ".join(f"({value})" if value.denominator > 1 else str(value) for value in scaled)
    assert passes(" : ".join(map(str, numbers)), answer) == (off == 0)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 5000), st.integers(1, 97), st.integers(0, 4), st.integers(-3, 3))
def test_an_approximation_has_to_be_rounded_or_cut_off(above: int, below: int, places: int, off: int) -> None:
    exact = Fraction(above, below)
    scale = 10**places
    digits = math.floor(exact * scale) + off
    if digits < 0:
        return
    text = f"{digits // scale}.{digits % scale:0{places}d}" if places else str(digits)
    rest = exact * scale - digits
    agrees = 0 <= rest < 1 or abs(rest) <= Fraction(1, 2)
    assert passes(str(exact), rf"{exact} \approx {text}") == agrees


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(-20, 20), st.integers(-5, 5).filter(bool), st.integers(4, 60), st.booleans())
def test_dots_stand_for_every_number_between(start: int, step: int, count: int, three: bool) -> None:
    terms = [start + step * index for index in range(count)]
    shown = ", ".join(map(str, terms[: 3 if three else 2]))
    written = rf"{shown}, \dots, {terms[-1]}"
    verdict = VERIFIER.verify(AnswerSpec(expected=", ".join(map(str, terms))), written)
    assert verdict.passed or (not three and verdict.ground is Ground.UNREADABLE)
    assert not passes(", ".join(map(str, terms[:-1])), written)
