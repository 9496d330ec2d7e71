"""Complex numbers with rational parts: products, quotients, powers, equations, moduli, polynomials with given roots."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked

FORM = "Write it as a + bi with exact numbers a and b."


@dataclass(frozen=True)
class Gaussian:
    """Complex number with rational parts."""

    re: Fraction
    im: Fraction

    def __add__(self, other: Gaussian) -> Gaussian:
        return Gaussian(self.re + other.re, self.im + other.im)

    def __mul__(self, other: Gaussian) -> Gaussian:
        return Gaussian(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    @property
    def square(self) -> Fraction:
        """Square of the number's distance from 0."""
        return self.re**2 + self.im**2

    def inverse(self) -> Gaussian:
        return Gaussian(self.re / self.square, -self.im / self.square)

    def __str__(self) -> str:
        return p.linear((self.re, self.im), ("", "i"))


def _drawn(limit: int, rng: Random) -> Gaussian:
    return Gaussian(Fraction(nonzero(rng, limit)), Fraction(nonzero(rng, limit)))


def _complex(text: str, key: str, value: Gaussian) -> Item:
    return worked(f"{text} {FORM}", key, str(value), domain="complex")


def _product(level: int, rng: Random) -> Item:
    parts = [_drawn(4 + 3 * level, rng) for _ in range(2 + level // 2)]
    value = Gaussian(Fraction(1), Fraction(0))
    for part in parts:
        value *= part
    shown = "".join(f"({part})" for part in parts)
    return _complex(say(rng, ("Multiply out {e}.", "What is {e}?"), e=shown), f"{sorted(map(str, parts))}", value)


def _quotient(level: int, rng: Random) -> Item:
    above, below = _drawn(4 + 3 * level, rng), _drawn(3 + 2 * level, rng)
    value, shown = above * below.inverse(), f"({above})/({below})"
    if level > 2:
        more = _drawn(3 + level, rng)
        value, shown = value + more, f"{shown} + ({more})"
    return _complex(say(rng, ("Compute {e}.", "What is {e}?"), e=shown), shown, value)


def _power(level: int, rng: Random) -> Item:
    base, n = _drawn(7 + level // 2, rng), rng.randint(3 + level, 5 + level)
    value = Gaussian(Fraction(1), Fraction(0))
    for _ in range(n):
        value *= base
    text = say(rng, ("Compute ({z})^{n}.", "Let z = {z}. What is z^{n}?"), z=base, n=n)
    return _complex(text, f"{base} {n}", value)


def _linear(level: int, rng: Random) -> Item:
    factor, term, z = _drawn(3 + level, rng), _drawn(5 + 2 * level, rng), _drawn(4 + 2 * level, rng)
    if level > 1:
        z = Gaussian(z.re / rng.randint(1, 3), z.im / rng.randint(1, 3))
    total = factor * z + term
    text = say(
        rng,
        ("Solve ({a})z + ({b}) = {c} for the complex number z.", "Which complex z satisfies ({a})z + ({b}) = {c}?"),
        a=factor, b=term, c=total,
    )  # fmt: skip
    return _complex(text, f"{factor} {term} {total}", z)


def _conjugate(level: int, rng: Random) -> Item:
    a, b, z = rng.randint(2, 5 + level), rng.randint(2, 6 + level), _drawn(6 + 3 * level, rng)
    if a == b:
        a += 1
    turn = level > 2
    # a z + b w = c with w the conjugate of z; from level 3 on z has a complex factor.
    factor = Gaussian(Fraction(a), Fraction(nonzero(rng, 3)) if turn else Fraction(0))
    if factor.square == b * b:
        return _conjugate(level, rng)
    total = factor * z + Gaussian(b * z.re, -b * z.im)
    text = say(
        rng,
        (
            "Let w be the complex conjugate of z. Find z with {a}z + {b}w = {c}.",
            "A complex number z and its conjugate w satisfy {a}z + {b}w = {c}. What is z?",
        ),
        a=f"({factor})" if turn else factor, b=b, c=total,
    )  # fmt: skip
    return _complex(text, f"{factor} {b} {total}", z)


def _modulus(level: int, rng: Random) -> Item:
    parts = [(_drawn(3 + 2 * level, rng), rng.choice((1, 2, 3)[: 1 + level // 2])) for _ in range(2)]
    (a, m), (b, n) = parts
    over = level > 0 and rng.random() < 0.5
    value = a.square**m / b.square**n if over else a.square**m * b.square**n
    first, second = (f"({z})" if k == 1 else f"({z})^{k}" for z, k in parts)
    text = say(
        rng,
        ("What is |z|^2 for z = {e}? {how}", "Find the square of the absolute value of {e}. {how}"),
        e=f"{first}/{second}" if over else f"{first}{second}", how=EXACT,
    )  # fmt: skip
    return worked(text, f"{a} {m} {b} {n} {over}", value)


def _with_root(level: int, rng: Random) -> Item:
    z = _drawn(6 + 2 * level, rng)
    quadratic: list[p.Number] = [z.square, -2 * z.re, 1]
    real = nonzero(rng, 4 + level)
    poly = p.multiplied(quadratic, [-real, 1]) if level > 1 else quadratic
    x = rng.choice(list(range(-3 - level, 4 + level)))
    given = f"the roots {z} and {real}" if level > 1 else f"the root {z}"
    text = say(
        rng,
        (
            ("A polynomial f of degree {degree} with real coefficients and leading coefficient 1 has {given}. What is"
            " f({x})? {how}"),
            ("Of f it is known that its degree is {degree}, that its coefficients are real, the leading one 1, and that"
            " it has {given}. Find f({x}). {how}"),
        ),
        degree=len(poly) - 1, given=given, x=x, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{poly} {z.im} {x}", str(p.value_at(poly, x)))


COMPLEX_NUMBERS = mathematics(
    "complex_numbers",
    2,
    {
        "complex_products": _product,
        "complex_quotients": _quotient,
        "complex_powers": _power,
        "complex_linear_equations": _linear,
        "conjugates": _conjugate,
        "moduli": _modulus,
        "real_polynomials_with_a_root": _with_root,
    },
    ("0", "1", "i"),
)
