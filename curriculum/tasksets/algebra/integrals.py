"""Integrals: definite ones of polynomials, antiderivatives (made by differentiating them), areas, mean values."""

from __future__ import annotations

import itertools
from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked


def _drawn(degree: int, limit: int, rng: Random) -> list[p.Number]:
    return [*(rng.randint(-limit, limit) for _ in range(degree)), nonzero(rng, limit)]


def _over(poly: p.Coefficients, low: p.Number, high: p.Number) -> p.Number:
    whole = p.integrated(poly)
    return p.value_at(whole, high) - p.value_at(whole, low)


def _ends(level: int, rng: Random) -> tuple[int, int]:
    low = rng.randint(-2 - level // 2, 2)
    return low, low + rng.randint(1, 3 + level // 2)


def _definite(level: int, rng: Random) -> Item:
    poly, (low, high) = _drawn(1 + level, 5 + 2 * level, rng), _ends(level, rng)
    text = say(
        rng,
        (
            "What is the integral of {f} over x from {low} to {high}? {how}",
            "Integrate f(x) = {f} from x = {low} to x = {high}. {how}",
        ),
        f=p.written(poly), low=low, high=high, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{poly} {low} {high}", str(_over(poly, low, high)))


def _antiderivative(level: int, rng: Random) -> Item:
    """Asks for the antiderivative of a function with a given value at 0. The answer is drawn and differentiated."""
    k = nonzero(rng, 2 + level)
    u = p.written([0, k])
    poly = _drawn(1 + level // 2, 4 + level, rng)
    slope = p.derived(poly)
    kind = rng.choice(("exp", "sin", "cos") if level else ("exp",))
    if kind == "exp":
        answer, at_zero = f"({p.written(poly)})*exp({u})", poly[0]
        f = f"{p.factor(p.added(slope, p.scaled(poly, k)))}*exp({u})"
    elif kind == "sin":
        answer, at_zero = f"({p.written(poly)})*sin({u})", 0
        f = f"{p.factor(slope)}*sin({u}) + {p.factor(p.scaled(poly, k))}*cos({u})"
    else:
        answer, at_zero = f"({p.written(poly)})*cos({u})", poly[0]
        f = f"{p.factor(slope)}*cos({u}) + {p.factor(p.scaled(poly, -k))}*sin({u})"
    start = rng.randint(-9, 9)
    shift = start - at_zero
    if shift:
        answer = f"{answer} {'-' if shift < 0 else '+'} {abs(shift)}"
    text = say(
        rng,
        (
            ("Find the function F with F'(x) = {f} and F(0) = {start}. Give an expression in x, with no integral left"
            " in it."),
            "Which antiderivative of {f} has the value {start} at x = 0? Give an expression in x, worked out.",
        ),
        f=f, start=start,
    )  # fmt: skip
    return worked(text, f"{f} {start}", answer, variables=("x",))


def _substitution(level: int, rng: Random) -> Item:
    inner = [nonzero(rng, 6 + level), *([0] * (level // 2)), rng.randint(1, 4 + level)]
    n, k = rng.randint(2, 4 + level), rng.randint(1, 4 + level)
    low, high = rng.randint(-1, 0), rng.randint(1, 2)
    value = Fraction(k) * (p.value_at(inner, high) ** (n + 1) - p.value_at(inner, low) ** (n + 1)) / (n + 1)
    text = say(
        rng,
        (
            "What is the integral of {g}*({u})^{n} over x from {low} to {high}? {how}",
            "Integrate {g}*({u})^{n} from x = {low} to x = {high}. {how}",
        ),
        g=p.factor(p.scaled(p.derived(inner), k)), u=p.written(inner), n=n, low=low, high=high, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{inner} {n} {k} {low} {high}", value)


def _between(level: int, rng: Random) -> Item:
    roots = sorted(
        rng.sample(range(-7 - level, 8 + level) if level < 3 else range(-3 - level, 4 + level), 2 if level < 3 else 3)
    )
    lead = rng.choice((1, -1, 2, -2, 3))
    gap = p.scaled(p.with_roots(roots), lead)
    second = [rng.randint(-6, 6), rng.randint(-4, 4)]
    first = p.added(gap, second)
    area = sum((abs(Fraction(_over(gap, a, b))) for a, b in itertools.pairwise(roots)), Fraction())
    text = say(
        rng,
        (
            "What is the area of the bounded region{s} between the graphs of y = {a} and y = {b}? {how}",
            "The curves y = {a} and y = {b} enclose {what}. What is {its} area? {how}",
        ),
        s="s together" if len(roots) == 3 else "", what="two regions" if len(roots) == 3 else "a region",
        its="their total" if len(roots) == 3 else "its", a=p.written(first), b=p.written(second), how=EXACT,
    )  # fmt: skip
    return worked(text, f"{sorted((p.written(first), p.written(second)))}", area)


def _mean(level: int, rng: Random) -> Item:
    poly, (low, high) = _drawn(2 + level // 2, 5 + level, rng), _ends(level, rng)
    text = say(
        rng,
        (
            "What is the mean value of f(x) = {f} on the interval from {low} to {high}? {how}",
            ("Find the average of {f} over all x with {low} <= x <= {high}, that is the integral divided by the length."
            " {how}"),
        ),
        f=p.written(poly), low=low, high=high, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{poly} {low} {high}", Fraction(_over(poly, low, high)) / (high - low))


def _unknown(level: int, rng: Random) -> Item:
    poly = _drawn(1 + level // 2, 6 + level, rng)
    at = rng.randint(0, len(poly) - 2)
    low, high = 0, rng.randint(1, 3 + level // 2)
    if level > 2:
        low = -rng.choice([one for one in (1, 2, 3) if one != high])
    weight = _over([*([0] * at), 1], low, high)
    value = rng.randint(-20, 20)
    rest = list(poly)
    rest[at] = 0
    k = (Fraction(value) - _over(rest, low, high)) / weight
    letter = "k" if at == 0 else "kx" if at == 1 else f"kx^{at}"
    text = say(
        rng,
        (
            "For which number k is the integral of {f} + {k} over x from {low} to {high} equal to {value}? {how}",
            "The integral of {f} + {k} from x = {low} to x = {high} is {value}. What is k? {how}",
        ),
        f=p.written(rest), k=letter, low=low, high=high, value=value, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{rest} {at} {low} {high} {value}", k)


INTEGRALS = mathematics(
    "integrals",
    2,
    {
        "definite_integrals": _definite,
        "antiderivatives": _antiderivative,
        "integrals_by_substitution": _substitution,
        "areas_between_curves": _between,
        "mean_values": _mean,
        "unknown_integrands": _unknown,
    },
    ("0", "1", "x"),
)
