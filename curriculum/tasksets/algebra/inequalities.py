"""Inequalities whose solutions are intervals: linear, quadratic, of products, of quotients, with absolute values."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import mathematics, nonzero, say, whole, worked

HOW = "Answer with an interval or a union of intervals, with oo for infinity."
SIGNS = ("<", "<=", ">", ">=")
NULLS = ("(-oo, oo)", "(0, oo)", "[0, oo)", "0", "1")


def _interval(low: Fraction | None, high: Fraction | None, closed_low: bool, closed_high: bool) -> str:
    left = "(-oo" if low is None else f"{'[' if closed_low else '('}{low}"
    right = "oo)" if high is None else f"{high}{']' if closed_high else ')'}"
    return f"{left}, {right}"


def solution(zeros: list[Fraction], poles: list[Fraction], positive_at_end: bool, sign: str) -> str:
    """Returns where a quotient with these single zeros and poles is below or above 0, as a union of intervals."""
    above, closed = sign.startswith(">"), sign.endswith("=")
    ends: list[Fraction] = sorted([*zeros, *poles])
    pieces = []
    positive = positive_at_end
    for at in range(len(ends), -1, -1):
        low, high = (ends[at - 1] if at else None), (ends[at] if at < len(ends) else None)
        if positive == above:
            pieces.append(_interval(low, high, closed and low in zeros, closed and high in zeros))
        positive = not positive
    return " U ".join(reversed(pieces))


def _asked(rng: Random, left: str, sign: str, right: str, key: str, answer: str) -> Item:
    text = say(
        rng,
        (
            "Solve {left} {sign} {right} for real x. {how}",
            "For which real numbers x is {left} {sign} {right}? {how}",
            "Find the set of all real x with {left} {sign} {right}. {how}",
        ),
        left=left, sign=sign, right=right, how=HOW,
    )  # fmt: skip
    return worked(text, key, answer)


def _linear(level: int, rng: Random) -> Item:
    a, c = rng.sample([one for one in range(-5 - 3 * level, 6 + 3 * level) if one], 2)
    b, d = nonzero(rng, 10 + 8 * level), nonzero(rng, 10 + 8 * level)
    sign = rng.choice(SIGNS)
    zero = Fraction(d - b, a - c)
    left, right = p.written([b, a]), p.written([d, c])
    return _asked(rng, left, sign, right, f"{left} {sign} {right}", solution([zero], [], a > c, sign))


def _roots(count: int, level: int, rng: Random) -> list[Fraction]:
    below = rng.choice((1, 1, 2)) if level > 1 else 1
    return [Fraction(one, below) for one in rng.sample(range(-9 - 2 * level, 10 + 2 * level), count)]


def _quadratic(level: int, rng: Random) -> Item:
    zeros = _roots(2, level, rng)
    lead = rng.choice((1, -1, 2, -3)) if level else 1
    poly = p.scaled([1], lead)
    for zero in zeros:
        poly = p.multiplied(poly, [-zero.numerator, zero.denominator])
    moved: list[p.Number] = [rng.randint(-9, 9), rng.randint(-5, 5)] if level > 1 else [0]
    sign = rng.choice(SIGNS)
    left, right = p.written(p.added(poly, moved)), p.written(moved)
    return _asked(rng, left, sign, right, f"{left} {sign} {right}", solution(zeros, [], lead > 0, sign))


def _factors(roots: list[Fraction]) -> str:
    """Returns the product of the linear factors with these roots as text; a plain x comes first."""
    return "".join(sorted((p.factor([-root.numerator, root.denominator]) for root in roots), key=len))


def _product(level: int, rng: Random) -> Item:
    zeros = _roots(2 + (level + 1) // 2, level, rng)
    minus, sign = rng.random() < 0.3, rng.choice(SIGNS)
    left = ("-" if minus else "") + _factors(zeros)
    key = f"{minus} {sorted(zeros)} {sign}"
    return _asked(rng, left, sign, "0", key, solution(zeros, [], not minus, sign))


def _quotient(level: int, rng: Random) -> Item:
    above, below = (1, 1, 2, 2, 3)[level], (1, 1, 1, 2, 2)[level]
    roots = _roots(above + below, level, rng)
    zeros, poles = roots[:above], roots[above:]
    sign = rng.choice(SIGNS)
    top, bottom = _factors(zeros), _factors(poles)
    left = f"{top}/{bottom}" if below == 1 else f"{top}/({bottom})"
    return _asked(rng, left, sign, "0", f"{sorted(zeros)} {sorted(poles)} {sign}", solution(zeros, poles, True, sign))


def _absolute(level: int, rng: Random) -> Item:
    a, b = rng.randint(1, 2 + level), nonzero(rng, 9 + 3 * level)
    c, sign = rng.randint(1, 12 + 5 * level), rng.choice(SIGNS)
    zeros = [Fraction(-b - c, a), Fraction(-b + c, a)]
    factor, extra = (rng.randint(2, 3 + level), nonzero(rng, 9)) if level > 1 else (1, 0)
    left = f"|{p.written([b, a])}|"
    if factor > 1:
        left = f"{factor}{left} {'-' if extra < 0 else '+'} {abs(extra)}"
    right = str(factor * c + extra)
    return _asked(rng, left, sign, right, f"{left} {sign} {right}", solution(zeros, [], True, sign))


def _count(level: int, rng: Random) -> Item:
    low, high = sorted((rng.randint(-20 - 9 * level, 0), rng.randint(1, 20 + 9 * level)))
    poly = p.with_roots([low, high])
    shift = rng.randint(0, level * 4)
    poly = p.added(poly, [-shift])
    strict = rng.random() < 0.5
    margin = high - low + shift + 2
    count = sum(
        1
        for x in range(low - margin, high + margin)
        if (value := p.value_at(poly, x)) < 0 or (value == 0 and not strict)
    )
    text = say(
        rng,
        (
            "How many whole numbers x satisfy {left} {sign} 0?",
            "Count the integers x for which {left} {sign} 0.",
        ),
        left=p.written(poly), sign="<" if strict else "<=",
    )  # fmt: skip
    return whole(text, f"{poly} {strict}", count)


INEQUALITIES = mathematics(
    "inequalities",
    2,
    {
        "linear_inequalities": _linear,
        "quadratic_inequalities": _quadratic,
        "products_and_signs": _product,
        "quotients_and_signs": _quotient,
        "absolute_values": _absolute,
        "whole_solutions": _count,
    },
    NULLS,
)
