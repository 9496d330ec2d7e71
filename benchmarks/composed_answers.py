"""Answers of composed problems, read from their words and found by other means than those that made them.

`answer_of(text)` reads a problem sentence by sentence. Steps that can be counted out are computed by SymPy or by
counting; the others by a second algorithm: periods instead of exponents, blocks of residues instead of Euclid's
algorithm, digit sums instead of Legendre. `literal=True` refuses those others unless one call of SymPy or one known
formula solves them: it is what a script does that reads each sentence and does what it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import sympy
from sympy.ntheory.continued_fraction import continued_fraction

X = sympy.Symbol("x")
READERS: list[tuple[re.Pattern[str], Callable[..., Any], bool]] = []
SUFFIX = r" (?:Give an exact fraction|List its elements|Give exact coordinates \(x, y\))\.$"
ASKED = (
    r"Which polynomial in x, multiplied out, is (.*)\?|Find, as an exact fraction, (.*)\."
    r"|Find the exact coordinates \(x, y\) of (.*)\.|What is (.*)\?|Find (.*)\."
)
DEFINED = r"(?:Let (\w)(?:\(x\))? be|Write (\w)(?:\(x\))? for) (.*)\."


class TooLong(Exception):
    """Following the words literally takes more operations than a call of the tool allows."""


def reads(pattern: str, huge: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def note(find: Callable[..., Any]) -> Callable[..., Any]:
        READERS.append((re.compile(pattern), find, huge))
        return find

    return note


def answer_of(text: str, literal: bool = False) -> str:
    """Returns the answer of a composed problem in plain notation. Raises TooLong, in literal mode only."""
    known: dict[str, Any] = {}
    sentences = re.split(r"(?<=[.?]) (?=(?:Let|Write|What|Find|Find,|Which) )", re.sub(SUFFIX, "", text))
    for sentence in sentences:
        if given := re.fullmatch(r"Let (\w)(?:\(x\))? = (.*)\.", sentence):
            known[given[1]] = _given(given[2])
        elif defined := re.fullmatch(DEFINED, sentence):
            known[defined[1] or defined[2]] = value_of(defined[3], known, literal)
    asked = re.fullmatch(ASKED, sentences[-1])
    assert asked is not None, sentences[-1]
    return _plain(value_of(next(filter(None, asked.groups())), known, literal))


def value_of(thing: str, known: dict[str, Any], literal: bool) -> Any:
    for pattern, find, huge in READERS:
        if found := pattern.fullmatch(thing):
            if huge and literal:
                raise TooLong(thing)
            return find(*(_argument(one, known) for one in found.groups()))
    raise ValueError(f"unread: {thing}")


def _argument(text: str, known: dict[str, Any]) -> Any:
    if text in known:
        return known[text]
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _given(text: str) -> Any:
    if text.startswith("{"):
        return [int(one) for one in text[1:-1].split(", ")]
    if text.startswith("("):
        return tuple(Fraction(one) for one in text[1:-1].split(", "))
    if "x" in text:
        return polynomial(text)
    return Fraction(text) if "/" in text else int(text)


def polynomial(text: str) -> sympy.Poly:
    return sympy.Poly(sympy.sympify(re.sub(r"(\d)x", r"\1*x", text).replace("^", "**")), X)


def _plain(value: Any) -> str:
    if isinstance(value, sympy.Poly):
        return str(value.as_expr())
    if isinstance(value, list):
        return f"{{{', '.join(map(str, sorted(set(value))))}}}"
    return f"({value[0]}, {value[1]})" if isinstance(value, tuple) else str(value)


def exact(value: Any) -> Fraction:
    return Fraction(int(value.p), int(value.q))


@reads(r"the sum of all positive divisors of (\w)")
def _(n: int) -> int:
    return int(sympy.divisor_sigma(n))


@reads(r"the number of whole numbers from 1 to (\w) that have no common divisor with \w other than 1")
def _(n: int) -> int:
    return int(sympy.totient(n))


@reads(r"the remainder when (\d+)\*(\w) \+ (\d+) is divided by (\d+)")
def _(k: int, n: int, c: int, m: int) -> int:
    return (k * n + c) % m


@reads(r"the remainder when (\w)\^(\d+) is divided by (\d+)")
def _(n: int, k: int, p: int) -> int:
    found = 1
    for _ in range(k):
        found = found * n % p
    return found


@reads(r"the whole number z from 1 to (\d+) for which (\w)\*z leaves the remainder 1 when divided by \d+")
def _(last: int, n: int) -> int:
    return next(z for z in range(1, last + 1) if n * z % (last + 1) == 1)


@reads(r"the number that the decimal digits of (\w) denote when they are read in base (\d+)")
def _(n: int, b: int) -> int:
    return sum(int(digit) * b**place for place, digit in enumerate(reversed(str(n))))


@reads(r"the sum of the decimal digits of (\w)\^(\d+)")
def _(n: int, k: int) -> int:
    left, total = n**k, 0
    while left:
        total, left = total + left % 10, left // 10
    return total


@reads(r"the (smallest|\w+ smallest) prime number greater than (\w)")
def _(which: str, n: int) -> int:
    order = ("smallest", "second", "third", "fourth", "fifth", "sixth").index(which.split()[0])
    return int(sympy.nextprime(n, order + 1))


@reads(r"the sum of the whole numbers from 1 to (\w) that are divisible by (\d+) or by (\d+)")
def _(n: int, p: int, q: int) -> int:
    return sum(set(range(p, n + 1, p)) | set(range(q, n + 1, q)))


@reads(r"the number of points with whole coordinates whose distance from \(0, 0\) is at most the root of (\w)")
def _(n: int) -> int:
    # Jacobi: the points with x^2 + y^2 = k are 4 (d1(k) - d3(k)), summed over k by their divisors.
    return 1 + 4 * sum(n // d - n // (d + 2) for d in range(1, n + 1, 4))


@reads(r"the largest whole number that cannot be written as (\w)\*y \+ (\d+)\*z with whole numbers y, z >= 0")
def _(n: int, c: int) -> int:
    return max(n * y for y in range(c)) - c  # the largest of the least payable amounts, one per residue, less c


@reads(r"the smallest whole number z >= 0 for which (\d+) divides z - (\w) and (\d+) divides z - (\d+)")
def _(p: int, n: int, q: int, r: int) -> int:
    return next(z for z in range(r, p * q, q) if (z - n) % p == 0)


@reads(r"the remainder when the product (\w)\*(\w) is divided by (\d+)")
def _(a: int, b: int, m: int) -> int:
    return a * b % m


@reads(r"the remainder when the number of ways to choose (\d+) of (\w) people is divided by (\d+)")
def _(k: int, n: int, p: int) -> int:
    return int(sympy.binomial(n, k) % p)


@reads(r"the sum of the fractions 1/\(k\(k \+ 1\)\) over all whole numbers k from (\d+) to (\w)")
def _(c: int, n: int) -> Fraction:
    if n - c < 500:
        return sum((Fraction(1, k * (k + 1)) for k in range(c, n + 1)), Fraction())
    return exact(sympy.Rational(n - c + 1, c * (n + 1)))


@reads(r"the probability that a whole number drawn at random from 1 to (\w) is divisible by (\d+) or by (\d+)")
def _(n: int, p: int, q: int) -> Fraction:
    return Fraction(len(set(range(p, n + 1, p)) | set(range(q, n + 1, q))), n)


@reads(r"the sum of the infinite geometric series with first term (\w) and ratio (\d+)/(\d+)")
def _(n: int, p: int, q: int) -> Fraction:
    return Fraction(n * q, q - p)


@reads(r"x\^2 - ux \+ v, where u and v are the remainders when (\w) is divided by (\d+) and by (\d+)")
def _(n: int, p: int, q: int) -> sympy.Poly:
    return sympy.Poly(X**2 - n % p * X + n % q, X)


@reads(r"the polynomial whose value at x = (\d+) is (\w) and whose coefficients are digits from 0 to \d+")
def _(b: int, n: int) -> sympy.Poly:
    return sympy.Poly(sympy.ntheory.digits(n, b)[1:], X)


@reads(r"the set of the positive divisors of (\w)")
def _(n: int) -> list[int]:
    return [each for each in range(1, n + 1) if n % each == 0] if n < 10**5 else sympy.divisors(n)


@reads(r"the set of the remainders that (\w), \w\^2, ..., \w\^(\d+) leave when divided by (\d+)")
def _(n: int, k: int, m: int) -> list[int]:
    return [n**power % m for power in range(1, k + 1)]


@reads(r"the point whose coordinates are the remainders when (\w) is divided by (\d+) and by (\d+)")
def _(n: int, p: int, q: int) -> tuple[int, int]:
    return n % p, n % q


@reads(r"(\d+) times the numerator plus (\d+) times the denominator of (\w) in lowest terms")
def _(p: int, q: int, r: Fraction) -> int:
    return p * r.numerator + q * r.denominator


@reads(r"the largest whole number that is at most (\d+)\*(\w)")
def _(m: int, r: Fraction) -> int:
    return int(sympy.floor(sympy.Rational(m * r.numerator, r.denominator)))


@reads(r"the sum of the digits in the shortest repeating block of the decimal expansion of (\w)")
def _(r: Fraction) -> int:
    seen: dict[int, int] = {}
    digits: list[int] = []
    rest = r.numerator % r.denominator
    while rest not in seen:
        seen[rest] = len(digits)
        digit, rest = divmod(10 * rest, r.denominator)
        digits.append(digit)
    return sum(digits[seen[rest] :])


@reads(r"(\d+) times the sum of the terms of the simple continued fraction of (\w)")
def _(k: int, r: Fraction) -> int:
    return int(k * sum(continued_fraction(sympy.Rational(r.numerator, r.denominator))))


@reads(r"\((\d+)\*(\w) \+ (\d+)\)/\((\d+)\*\w \+ (\d+)\)")
def _(p: int, r: Fraction, q: int, s: int, t: int) -> Fraction:
    n, d = r.numerator, r.denominator
    return Fraction(p * n + q * d, s * n + t * d)


@reads(r"the term u\((\d+)\) of the sequence with u\(0\) = (\w) and u\(k \+ 1\) = (.*)")
def _(n: int, r: Fraction, rule: str) -> Fraction:
    u = sympy.Rational(r.numerator, r.denominator)
    right = sympy.sympify(rule.replace("u(k)", "u"))
    for _ in range(n):
        u = right.subs("u", u)
    return exact(u)


@reads(r"ux\^2 - vx \+ (\d+), where u/v is (\w) in lowest terms")
def _(c: int, r: Fraction) -> sympy.Poly:
    return sympy.Poly([r.numerator, -r.denominator, c], X)


@reads(
    r"the point between \((-?\d+), (-?\d+)\) and \((-?\d+), (-?\d+)\) whose distances from them have the ratio (\w),"
    r" in this order"
)
def _(x: int, y: int, z: int, w: int, r: Fraction) -> tuple[Fraction, Fraction]:
    n, d = r.numerator, r.denominator
    return Fraction(d * x + n * z, n + d), Fraction(d * y + n * w, n + d)


@reads(r"the absolute value of (\w)\((-?\d+)\)")
def _(f: sympy.Poly, x: int) -> int:
    return abs(int(f.eval(x)))


@reads(r"the sum of the squares of the coefficients of (\w)\(x\)")
def _(f: sympy.Poly) -> int:
    return int(sum(one**2 for one in f.all_coeffs()))


@reads(r"the absolute value of the coefficient of (\S+) in the expansion of (\w)\(x\)\^(\d+)")
def _(power: str, f: sympy.Poly, k: int) -> int:
    return abs(int((f**k).coeff_monomial(X ** int(power.partition("^")[2] or 1))))


@reads(r"the remainder when (\w)\(1\) \+ \w\(2\) \+ ... \+ \w\((\d+)\) is divided by (\d+)")
def _(f: sympy.Poly, n: int, m: int) -> int:
    return _sum_of_values(f, n) % m


def _sum_of_values(f: sympy.Poly, n: int) -> int:
    """By Newton's forward differences: the sum of binomial(n, k + 1) times the k-th difference at 1."""
    row, total, binomial = [int(f.eval(x)) for x in range(1, f.degree() + 2)], 0, 1
    for k in range(f.degree() + 1):
        binomial = binomial * (n - k) // (k + 1)
        total += binomial * row[0]
        row = [b - a for a, b in pairwise(row)]
    return total


