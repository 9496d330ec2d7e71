"""Largest and smallest values: on an interval, at critical points, of words problems, under a linear constraint."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked


def _with_slope_zeros(zeros: list[int], lead: int, constant: int) -> list[p.Number]:
    """Returns a polynomial with integer coefficients whose derivative has exactly these zeros."""
    found = p.integrated(p.with_roots(zeros))
    factor = 1
    for coefficient in found:
        factor *= (Fraction(coefficient) * factor).denominator
    return p.added(p.scaled(found, factor * lead), [constant])


def _extreme(level: int, rng: Random) -> Item:
    zeros = rng.sample(range(-3 - level, 4 + level), 1 + (level + 1) // 2)
    poly = [int(one) for one in _with_slope_zeros(zeros, rng.choice((1, -1)), rng.randint(-9, 9))]
    low = min(zeros) - rng.randint(0, 2)
    high = low + rng.randint(2, 5 + level)
    values = [p.value_at(poly, x) for x in {low, high, *(zero for zero in zeros if low <= zero <= high)}]
    largest = rng.random() < 0.5
    text = say(
        rng,
        (
            "What is the {which} value of f(x) = {f} for {low} <= x <= {high}? {how}",
            "On the closed interval [{low}, {high}], what is the {which} value that {f} takes? {how}",
        ),
        which="largest" if largest else "smallest", f=p.written(poly), low=low, high=high, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{poly} {low} {high} {largest}", str(max(values) if largest else min(values)))


def _critical(level: int, rng: Random) -> Item:
    zeros = sorted(rng.sample(range(-4 - 2 * level, 5 + 2 * level), 2 if level < 3 else 3))
    poly = [int(one) for one in _with_slope_zeros(zeros, rng.choice((1, -1)), rng.randint(-9, 9))]
    text = say(
        rng,
        (
            "At which x does f(x) = {f} have a local minimum or maximum? List all of them, separated by commas.",
            "List, separated by commas, all critical points x of {f}.",
        ),
        f=p.written(poly),
    )
    return worked(text, f"{poly}", f"{{{', '.join(map(str, zeros))}}}")


def _vertex(level: int, rng: Random) -> Item:
    a, b, c = nonzero(rng, 3 + level), nonzero(rng, 9 + 4 * level), rng.randint(-9 - 3 * level, 9 + 3 * level)
    value = c - Fraction(b * b, 4 * a)
    text = say(
        rng,
        (
            "What is the {which} value of {f} over all real x? {how}",
            "Over all real numbers x, f(x) = {f} has a {which} value. Which? {how}",
        ),
        which="smallest" if a > 0 else "largest", f=p.written([c, b, a]), how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {b} {c}", value)


def _fence(level: int, rng: Random) -> Item:
    length = rng.randint(20, 320 + 100 * level)
    walls, inner = rng.choice(((0, 0), (1, 0), (0, 1), (1, 1), (1, 2), (0, 2), (1, 3), (0, 3))[: 2 + 2 * level])
    # x walls of the one direction, y of the other: x_count x + y_count y = length
    across, along = 2 + inner, 2 - walls
    area = Fraction(length * length, 4 * across * along)
    wall = " A straight wall serves as one whole side, which needs no fence." if walls else ""
    within = (
        f" Inside, {inner} more fence{'s' if inner > 1 else ''} divide{'s' if inner == 1 else ''} it,"
        f" {'all ' if inner > 1 else ''}parallel to the"
        f" sides{' that touch the wall' if walls else ' of one direction'}."
        if inner
        else ""
    )
    text = say(
        rng,
        (
            ("A rectangular field is to be fenced with {length} m of fence.{wall}{within} How many square metres can it"
            " have at most? Give the exact number without a unit."),
            ("With {length} m of fence, a rectangle of ground is enclosed.{wall}{within} What is the largest possible"
            " area, in square metres? Give the exact number without a unit."),
        ),
        length=length, wall=wall, within=within,
    )  # fmt: skip
    return worked(text, f"{length} {walls} {inner}", area)


def _constrained(level: int, rng: Random) -> Item:
    a, b = rng.randint(1, 5 + level), rng.randint(1, 5 + level)
    s, t = (1, 1) if level < 2 else (rng.randint(1, 2 + level), rng.randint(1, 2 + level))
    c = nonzero(rng, 15 + 8 * level)
    # the smallest s x^2 + t y^2 with a x + b y = c
    value = Fraction(c * c) / (Fraction(a * a, s) + Fraction(b * b, t))
    text = say(
        rng,
        (
            "Real numbers x and y satisfy {line} = {c}. What is the smallest possible value of {form}? {how}",
            "What is the minimum of {form} over all points of the line {line} = {c}? {how}",
        ),
        line=p.linear((a, b), ("x", "y")), c=c, form=p.linear((s, t), ("x^2", "y^2")), how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {b} {c} {s} {t}", value)


def _box(level: int, rng: Random) -> Item:
    # the product x^m y^n with a x + b y = s is largest at a x = m s/(m + n)
    m, n = rng.randint(1, 1 + (level + 1) // 2), rng.randint(1, 1 + level // 2)
    a, b, total = rng.randint(1, 5), rng.randint(1, 5), rng.randint(4, 50 + 5 * level)
    x, y = Fraction(m * total, (m + n) * a), Fraction(n * total, (m + n) * b)
    text = say(
        rng,
        (
            "Positive numbers x and y satisfy {line} = {total}. What is the largest possible value of {form}? {how}",
            "Numbers x, y > 0 satisfy {line} = {total}. Find the maximum of {form}. {how}",
        ),
        total=total, line=p.linear((a, b), ("x", "y")), how=EXACT,
        form=f"{'x' if m == 1 else f'x^{m}'}*{'y' if n == 1 else f'y^{n}'}",
    )  # fmt: skip
    return worked(text, f"{total} {sorted(((a, m), (b, n)))}", x**m * y**n)


OPTIMIZATION = mathematics(
    "optimization",
    2,
    {
        "extremes_on_an_interval": _extreme,
        "critical_points": _critical,
        "vertices": _vertex,
        "fences": _fence,
        "least_squares_on_a_line": _constrained,
        "products_of_a_given_sum": _box,
    },
)
