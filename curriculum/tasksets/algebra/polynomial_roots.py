"""Roots of polynomials: rational ones, surds, symmetric sums of them (Vieta), double roots, new polynomials."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.exact_arithmetic import factors
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked


def _roots(level: int, rng: Random) -> Item:
    count = (2, 2, 3, 3, 4)[level]
    below = [rng.choice((1, 1, 2, 3)) if level % 2 or level == 4 else 1 for _ in range(count)]
    roots = {Fraction(nonzero(rng, 16 + 2 * level), each) for each in below}
    if len(roots) < 2:
        return _roots(level, rng)
    poly: list[p.Number] = [1]
    for root in sorted(roots):
        poly = p.multiplied(poly, [-root.numerator, root.denominator])
    text = say(
        rng,
        (
            "Find all roots of {poly}. List them, separated by commas.",
            "For which x is {poly} = 0? List all solutions, separated by commas.",
        ),
        poly=p.written(poly),
    )
    return worked(text, f"{poly}", f"{{{', '.join(map(str, sorted(roots)))}}}")


def _symmetric(level: int, rng: Random) -> Item:
    degree = 2 if level < 2 else 3
    poly = [nonzero(rng, 9 + 3 * level), *(rng.randint(-9 - level, 9 + level) for _ in range(degree - 1)), 1]
    if level % 2:
        poly[-1] = rng.randint(2, 3 + level)
    monic = [Fraction(one) / poly[-1] for one in poly]
    e1, e2 = -monic[degree - 1], monic[degree - 2]
    e3 = -monic[0] if degree == 3 else Fraction(0)
    last = e2 if degree == 2 else e3
    powers = {1: e1, 2: e1 * e1 - 2 * e2, 3: e1**3 - 3 * e1 * e2 + 3 * e3}
    reciprocal = (e1 if degree == 2 else e2) / last
    what, value = rng.choice(
        (
            ("the squares", powers[2]),
            ("the cubes", powers[3]),
            ("the reciprocals", reciprocal),
            ("the squares of the reciprocals", reciprocal**2 - 2 * (1 if degree == 2 else e1) / last),
        )[: 2 if level == 0 else 4]
    )
    text = say(
        rng,
        (
            "What is the sum of {what} of the roots of {poly}? Complex roots count, each as often as it occurs. {how}",
            "Consider all complex roots of {poly}, with multiplicity. Find the sum of {what} of these roots. {how}",
        ),
        what=what, poly=p.written(poly), how=EXACT,
    )  # fmt: skip
    return worked(text, f"{poly} {what}", value)


def surd(under: int) -> tuple[int, int]:
    """Returns (a, b) with a√b the square root of a positive number, and b square-free."""
    outside = inside = 1
    for prime, times in factors(under).items():
        outside *= prime ** (times // 2)
        inside *= prime ** (times % 2)
    return outside, inside


def _surds(level: int, rng: Random) -> Item:
    a = 1 if level < 2 else rng.randint(2, 2 + level)
    b, c = rng.randint(-10 - 3 * level, 10 + 3 * level), nonzero(rng, 15 + 5 * level)
    under = b * b - 4 * a * c
    if under <= 0 or isqrt(under) ** 2 == under:
        return _surds(level, rng)
    outside, inside = surd(under)
    larger = rng.random() < 0.5
    real, factor = Fraction(-b, 2 * a), Fraction(outside, 2 * a) * (1 if larger else -1)
    answer = p.surd_text(factor, inside, real)
    text = say(
        rng,
        (
            "What is the {which} root of {poly}? Give it exactly, with a square root.",
            "Solve {poly} = 0 and give the {which} solution in exact form, not as a decimal.",
        ),
        which="larger" if larger else "smaller", poly=p.written([c, b, a]),
    )  # fmt: skip
    return worked(text, f"{a} {b} {c} {larger}", answer)


def _double(level: int, rng: Random) -> Item:
    a, r = rng.randint(1, 3 + level), rng.randint(2, 12 + 2 * level)
    shift = nonzero(rng, 9 + 2 * level)
    # a x^2 + (k + shift) x + a r^2 has a double root where k + shift is 2 a r or its opposite.
    ks = sorted((2 * a * r - shift, -2 * a * r - shift))
    middle = f"(k {'-' if shift < 0 else '+'} {abs(shift)})x"
    text = say(
        rng,
        (
            ("For which numbers k does {first} + {middle} + {last} = 0 have exactly one solution x? List all k,"
            " separated by commas."),
            ("The graph of y = {first} + {middle} + {last} touches the x-axis. Which values can k have? List all of"
            " them, separated by commas."),
        ),
        first=p.written([0, 0, a]), middle=middle, last=a * r * r,
    )  # fmt: skip
    return worked(text, f"{a} {shift} {a * r * r}", f"{{{ks[0]}, {ks[1]}}}")


def _shifted(level: int, rng: Random) -> Item:
    degree = 2 if level < 2 else 3
    poly = [nonzero(rng, 6 + 2 * level), *(rng.randint(-6 - level, 6 + level) for _ in range(degree - 1)), 1]
    way = rng.choice(("more", "times") if level else ("more",))
    k = nonzero(rng, 2 + level) if way == "more" else rng.randint(2, 3 + level)
    if way == "more":
        found = p.composed(poly, [-k, 1])
        what = f"each {abs(k)} {'more' if k > 0 else 'less'} than a root"
    else:
        found = [one * k ** (degree - at) for at, one in enumerate(poly)]
        what = f"each {k} times a root"
    at = rng.randrange(degree)
    power = "the constant term" if at == 0 else f"the coefficient of x^{at}" if at > 1 else "the coefficient of x"
    text = say(
        rng,
        (
            ("The roots of a polynomial with leading coefficient 1 and degree {degree} are {what} of {poly}, with"
            " multiplicity. What is {power}?"),
            ("Replace the roots of {poly} by numbers that are {what} of it. Which polynomial of degree {degree} with"
            " leading coefficient 1 has these new roots? Give {power}."),
        ),
        degree=degree, what=what, poly=p.written(poly), power=power,
    )  # fmt: skip
    return worked(text, f"{poly} {way} {k} {at}", str(found[at]))


POLYNOMIAL_ROOTS = mathematics(
    "polynomial_roots",
    2,
    {
        "all_roots": _roots,
        "sums_over_roots": _symmetric,
        "surd_roots": _surds,
        "double_roots": _double,
        "new_roots": _shifted,
    },
)
