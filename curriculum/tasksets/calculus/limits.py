"""Limits: of quotients at a common zero, at infinity, of differences of roots, with sines, of difference quotients."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, Wordings, mathematics, nonzero, say, signed, worked

NULLS = ("0", "1", "oo")


def _limit(rng: Random, expression: str, to: str, value: Fraction | str, how: str | Wordings = EXACT) -> Item:
    text = say(
        rng,
        (
            "What is the limit of {e} as x tends to {to}? {how}",
            "Find the limit of {e} for x -> {to}. {how}",
            "To which number does {e} tend as x goes to {to}? {how}",
        ),
        e=expression, to=to, how=how,
    )  # fmt: skip
    return worked(text, f"{expression} at {to}", value)


def _common_zero(level: int, rng: Random) -> Item:
    at, times = rng.randint(-3 - level, 3 + level), 1 + level // 3
    above = [nonzero(rng, 4 + level), *(rng.randint(-4, 4) for _ in range(level // 2)), nonzero(rng, 3)]
    below = [nonzero(rng, 4 + level), nonzero(rng, 3)]
    if p.value_at(below, at) == 0:
        return _common_zero(level, rng)
    shared = p.with_roots([at] * times)
    top, bottom = p.multiplied(above, shared), p.multiplied(below, shared)
    return _limit(
        rng, f"({p.written(top)})/({p.written(bottom)})", str(at),
        Fraction(p.value_at(above, at)) / p.value_at(below, at),
    )  # fmt: skip


def _at_infinity(level: int, rng: Random) -> Item:
    degree = 1 + level
    above = [*(rng.randint(-9, 9) for _ in range(degree)), nonzero(rng, 9 + 3 * level)]
    below = [*(rng.randint(-9, 9) for _ in range(degree)), nonzero(rng, 9 + 3 * level)]
    return _limit(rng, f"({p.written(above)})/({p.written(below)})", "infinity", Fraction(above[-1], below[-1]))


def _roots(level: int, rng: Random) -> Item:
    a = rng.randint(1, 1 + level)
    b, d = rng.sample(range(-9 - 3 * level, 10 + 3 * level), 2)
    c, e = rng.randint(0, 9), rng.randint(0, 9)
    first = f"sqrt({p.written([c, b, a * a])})"
    if level < 2:
        second = p.written([d, a])
        value = Fraction(b, 2 * a) - d
        expression = f"{first} - ({second})"
    else:
        second = f"sqrt({p.written([e, d, a * a])})"
        value = Fraction(b - d, 2 * a)
        expression = f"{first} - {second}"
    factor = rng.randint(2, 2 + level) if level > 2 else 1
    if factor > 1:
        expression, value = f"{factor}*({expression})", factor * value
    return _limit(rng, expression, "infinity", value)


def _sines(level: int, rng: Random) -> Item:
    a, b, c = rng.sample(range(2, 20 + 3 * level), 3)
    kinds = (
        (f"sin({a}x)/({b}x)", Fraction(a, b)),
        (f"sin({a}x)/sin({b}x)", Fraction(a, b)),
        (f"(exp({a}x) - 1)/({b}x)", Fraction(a, b)),
        (f"(1 - cos({a}x))/({b}x^2)", Fraction(a * a, 2 * b)),
        (f"ln(1 + {a}x)/sin({b}x)", Fraction(a, b)),
        (f"(cos({a}x) - cos({b}x))/({c}x^2)", Fraction(b * b - a * a, 2 * c)),
        (f"(exp({a}x) - 1 - {a}x)/({b}x^2)", Fraction(a * a, 2 * b)),
        (f"({a}x - sin({a}x))/({b}x^3)", Fraction(a**3, 6 * b)),
        (f"(tan({a}x) - sin({a}x))/({b}x^3)", Fraction(a**3, 2 * b)),
    )
    expression, value = rng.choice(kinds[max(0, 2 * level - 2) : 3 + 2 * level])
    return _limit(rng, expression, "0", value)


def _quotient(level: int, rng: Random) -> Item:
    at = nonzero(rng, 6 + level)
    if level < 2:
        poly = [nonzero(rng, 9), nonzero(rng, 6 + level), rng.randint(1, 3 + level)]
        value: Fraction = Fraction(p.value_at(p.derived(poly), at))
        shown = p.written(poly)
        expression = f"({shown} {signed(-int(p.value_at(poly, at)))})/({p.written([-at, 1])})"
    else:
        shift, k = rng.randint(1, 9 + level), rng.randint(1, 9 + level)
        if at + shift == 0:
            return _quotient(level, rng)
        # k/(x + shift) at `at`
        value = -Fraction(k, (at + shift) ** 2)
        height = signed(-Fraction(k, at + shift))
        expression = f"({k}/({p.written([shift, 1])}) {height})/({p.written([-at, 1])})"
    return _limit(rng, expression, str(at), value)


def _exponential(level: int, rng: Random) -> Item:
    a, b = nonzero(rng, 12 + level), nonzero(rng, 12 + level)
    c = rng.randint(1, 1 + level)
    if gcd(a, c) > 1:
        return _exponential(level, rng)
    under = "x" if c == 1 else f"({c}x)"
    expression = (
        f"(1 {'-' if a < 0 else '+'} {abs(a)}/{under})^{p.factor([0, b]) if b == 1 else f'({p.written([0, b])})'}"
    )
    return _limit(
        rng, expression, "infinity", f"exp({Fraction(a * b, c)})", "Give it exactly, as a power of e: exp(...)."
    )


LIMITS = mathematics(
    "limits",
    2,
    {
        "limits_at_a_common_zero": _common_zero,
        "limits_at_infinity": _at_infinity,
        "limits_of_roots": _roots,
        "limits_with_sines": _sines,
        "difference_quotients": _quotient,
        "limits_and_e": _exponential,
    },
    NULLS,
)
