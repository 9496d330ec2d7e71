"""Powers and logarithms with exact values: evaluating, solving, combining, rational exponents."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import factor, written
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked

BASES = (2, 3, 5, 6, 7, 10)
MORE_BASES = (*BASES, 11, 12, 13, 14, 15)
FRACTIONS = sorted({Fraction(a, b) for a in range(1, 13) for b in (1, 2, 3, 5, 7, 9)} - {Fraction(1)})
"""Bases of rational powers."""


def _logarithm(level: int, rng: Random) -> Item:
    base = rng.choice(MORE_BASES)
    below = rng.randint(1, 3 + level)
    above = nonzero(rng, 7 + level)
    shown = Fraction(base) ** above
    text = say(
        rng,
        ("What is the logarithm of {n} to base {b}? {how}", "For which x is {b}^x = {n}? {how}"),
        n=shown, b=base**below, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{shown} {base**below}", Fraction(above, below))


def _exponent(level: int, rng: Random) -> Item:
    base = rng.choice(BASES[:4])
    s, t = rng.sample(range(1, 4 + level), 2)
    a, c = (rng.randint(1, 2 + level) for _ in range(2))
    b, d = nonzero(rng, 5 + 2 * level), nonzero(rng, 5 + 2 * level)
    if s * a == t * c:
        return _exponent(level, rng)
    left, right = f"{base**s}^({written([b, a])})", f"{base**t}^({written([d, c])})"
    text = say(
        rng,
        ("Solve {left} = {right} for x. {how}", "Which number x satisfies {left} = {right}? {how}"),
        left=left, right=right, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{left} {right}", Fraction(t * d - s * b, s * a - t * c))


def _combined(level: int, rng: Random) -> Item:
    base = rng.choice(BASES)
    count = 2 + level
    powers = [rng.randint(1, 7) for _ in range(count)]
    others = rng.sample(range(2, 12 + 3 * level), count)
    # The numbers' other factors cancel: each stands once above and once below.
    above = [base**power * other for power, other in zip(powers, others, strict=True)]
    below = others[1:] + others[:1]
    signs = " + ".join(f"log({number})" for number in above) + "".join(f" - log({number})" for number in below)
    text = say(
        rng,
        (
            "All logarithms here are to base {base}. What is {e}? {how}",
            "With log for the logarithm to base {base}, work out {e}. {how}",
        ),
        base=base, e=signs, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{base} {sorted(above)} {sorted(below)}", Fraction(sum(powers)))


def _logarithmic(level: int, rng: Random) -> Item:
    base = rng.choice((2, 3, 4, 5))
    power = rng.randint(1, 3 + level // 2)
    if level < 2:
        a, b = rng.randint(1, 4 + level), nonzero(rng, 20)
        solution = Fraction(base**power - b, a)
        left = f"log({written([b, a])})"
    else:
        # x (x + d) = base^power with a positive solution x
        power = rng.choice(list(range(2, 5 + level)))
        x = base ** rng.randint(1, power - 1) if level < 4 else base ** rng.randint(0, power)
        d = base**power // x - x
        if d == 0:
            return _logarithmic(level, rng)
        shift = nonzero(rng, 9 + level)
        solution = Fraction(x - shift)
        left = f"log({written([shift, 1])}) + log({written([d + shift, 1])})"
    text = say(
        rng,
        (
            "Solve {left} = {power} for real x, with log the logarithm to base {base}. {how}",
            "For which real x is {left} = {power}, where log is the logarithm to base {base}? {how}",
        ),
        left=left, power=power, base=base, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{left} {power} {base}", solution)


def _rational_exponent(level: int, rng: Random) -> Item:
    parts = []
    value = Fraction(1)
    for base in rng.sample(FRACTIONS, 1 + level // 2):
        root, power = rng.choice([(r, k) for r in (2, 3, 4) for k in (-3, -2, -1, 1, 2, 3) if gcd(r, k) == 1])
        shown = base**root
        parts.append(f"{f'({shown})' if shown.denominator > 1 else shown}^({Fraction(power, root)})")
        value *= base**power
    text = say(
        rng,
        ("Work out {e}. {how}", "What is {e}? {how}"),
        e=" * ".join(parts), how=EXACT,
    )  # fmt: skip
    return worked(text, f"{sorted(parts)}", value)


def _substitution(level: int, rng: Random) -> Item:
    base, shift = rng.choice((2, 3, 4, 5, 6, 7, 10)), rng.randint(-9, 9)
    i, j = rng.sample(range(-1 if level > 2 else 0, 4 + level // 2), 2)
    u, v = Fraction(base) ** i, Fraction(base) ** j
    total, last = u + v, u * v
    lead = total.denominator if total.denominator >= last.denominator else last.denominator
    first = "" if lead == 1 else f"{lead}*"
    middle, constant = total * lead, last * lead
    x = factor([shift, 1])
    text = say(
        rng,
        (
            "Find all real x with {e} = 0. List them, separated by commas.",
            "Solve {e} = 0 for real x and list all solutions, separated by commas.",
        ),
        e=f"{first}{base**2}^{x} - {middle}*{base}^{x} + {constant}",
    )
    return worked(text, f"{base} {shift} {sorted((i, j))}", f"{{{min(i, j) - shift}, {max(i, j) - shift}}}")


EXPONENTS_AND_LOGARITHMS = mathematics(
    "exponents_and_logarithms",
    2,
    {
        "values_of_logarithms": _logarithm,
        "equal_powers": _exponent,
        "sums_of_logarithms": _combined,
        "logarithmic_equations": _logarithmic,
        "rational_exponents": _rational_exponent,
        "quadratics_in_a_power": _substitution,
    },
)
