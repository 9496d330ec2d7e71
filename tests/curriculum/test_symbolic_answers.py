"""Answers of algebra, compared with what SymPy makes of the words of the question."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import sympy
from sympy.parsing.sympy_parser import (
    convert_xor,
    implicit_multiplication_application,
    parse_expr,
    standard_transformations,
)
from tables import table

from curriculum.registry import TASKSETS, make_draft
from curriculum.tasksets.exact_arithmetic import linear, written

EACH = 2
"""Questions of each topic, of different levels."""
x = sympy.Symbol("x", real=True)
RULES = (*standard_transformations, implicit_multiplication_application, convert_xor)
FOUND: dict[str, Callable[[str, Any], bool]] = {}


def read(text: str) -> Any:
    return parse_expr(text, local_dict={"x": x}, transformations=RULES)


def asked(text: str, *patterns: str) -> tuple[str, ...]:
    found = [match for pattern in patterns if (match := re.search(pattern, text))]
    assert found, text
    return found[0].groups()


def same(one: Any, other: Any) -> bool:
    return bool(sympy.simplify(one - other) == 0)


def by_sympy(*topics: str) -> Callable[[Callable[[str, Any], bool]], Callable[[str, Any], bool]]:
    def note(find: Callable[[str, Any], bool]) -> Callable[[str, Any], bool]:
        FOUND.update(dict.fromkeys(topics, find))
        return find

    return note


@by_sympy("antiderivatives")
def _(text: str, answer: str) -> bool:
    shapes = (r"F'\(x\) = (.*) and F\(0\) = (-?\d+)\.", r"antiderivative of (.*) has the value (-?\d+) at")
    f, start = asked(text, *shapes)
    found = read(answer)
    return bool(found.subs(x, 0) == int(start)) and same(sympy.diff(found, x), read(f))


@by_sympy("definite_integrals", "integrals_by_substitution")
def _(text: str, answer: str) -> bool:
    shapes = (
        r"integral of (.*) over x from (-?\d+) to (-?\d+)\?",
        r"Integrate (?:f\(x\) = )?(.*) from x = (-?\d+) to x = (-?\d+)\.",
    )
    f, low, high = asked(text, *shapes)
    return same(sympy.integrate(sympy.expand(read(f)), (x, int(low), int(high))), read(answer))


@by_sympy(*(topic for topic in TASKSETS["inequalities"].topics if topic != "whole_solutions"))
def _(text: str, answer: str) -> bool:
    """At the ends of the intervals, on both sides of them, and on a grid."""
    ways = (r"(?:.*\. )?Solve (.*) for real x", r"numbers x is (.*)\? Answer", r"real x with (.*)\. Answer")
    stated = asked(text, *ways)[0]
    left, sign, right = asked(re.sub(r"\|([^|]*)\|", r"Abs(\1)", stated), r"(.*) (<=|>=|<|>) (.*)")
    gap = read(left) - read(right)
    intervals = [
        sympy.Interval(sympy.sympify(low), sympy.sympify(high), opened == "(", closed == ")")
        for opened, low, high, closed in re.findall(r"([\[(])([^,U]*), ([^,U]*?)([\])])", answer)
    ]
    solution = reduce(sympy.Union, intervals)
    ends = {end for one in intervals for end in (one.start, one.end) if end.is_finite}
    points = {*ends, *(end + sympy.Rational(side, 99) for end in ends for side in (1, -1)), *range(-30, 31, 7)}
    holds = {"<": gap < 0, "<=": gap <= 0, ">": gap > 0, ">=": gap >= 0}[sign]
    return all(
        bool(solution.contains(at)) == (not gap.subs(x, at).has(sympy.zoo, sympy.nan) and bool(holds.subs(x, at)))
        for at in points
    )


@table("topic", FOUND)
def test_an_answer_is_what_sympy_finds(topic: str) -> None:
    name = next(name for name, taskset in TASKSETS.items() if topic in taskset.topics)
    made = (make_draft(name, seed % 5, seed) for seed in range(10_000))
    for _, draft in zip(range(EACH), (one for one in made if one.topic == topic), strict=False):
        assert FOUND[topic](draft.messages[-1].text, draft.answer), (draft.messages[-1].text, draft.answer)


def test_terms_are_written_as_a_person_writes_them() -> None:
    assert linear((1, -1, 1), ("x", "y", "")) == "x - y + 1"
    assert linear((0, -1, Fraction(1, 2)), ("x", "", "z")) == "-1 + (1/2)z"
    assert written([Fraction(-1, 2), 1, 0, -1]) == "-x^3 + x - (1/2)"
    assert written([1]) == "1"
    assert written([0, 0]) == linear((0,), ("x",)) == "0"