@reads(r"the absolute value of the integral of (\w)\(x\) over x from (-?\d+) to (-?\d+)")
def _(f: sympy.Poly, low: int, high: int) -> Fraction:
    return exact(abs(sympy.integrate(f.as_expr(), (X, low, high))))


@reads(r"the absolute value of the sum of the squares of all complex roots of (\w)\(x\), counted with multiplicity")
def _(f: sympy.Poly) -> Fraction:
    # The trace of the square of the companion matrix.
    monic, n = f.monic().all_coeffs(), f.degree()
    companion = sympy.Matrix(n, n, lambda i, j: -monic[n - i] if j == n - 1 else int(i == j + 1))
    return exact(abs((companion**2).trace()))


@reads(r"the derivative of x\*(\w)\(x\)")
def _(f: sympy.Poly) -> sympy.Poly:
    return (f * sympy.Poly(X, X)).diff(X)


@reads(r"the remainder when (\w)\(x\) is divided by (x\^2.*)")
def _(f: sympy.Poly, by: str) -> sympy.Poly:
    return sympy.rem(f, polynomial(by))


@reads(r"(\w)\((x [+-] \d+)\), expanded in powers of x")
def _(f: sympy.Poly, inner: str) -> sympy.Poly:
    return f.compose(polynomial(inner))


