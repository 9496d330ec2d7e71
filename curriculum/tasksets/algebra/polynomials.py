"""Polynomials: remainders, coefficients of products and compositions, values from values, unknown coefficients."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, listed, mathematics, nonzero, say, whole, worked


def _drawn(degree: int, limit: int, rng: Random) -> list[p.Number]:
    return [*(rng.randint(-limit, limit) for _ in range(degree)), nonzero(rng, limit)]


def _power(power: int) -> str:
    return "x" if power == 1 else f"x^{power}"


def _remainder(level: int, rng: Random) -> Item:
    above = _drawn(3 + level, 5 + level, rng)
    below = [*(rng.randint(-4, 4) for _ in range(2 if level else 1)), 1]
    if not any(below[:-1]):
        below[0] = nonzero(rng, 4)
    left = p.remainder(above, below)
    text = say(
        rng,
        (
            "What is the remainder when {a} is divided by {b}, as polynomials in x?",
            "Divide {a} by {b} with remainder. What is the remainder, a polynomial in x or a number?",
        ),
        a=p.written(above), b=p.written(below),
    )  # fmt: skip
    return worked(text, f"{above} {below}", p.written(left), variables=("x",))


def _coefficient(level: int, rng: Random) -> Item:
    parts = [_drawn(rng.randint(1, 2 + level // 2), 4 + level, rng) for _ in range(2 + level // 2)]
    whole_product: list[p.Number] = [1]
    for part in parts:
        whole_product = p.multiplied(whole_product, part)
    power = rng.randrange(1, len(whole_product) - 1)
    text = say(
        rng,
        (
            "What is the coefficient of {power} in {product}?",
            "Multiply out {product}. Which number stands before {power}?",
        ),
        power=_power(power), product="".join(f"({p.written(part)})" for part in parts),
    )  # fmt: skip
    return whole(text, f"{sorted(map(str, parts))} {power}", int(whole_product[power]))


def _binomial(level: int, rng: Random) -> Item:
    a, b = rng.randint(1, 5 + level), nonzero(rng, 7 + level)
    n, inner = rng.randint(3 + level, 5 + 2 * level), 1 + (level > 2)
    power = rng.randint(1, n - 1)
    found: list[p.Number] = [1]
    for _ in range(n):
        found = p.multiplied(found, [b, a])
    base = p.written([b, *([0] * (inner - 1)), a])
    text = say(
        rng,
        (
            "What is the coefficient of {power} in ({base})^{n}?",
            "Expand ({base})^{n}. Which number multiplies {power}?",
        ),
        power=_power(power * inner), base=base, n=n,
    )  # fmt: skip
    return whole(text, f"{base} {n} {power * inner}", int(found[power]))


def _next_value(level: int, rng: Random) -> Item:
    degree = 1 + level if level < 4 else 4
    poly = _drawn(degree, 6 + 2 * level, rng)
    start = rng.randint(-3, 3)
    values = [int(p.value_at(poly, start + at)) for at in range(degree + 1)]
    target = start + degree + rng.randint(1, 2 + level)
    text = say(
        rng,
        (
            "A polynomial f of degree at most {degree} has {values}. What is f({target})?",
            "Of a polynomial f, whose degree is not above {degree}, it is known that {values}. Find f({target}).",
        ),
        degree=degree, target=target,
        values=listed([f"f({start + at}) = {value}" for at, value in enumerate(values)]),
    )  # fmt: skip
    return whole(text, f"{start} {values} {target}", int(p.value_at(poly, target)))


def _unknown(level: int, rng: Random) -> Item:
    root, degree = nonzero(rng, 5 + level), 2 + (level + 1) // 2
    poly = _drawn(degree, 6 + 3 * level, rng)
    at = rng.randint(1, degree - 1)
    poly[at] = 0
    rest = rng.randint(-9, 9) if level > 1 else 0
    k = Fraction(rest - p.value_at(poly, root)) / Fraction(root) ** at
    shown = f"{p.written(poly)} + kx^{at}" if at > 1 else f"{p.written(poly)} + kx"
    text = say(
        rng,
        (
            "For which number k does f(x) = {shown} have {what}? {how}",
            "The polynomial f(x) = {shown} has {what}. Find k. {how}",
        ),
        shown=shown, what=f"f({root}) = {rest}" if rest else f"the root {root}", how=EXACT,
    )  # fmt: skip
    return worked(text, f"{shown} {root} {rest}", k)


def _composition(level: int, rng: Random) -> Item:
    outer, inner = _drawn(2 + (level > 2), 3 + level, rng), _drawn(1 + (level > 1), 3 + level, rng)
    both = p.composed(outer, inner)
    power = rng.randrange(0, len(both) - 1)
    text = say(
        rng,
        (
            "Let f(x) = {outer} and g(x) = {inner}. What is the coefficient of {power} in f(g(x))?",
            "With f(x) = {outer} and g(x) = {inner}, multiply f(g(x)) out. Which number stands before {power}?",
        )
        if power
        else (
            "Let f(x) = {outer} and g(x) = {inner}. What is the constant term of f(g(x)), multiplied out?",
            "With f(x) = {outer} and g(x) = {inner}, which constant does the polynomial f(g(x)) end with?",
        ),
        outer=p.written(outer), inner=p.written(inner), power=_power(power),
    )  # fmt: skip
    return whole(text, f"{outer} {inner} {power}", int(both[power]))


POLYNOMIALS = mathematics(
    "polynomials",
    2,
    {
        "polynomial_remainder": _remainder,
        "coefficient_of_a_product": _coefficient,
        "binomial_coefficients": _binomial,
        "value_from_values": _next_value,
        "unknown_coefficient": _unknown,
        "composition": _composition,
    },
)
