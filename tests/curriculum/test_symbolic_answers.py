"""Answers of algebra and calculus, compared with what SymPy makes of the words of the question."""

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
x, k = sympy.symbols("x k", real=True)
n = sympy.Symbol("n", integer=True, nonnegative=True)
RULES = (*standard_transformations, implicit_multiplication_application, convert_xor)
POINTS = (sympy.Rational(3, 7), sympy.Rational(11, 5))
FOUND: dict[str, Callable[[str, Any], bool]] = {}


def read(text: str) -> Any:
    known = {"x": x, "k": k, "n": n, "i": sympy.I}
    return parse_expr(re.sub(r"\bk(?=x)", "k*", text), local_dict=known, transformations=RULES)


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


@by_sympy("derivatives_of_products", "derivatives_of_chains", "derivatives_of_quotients", "derivatives_with_logarithms")
def _(text: str, answer: str) -> bool:
    f = read(asked(text, r"of f\(x\) = (.*)\? Give", r"Differentiate (.*) with", r"f\(x\) = (.*)\. Find f'")[0])
    gap = sympy.diff(f, x) - read(answer)
    return all(abs(sympy.N(gap.subs(x, at))) < 1e-8 * (1 + abs(sympy.N(f.subs(x, at)))) for at in POINTS)


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


@by_sympy(*TASKSETS["limits"].topics)
def _(text: str, answer: str) -> bool:
    shapes = (
        r"limit of (.*) as x tends to (\S+)\?",
        r"limit of (.*) for x -> (\S+)\.",
        r"number does (.*) tend as x goes to (\S+)\?",
    )
    f, to = asked(text, *shapes)
    return same(sympy.limit(read(f), x, sympy.oo if to == "infinity" else int(to)), read(answer))


@by_sympy("geometric_series", "telescoping_series", "weighted_geometric_series")
def _(text: str, answer: str) -> bool:
    shapes = (r"sum of (.*) over all whole numbers n >= (\d+)\?", r"terms (.*), n counting up from (\d+),")
    term, low = asked(text, *shapes)
    return same(sympy.summation(read(term), (n, int(low), sympy.oo)), read(answer))


@by_sympy("power_series_coefficients")
def _(text: str, answer: str) -> bool:
    power = int(asked(text, r"x\^(\d+) in the power series", r"stands before x\^(\d+)")[0])
    f = read(asked(text, r"power series of (.*) around", r"Expand (.*) in powers")[0])
    return same(sympy.diff(f, x, power).subs(x, 0) / sympy.factorial(power), read(answer))


@by_sympy("sums_over_roots")
def _(text: str, answer: str) -> bool:
    what, poly = asked(
        text,
        r"sum of (.*) of the roots of (.*)\? Complex",
        r"(?=.*sum of (.*) of these).*roots of (.*), with multiplicity",
    )
    power = {"the squares": 2, "the cubes": 3, "the reciprocals": -1, "the squares of the reciprocals": -2}[what]
    total = sum(root**power for root in sympy.Poly(read(poly), x).nroots(n=30, maxsteps=200))
    return bool(abs(total - read(answer)) < 1e-12)


@by_sympy("double_roots")
def _(text: str, answer: str) -> bool:
    poly = asked(text, r"numbers k does (.*) = 0 have", r"y = (.*) touches")[0].replace(")x", ")*x")
    return sorted(sympy.solve(sympy.discriminant(read(poly), x), k)) == sorted(map(int, answer[1:-1].split(", ")))


@by_sympy("complex_products", "complex_quotients")
def _(text: str, answer: str) -> bool:
    return same(sympy.expand(read(asked(text, r"(?:out|Compute|What is) (.*?)[.?] Write")[0])), read(answer))


@by_sympy("eigenvalues")
def _(text: str, answer: str) -> bool:
    rows = sympy.Matrix(sympy.sympify(asked(text, r"(\[\[.*?\]\])")[0]))
    return sorted(rows.eigenvals()) == sorted(map(int, answer[1:-1].split(", ")))


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