@reads(r"the product \((x [+-] \d+)\)\*(\w)\(x\), multiplied out")
def _(by: str, f: sympy.Poly) -> sympy.Poly:
    return polynomial(by) * f


@reads(r"the set of the remainders that (\w)\(0\), \w\(1\), ..., \w\((\d+)\) leave when divided by (\d+)")
def _(f: sympy.Poly, k: int, m: int) -> list[int]:
    return [int(f.eval(x)) % m for x in range(k + 1)]


@reads(r"the point in which the tangents to the curve y = (\w)\(x\) at x = (-?\d+) and at x = (-?\d+) meet")
def _(f: sympy.Poly, u: int, v: int) -> tuple[Fraction, Fraction]:
    y, slope = sympy.Symbol("y"), f.diff(X)
    lines = [y - f.eval(at) - slope.eval(at) * (X - at) for at in (u, v)]
    found = sympy.solve(lines, [X, y])
    return exact(found[X]), exact(found[y])


@reads(r"the remainder when the sum of the cubes of the elements of (\w) is divided by (\d+)")
def _(s: list[int], m: int) -> int:
    return sum(pow(one, 3, m) for one in set(s)) % m


@reads(r"the sum of the products of all pairs of different elements of (\w)")
def _(s: list[int]) -> int:
    return (sum(set(s)) ** 2 - sum(one * one for one in set(s))) // 2


