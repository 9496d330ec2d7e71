"""Sums and series with exact values: geometric, telescoping, of powers, of k times a power, coefficients of series."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, whole, worked

ENDLESS = (
    "What is the sum of {term} over all whole numbers n >= {low}? {how}",
    "The infinite series with the terms {term}, n counting up from {low}, converges. To which number? {how}",
)
FINITE = (
    "What is the sum of {term} over k = {low}, ..., {high}? {how}",
    "Add up {term} for all whole numbers k from {low} to {high}. {how}",
)


def _ratio(level: int, rng: Random) -> Fraction:
    while True:
        ratio = Fraction(rng.choice((1, 1, 2, 3, -1, -2)[: 2 + level]), rng.randint(2, 9 + 2 * level))
        if abs(ratio) < 1:
            return ratio


def _geometric(level: int, rng: Random) -> Item:
    ratio, low = _ratio(level, rng), rng.randint(0, 2 + level)
    factor = rng.choice((-1, 1)) * rng.randint(2, 13 + 4 * level)
    text = say(rng, ENDLESS, term=f"{factor}*({ratio})^n", low=low, how=EXACT)
    return worked(text, f"{factor} {ratio} {low}", factor * ratio**low / (1 - ratio))


def _telescope(level: int, rng: Random) -> Item:
    gap, first = rng.randint(1, 4 + level), rng.randint(1, 12 + 2 * level)
    factor = rng.randint(1, 12 + 3 * level)
    # factor/((n + first)(n + first + gap)), from n = 0 on
    value = Fraction(factor, gap) * sum((Fraction(1, first + at) for at in range(gap)), Fraction())
    text = say(rng, ENDLESS, term=f"{factor}/((n + {first})(n + {first + gap}))", low=0, how=EXACT)
    return worked(text, f"{factor} {first} {gap}", value)


def _powers(level: int, rng: Random) -> Item:
    degree = 1 + (level + 1) // 2
    poly = [
        rng.randint(-9, 9),
        *(rng.randint(-3 - level, 3 + level) for _ in range(degree - 1)),
        rng.randint(1, 5 + level),
    ]
    high = rng.randint(10, 40 + 20 * level)
    text = say(rng, FINITE, term=f"({p.written(poly, 'k')})", low=1, high=high, how="Give a whole number.")
    return whole(text, f"{poly} {high}", sum(int(p.value_at(poly, k)) for k in range(1, high + 1)))


def _weighted(level: int, rng: Random) -> Item:
    ratio, a = _ratio(level, rng), rng.randint(1, 9 + level)
    b = rng.randint(0, 9)
    # sum over n >= 0 of (a n + b) ratio^n, and of n^2 ratio^n
    value = a * ratio / (1 - ratio) ** 2 + b / (1 - ratio)
    term: list[p.Number] = [b, a]
    if level > 2:
        c = rng.randint(1, level)
        term, value = [b, a, c], value + c * ratio * (1 + ratio) / (1 - ratio) ** 3
    text = say(rng, ENDLESS, term=f"{p.factor(term, 'n')}*({ratio})^n", low=0, how=EXACT)
    return worked(text, f"{term} {ratio}", value)


def _taylor(level: int, rng: Random) -> Item:
    a, b, n = nonzero(rng, 15), nonzero(rng, 9 + level), rng.randint(2 + level // 2, 9 + level)
    e = f"exp({p.written([0, a])})"
    one_less_ax, one_less_bx = p.written([1, -a]), p.written([1, -b])
    # The coefficients of exp(ax), 1/(1 - ax) and 1/(1 - bx), up to x^n.
    exponential = [Fraction(a**k, factorial(k)) for k in range(n + 1)]
    geometric, other = [Fraction(a**k) for k in range(n + 1)], [Fraction(b**k) for k in range(n + 1)]
    kinds = (
        (e, exponential[n]),
        (f"1/({one_less_ax})", geometric[n]),
        (f"({p.written([b, 1])})*{e}", b * exponential[n] + exponential[n - 1]),
        (f"1/({one_less_ax})^2", (n + 1) * geometric[n]),
        (f"ln({p.written([1, a])})", -Fraction((-a) ** n, n)),
        (f"{e}/({one_less_bx})", sum((x * y for x, y in zip(exponential, other[::-1], strict=True)), Fraction())),
        (
            f"1/(({one_less_ax})({one_less_bx}))",
            sum((x * y for x, y in zip(geometric, other[::-1], strict=True)), Fraction()),
        ),
    )
    f, value = rng.choice(kinds[min(level, 4) : 2 + level + level // 4])
    text = say(
        rng,
        (
            "What is the coefficient of x^{n} in the power series of {f} around x = 0? {how}",
            "Expand {f} in powers of x. Which number stands before x^{n}? {how}",
        ),
        n=n, f=f, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{f} {n}", value)


def _binomials(level: int, rng: Random) -> Item:
    n, a = rng.randint(4 + level, 24 + 3 * level), rng.randint(2, 15 + level)
    kinds = (
        (f"C({n},k)*{a}^k", (a + 1) ** n),
        (f"(-1)^k*C({n},k)*{a}^k", (1 - a) ** n),
        (f"(k + {a})*C({n},k)", n * 2 ** (n - 1) + a * 2**n),
        (f"k*C({n},k)*{a}^k", n * a * (a + 1) ** (n - 1)),
        (f"(k^2 + {a})*C({n},k)", n * (n + 1) * 2**n // 4 + a * 2**n),
        (f"C({n},k)*C({n + a},k)", comb(2 * n + a, n)),
    )
    term, value = rng.choice(kinds[max(0, level - 1) : 2 + level])
    text = say(
        rng, FINITE, term=term, low=0, high=n, how='C(n,k) is the binomial coefficient "n over k". Give a whole number.'
    )
    return whole(text, term, value)


SERIES = mathematics(
    "series",
    2,
    {
        "geometric_series": _geometric,
        "telescoping_series": _telescope,
        "sums_of_powers": _powers,
        "weighted_geometric_series": _weighted,
        "power_series_coefficients": _taylor,
        "binomial_sums": _binomials,
    },
)
