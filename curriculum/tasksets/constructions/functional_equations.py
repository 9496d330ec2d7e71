"""Functional equations with one solution: cycles of Moebius maps, and equations of Cauchy's kind."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import Number, value_at, written
from curriculum.tasksets.statements import EXACT, nonzero, say, worked

CYCLES = (
    ("-1/x", (0, -1, 1, 0), 2),
    ("1/(1 - x)", (0, 1, -1, 1), 3),
    ("(x - 1)/x", (1, -1, 1, 0), 3),
    ("(1 + x)/(1 - x)", (1, 1, -1, 1), 4),
    ("(x - 3)/(x + 1)", (1, -3, 1, 1), 3),
    ("(2x - 1)/(x + 1)", (2, -1, 1, 1), 6),
)
"""Maps x -> (a x + b)/(c x + d), as text and coefficients, and after how often each is the identity."""


def cycles(hand: bool, level: int, rng: Random) -> Item:
    """Asks for f(t) from p f(x) + q f(g(x)) = h(x) for all x, where g has finite order: a cycle of linear equations."""
    shown, (a, b, c, d), order = rng.choice((CYCLES[:1], CYCLES[:3], CYCLES[1:4], CYCLES[3:5], CYCLES[3:])[level])
    p, q = rng.randint(1, 3 if hand else 9), nonzero(rng, 3 if hand else 9)
    limit = 6 if hand else 20
    degree = (2 - hand) + (level > 1)
    h: list[Number] = [*(rng.randint(-limit, limit) for _ in range(degree)), nonzero(rng, limit)]
    t = point = Fraction(nonzero(rng, 9 + level), rng.randint(2, 5 + level))
    total, factor = Fraction(0), Fraction(1, p)
    for _ in range(order):
        total += factor * Fraction(value_at(h, point))
        if c * point + d == 0:
            return cycles(hand, level, rng)
        point, factor = (a * point + b) / (c * point + d), -factor * q / p
    if point != t or factor * p == 1:  # the system of the cycle has no single solution
        return cycles(hand, level, rng)
    answer = total / (1 - factor * p)
    text = say(
        rng,
        (
            "For all real x for which the terms are defined, {p}f(x) {q}f({g}) = {h}. What is f({t})? {how}",
            "A function satisfies {p}f(x) {q}f({g}) = {h} wherever both sides make sense. Find f({t}). {how}",
        ),
        p=p if p > 1 else "", q=f"{'-' if q < 0 else '+'} {abs(q) if abs(q) > 1 else ''}", g=shown, h=written(h), t=t,
        how=EXACT,
    )  # fmt: skip
    return worked(text, f"{shown} {p} {q} {h} {t}", answer)


def cauchy(hand: bool, level: int, rng: Random) -> Item:
    """Asks for f(t) from f(x + y) = f(x) + f(y) + a x y + b x y (x + y) and one value: f is a cubic polynomial."""
    limit = 9 if hand else 40
    a, b, value = nonzero(rng, limit), (nonzero(rng, limit) if level > 1 else 0), nonzero(rng, 30)
    at = rng.randint(2, 3 + level) if level > 2 else 1
    size = (30, 60, 60, 99, 99)[level] if hand else (10**3, 10**6, 10**12, 10**6, 10**12)[level]
    t = Fraction(rng.randint(size // 3, size), rng.randint(2, 99) if level > 2 else 1)

    def curve(x: Fraction | int) -> Fraction:
        return Fraction(b) * x**3 / 3 + Fraction(a) * x * x / 2

    answer = curve(t) + t * (value - curve(at)) / at
    extra = f" {'-' if a < 0 else '+'} {abs(a)}xy" + (f" {'-' if b < 0 else '+'} {abs(b)}xy(x + y)" if b else "")
    text = say(
        rng,
        (
            ("A function f from the rational numbers to the rational numbers satisfies f(x + y) = f(x) + f(y){extra}"
            " for all rational x and y, and f({at}) = {value}. What is f({t})? {how}"),
            ("For all rational numbers x and y it holds that f(x + y) = f(x) + f(y){extra}, and f({at}) = {value}. The"
            " values of f are rational. Find f({t}). {how}"),
        ),
        extra=extra, at=at, value=value, t=t, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {b} {at} {value} {t}", answer)