@reads(r"the sum of the differences, larger minus smaller, over all pairs of different elements of (\w)")
def _(s: list[int]) -> int:
    return sum(abs(a - b) for a in set(s) for b in set(s)) // 2


@reads(r"the remainder when the least common multiple of the non-zero elements of (\w) is divided by (\d+)")
def _(s: list[int], m: int) -> int:
    return int(sympy.ilcm(*{one for one in s if one}, 1)) % m


@reads(r"the sum of the element sums of all those subsets of (\w) whose element sum is divisible by (\d+)")
def _(s: list[int], m: int) -> int:
    sums = [0]
    for one in set(s):
        sums += [one + total for total in sums]
    return sum(total for total in sums if total % m == 0)


@reads(r"the set of the remainders that the squares of the elements of (\w) leave when divided by (\d+)")
def _(s: list[int], m: int) -> list[int]:
    return [one**2 % m for one in s]


@reads(r"the set of the remainders of the sums of two different elements of (\w) on division by (\d+)")
def _(s: list[int], m: int) -> list[int]:
    return [(a + b) % m for a in set(s) for b in set(s) if a != b]


@reads(r"the set of the remainders of (\w)\*z on division by (\d+), where z runs through (\w)")
def _(b: int, m: int, s: list[int]) -> list[int]:
    return [b * one % m for one in s]


@reads(r"the monic polynomial of degree (\d+) whose roots are the \d+ smallest elements of (\w)")
def _(n: int, s: list[int]) -> sympy.Poly:
    return sympy.Poly.from_expr(sympy.prod(X - one for one in sorted(set(s))[:n]), X)


@reads(r"the mean squared deviation of the elements of (\w) from their mean")
def _(s: list[int]) -> Fraction:
    some = set(s)
    return Fraction(sum(one * one for one in some), len(some)) - Fraction(sum(some), len(some)) ** 2


@reads(r"the expected value of the larger of two different elements of (\w), drawn at random")
def _(s: list[int]) -> Fraction:
    some = sorted(set(s))
    return Fraction(2 * sum(place * one for place, one in enumerate(some)), len(some) * (len(some) - 1))


@reads(
    r"the point \(u, v\), where u is the sum of the elements of (\w) modulo (\d+) and v that of their squares modulo"
    r" (\d+)"
)
def _(s: list[int], p: int, q: int) -> tuple[int, int]:
    return sum(set(s)) % p, sum(one**2 for one in set(s)) % q


def _complex(point: Sequence[Any]) -> Any:
    return sympy.Rational(str(point[0])) + sympy.I * sympy.Rational(str(point[1]))


def _pair(z: Any) -> tuple[Fraction, Fraction]:
    return tuple(exact(part) for part in sympy.expand(z).as_real_imag())  # type: ignore[return-value]


@reads(r"the image of (\w) under the rotation by 90 degrees counterclockwise about \((-?\d+), (-?\d+)\)")
def _(at: tuple[Fraction, Fraction], u: int, v: int) -> tuple[Fraction, Fraction]:
    centre = _complex((u, v))
    return _pair(centre + sympy.I * (_complex(at) - centre))


def _direction(line: str) -> tuple[Any, Any]:
    """A point of the line and its direction, as complex numbers."""
    left, right = line.split(" = ")
    y = sympy.Symbol("y")
    equation = sympy.sympify(re.sub(r"(\d)([xy])", r"\1*\2", left)) - int(right)
    u, v = equation.coeff(X), equation.coeff(y)
    start = sympy.Rational(int(right), 1) * (u + sympy.I * v) / (u * u + v * v)
    return start, v - sympy.I * u


@reads(r"the mirror image of (\w) in the line (.*)")
def _(at: tuple[Fraction, Fraction], line: str) -> tuple[Fraction, Fraction]:
    start, way = _direction(line)
    return _pair(start + way / sympy.conjugate(way) * sympy.conjugate(_complex(at) - start))


@reads(r"the point of the line (.*) closest to (\w)")
def _(line: str, at: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    start, way = _direction(line)
    mirrored = start + way / sympy.conjugate(way) * sympy.conjugate(_complex(at) - start)
    return _pair((mirrored + _complex(at)) / 2)


@reads(r"the image of (\w) under the central dilation with centre \((-?\d+), (-?\d+)\) and factor (-?\d+)")
def _(at: tuple[Fraction, Fraction], u: int, v: int, k: int) -> tuple[Fraction, Fraction]:
    return _pair(k * _complex(at) + (1 - k) * _complex((u, v)))


@reads(r"the square of the distance between (\w) and \((-?\d+), (-?\d+)\)")
def _(at: tuple[Fraction, Fraction], u: int, v: int) -> int:
    return int(sympy.expand(sympy.Abs(_complex(at) - _complex((u, v))) ** 2))


@reads(r"twice the area of the triangle with the corners (\w), \((-?\d+), (-?\d+)\) and \((-?\d+), (-?\d+)\)")
def _(at: tuple[Fraction, Fraction], u: int, v: int, w: int, z: int) -> int:
    rows = [[int(at[0]), int(at[1]), 1], [u, v, 1], [w, z, 1]]
    return abs(int(sympy.Matrix(rows).det()))


@reads(
    r"the number of points with whole coordinates in the triangle with the corners (\w), \((-?\d+), (-?\d+)\) and"
    r" \((-?\d+), (-?\d+)\), its boundary included"
)
def _(at: tuple[Fraction, Fraction], u: int, v: int, w: int, z: int) -> int:
    return columns([(int(at[0]), int(at[1])), (u, v), (w, z)])


def columns(corners: Sequence[tuple[int, int]]) -> int:
    """Counts the lattice points of a triangle column by column: floors of its edges, each summed by `line_sum`."""
    a, b, c = sorted(corners)
    if a[0] == c[0]:
        return c[1] - a[1] + 1
    above = (c[0] - a[0]) * (b[1] - a[1]) > (c[1] - a[1]) * (b[0] - a[0])
    sign = 1 if above else -1
    a, b, c = ((x, sign * y) for x, y in (a, b, c))  # now b is above the edge from a to c, or on it
    upper = (
        line_sum(a, b, a[0], b[0] - 1) + line_sum(b, c, max(b[0], a[0]), c[0] - 1)
        if a[0] < b[0]
        else line_sum(b, c, a[0], c[0] - 1)
    )
    upper += max(b[1], c[1]) if b[0] == c[0] else c[1]
    lower = -line_sum((a[0], -a[1]), (c[0], -c[1]), a[0], c[0])
    return upper - lower + c[0] - a[0] + 1


def line_sum(a: tuple[int, int], b: tuple[int, int], low: int, high: int) -> int:
    """Returns the sum of floor(y) over x from low to high, for y on the line through a and b."""
    if high < low or a[0] == b[0]:
        return 0
    run, rise = b[0] - a[0], b[1] - a[1]
    return _floors(high - low + 1, rise, rise * (low - a[0]) + a[1] * run, run)


def _floors(n: int, a: int, b: int, m: int) -> int:
    """Returns the sum of floor((a k + b)/m) over k from 0 to n - 1, recursively on the transposed triangle."""
    if n == 0:
        return 0
    total = n * (n - 1) // 2 * (a // m) + n * (b // m)
    a, b = a % m, b % m
    top = (a * (n - 1) + b) // m
    return total + (top * (n - 1) - _floors(top, m, m - b - 1, a) if top else 0)


@reads(r"the square of the distance of (\w) from the line (.*)")
def _(at: tuple[Fraction, Fraction], line: str) -> Fraction:
    start, way = _direction(line)
    across = (_complex(at) - start) * sympy.conjugate(way)
    return exact(sympy.im(sympy.expand(across)) ** 2 / sympy.expand(way * sympy.conjugate(way)))


@reads(r"the polynomial ux\^2 \+ (\d+)x \+ v, where \(u, v\) = (\w)")
def _(c: int, at: tuple[Fraction, Fraction]) -> sympy.Poly:
    return sympy.Poly([int(at[0]), c, int(at[1])], X)


@reads(r"the set of the remainders of u \+ v, u \+ 2v, ..., u \+ (\d+)v on division by (\d+), where \(u, v\) = (\w)")
def _(k: int, m: int, at: tuple[Fraction, Fraction]) -> list[int]:
    return [int(at[0] + step * at[1]) % m for step in range(1, k + 1)]


def by_period(levels: Sequence[int], modulus: int) -> int:
    """Returns a power tower modulo a number by the period of the powers of its base, which are listed."""
    base, rest = levels[0], levels[1:]
    if not rest:
        return base % modulus
    powers, seen, value = [], {}, 1 % modulus
    while value not in seen:
        seen[value] = len(powers)
        powers.append(value)
        value = value * base % modulus
    start, period = seen[value], len(powers) - seen[value]
    exponent = small_tower(rest, len(powers))
    if exponent is not None and exponent < len(powers):
        return powers[exponent]
    return powers[start + (by_period(rest, period) - start) % period]


def small_tower(levels: Sequence[int], limit: int) -> int | None:
    """Returns a tower's value; None if it is above the limit."""
    found = 1
    for base in reversed(levels):
        if base > 1 and found > limit.bit_length() + 1:
            return None
        found = base**found
    return found if found <= limit else None


@reads(r"the remainder when (\d+)\^\((\w)\^\(\w\^\w\)\) is divided by (\d+)", huge=True)
def _(c: int, n: int, m: int) -> int:
    return by_period((c, n, n, n), m)


@reads(r"the remainder modulo (\d+) of the Fibonacci number F\(10\^(\d+) \+ (\w)\), where .*", huge=True)
def _(m: int, k: int, n: int) -> int:
    terms, pair = [0], (1, 1)
    while pair != (0, 1):
        terms.append(pair[0] % m)
        pair = pair[1] % m, sum(pair) % m
    return terms[(10**k + n) % len(terms)]


@reads(
    r"the remainder modulo (\d+) of the number of whole numbers from 1 to 10\^(\d+) \+ (\w) with the digit sum (\d+)",
    huge=True,
)
def _(m: int, k: int, n: int, total: int) -> int:
    free, tight = [0] * (total + 1), 0
    for digit in map(int, str(10**k + n)):
        after = [sum(free[max(0, at - 9) : at + 1]) for at in range(total + 1)]
        for lower in range(digit):
            if tight + lower <= total:
                after[tight + lower] += 1
        free, tight = after, tight + digit
    return (free[total] + (tight == total)) % m


@reads(
    r"the remainder modulo (\d+) of the sum of floor\((\d+)k/(\d+)\) over all whole numbers k from 1 to 10\^12 \+ (\w)",
    huge=True,
)
def _(m: int, p: int, q: int, n: int) -> int:
    return blocks(p, q, 10**12 + n) % m


def blocks(p: int, q: int, last: int) -> int:
    """Returns the sum of floor(p k/q) for k from 0 to `last`, by residues of k modulo q."""
    total = 0
    for rest in range(q):
        many = (last - rest) // q + 1 if last >= rest else 0
        total += many * (p * rest // q) + p * many * (many - 1) // 2
    return total


@reads(
    r"the remainder modulo (\d+) of the number of subsets of \{1, 2, ..., 10\^9 \+ (\w)\} whose element sum is"
    r" divisible by (\d+), the empty set included",
    huge=True,
)
def _(m: int, n: int, q: int) -> int:
    # Modulo 1 + x + ... + x^(q-1), a block of q numbers contributes the factor 2, as q is an odd prime.
    full, rest = divmod(10**9 + n, q)
    sums = [0]
    for one in range(1, rest + 1):
        sums += [one + total for total in sums]
    good = sum(total % q == 0 for total in sums)
    two = pow(2, full, m * q)
    return (two * good + (pow(2, q * full, m * q) - two) // q * 2**rest) % m


@reads(r"the remainder modulo (\d+) of the number of necklaces of (\w) beads in (\d+) colours, where .*")
def _(m: int, n: int, k: int) -> int:
    # By their period d: each counts once, in d rotations.
    total = 0
    for d in sympy.divisors(n):
        words = sum(int(sympy.mobius(d // e)) * pow(k, e, d * m) for e in sympy.divisors(d))
        total += words % (d * m) // d
    return total % m


@reads(r"the remainder modulo (\d+) of the largest k for which (\d+)\^k divides \(10\^12 \+ (\w)\)!")
def _(m: int, p: int, n: int) -> int:
    digits = sympy.ntheory.digits(10**12 + n, p)[1:]
    return (10**12 + n - sum(digits)) // (p - 1) % m


@reads(r"the remainder when (\w)\(1\) \+ \w\(2\) \+ ... \+ \w\(10\^(\d+)\) is divided by (\d+)", huge=True)
def _(f: sympy.Poly, k: int, m: int) -> int:
    return _sum_of_values(f, 10**k) % m


@reads(
    r"the remainder modulo (\d+) of the number of sequences of 10\^(\d+) elements of (\w), repetitions allowed, whose"
    r" sum is divisible by (\d+)",
    huge=True,
)
def _(m: int, k: int, s: list[int], q: int) -> int:
    steps = [one % q for one in set(s)]
    matrix = [[steps.count((j - i) % q) for j in range(q)] for i in range(q)]
    found = [[int(i == j) for j in range(q)] for i in range(q)]
    for bit in bin(10**k)[2:]:
        found = _times(found, found, m)
        found = _times(found, matrix, m) if bit == "1" else found
    return found[0][0]


def _times(a: list[list[int]], b: list[list[int]], m: int) -> list[list[int]]:
    return [[sum(x * y for x, y in zip(row, column, strict=True)) % m for column in zip(*b, strict=True)] for row in a]


@reads(
    r"the remainder modulo (\d+) of the number of points with whole coordinates in the triangle with the corners"
    r" \(0, 0\), \((\d+), (\d+)\) and \((\d+)u \+ 1, \d+v\), its boundary included, where \(u, v\) = (\w)",
    huge=True,
)
def _(m: int, x: int, y: int, scale: int, at: tuple[Fraction, Fraction]) -> int:
    return columns([(0, 0), (x, y), (int(at[0]) * scale + 1, int(at[1]) * scale)]) % m


@reads(
    r"the remainder modulo (\d+) of the sum of floor\(k\*(\w)\) over all whole numbers k from 1 to 10\^(\d+)", huge=True
)
def _(m: int, r: Fraction, k: int) -> int:
    return blocks(r.numerator, r.denominator, 10**k) % m
