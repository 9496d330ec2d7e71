"""Steps from a whole number or a fraction."""

from __future__ import annotations

from fractions import Fraction
from math import comb, gcd, isqrt

from curriculum.tasksets.composed.steps import Draw, Made, ProblemStep, ValueKind
from curriculum.tasksets.exact_arithmetic import divisors, remainders, totient
from curriculum.tasksets.huge_numbers import next_prime


def _divisor_sum(n: int, a: str, d: Draw) -> Made:
    return f"the sum of all positive divisors of {a}", sum(divisors(n))


def _coprime(n: int, a: str, d: Draw) -> Made:
    return f"the number of whole numbers from 1 to {a} that have no common divisor with {a} other than 1", totient(n)


def _affine(n: int, a: str, d: Draw) -> Made:
    k, c, m = d.between((13, 99), (3, 19)), d.between((100, 999), (1, 30)), d.modulus()
    return f"the remainder when {k}*{a} + {c} is divided by {m}", (k * n + c) % m


def _power(n: int, a: str, d: Draw) -> Made:
    k, p = d.between((50, 900), (5, 30)), d.prime((1_009, 9_973), (101, 199))
    return f"the remainder when {a}^{k} is divided by {p}", pow(n, k, p)


def _inverse(n: int, a: str, d: Draw) -> Made:
    p = d.prime((1_009, 9_973), (101, 199))
    if n % p == 0:
        return None
    text = f"the whole number z from 1 to {p - 1} for which {a}*z leaves the remainder 1 when divided by {p}"
    return text, pow(n, -1, p)


def _base(n: int, a: str, d: Draw) -> Made:
    b = d.between((11, 36), (11, 13))
    return f"the number that the decimal digits of {a} denote when they are read in base {b}", int(str(n), b)


def _digits(n: int, a: str, d: Draw) -> Made:
    k = d.between((9, 60), (2, 3))
    return f"the sum of the decimal digits of {a}^{k}", sum(map(int, str(n**k)))


def _prime(n: int, a: str, d: Draw) -> Made:
    k, found = d.between((2, 6), (1, 3)), n
    for _ in range(k):
        found = next_prime(found)
    which = ("smallest", "second smallest", "third smallest", "fourth smallest", "fifth smallest", "sixth smallest")
    return f"the {which[k - 1]} prime number greater than {a}", found


def _multiples(n: int, a: str, d: Draw) -> Made:
    p, q = sorted(d.rng.sample(range(3, 12), 2))
    if q % p == 0:
        return None

    def total(step: int) -> int:
        return step * (n // step) * (n // step + 1) // 2

    found = total(p) + total(q) - total(p * q // gcd(p, q))
    return f"the sum of the whole numbers from 1 to {a} that are divisible by {p} or by {q}", found


def _circle(n: int, a: str, d: Draw) -> Made:
    if n > (60 if d.hand else 300_000):
        return None
    count = sum(2 * isqrt(n - x * x) + 1 for x in range(-isqrt(n), isqrt(n) + 1))
    return f"the number of points with whole coordinates whose distance from (0, 0) is at most the root of {a}", count


def _unpayable(n: int, a: str, d: Draw) -> Made:
    c = d.between((20, 400), (3, 12))
    if gcd(n, c) > 1:
        return None
    text = f"the largest whole number that cannot be written as {a}*y + {c}*z with whole numbers y, z >= 0"
    return text, n * c - n - c


def _congruences(n: int, a: str, d: Draw) -> Made:
    p, q = d.prime((101, 499), (5, 13)), d.prime((503, 997), (17, 29))
    r = d.rng.randrange(q)
    text = f"the smallest whole number z >= 0 for which {p} divides z - {a} and {q} divides z - {r}"
    return text, remainders([(n % p, p), (r, q)])


def _product(n: int, a: str, d: Draw) -> Made:
    if not d.earlier:
        return None
    (b, other), m = d.rng.choice(d.earlier), d.modulus()
    return f"the remainder when the product {a}*{b} is divided by {m}", n * other % m


def _choices(n: int, a: str, d: Draw) -> Made:
    k, p = d.between((5, 40), (2, 3)), d.prime((1_009, 9_973), (101, 199))
    if n <= k or n > 50_000:
        return None
    return f"the remainder when the number of ways to choose {k} of {a} people is divided by {p}", comb(n, k) % p


def _telescope(n: int, a: str, d: Draw) -> Made:
    c = d.between((2, 30), (2, 4))
    if n <= c:
        return None
    text = f"the sum of the fractions 1/(k(k + 1)) over all whole numbers k from {c} to {a}"
    return text, Fraction(1, c) - Fraction(1, n + 1)


def _chance(n: int, a: str, d: Draw) -> Made:
    p, q = sorted(d.rng.sample(range(3, 12), 2))
    if q % p == 0:
        return None
    good = n // p + n // q - n // (p * q // gcd(p, q))
    text = f"the probability that a whole number drawn at random from 1 to {a} is divisible by {p} or by {q}"
    return text, Fraction(good, n)


def _geometric(n: int, a: str, d: Draw) -> Made:
    ratio = Fraction(d.rng.randint(1, 6), d.rng.choice((7, 11, 13)))
    return f"the sum of the infinite geometric series with first term {a} and ratio {ratio}", n / (1 - ratio)


def _trinomial(n: int, a: str, d: Draw) -> Made:
    p, q = d.prime((11, 61), (11, 19)), d.prime((67, 127), (23, 31))
    text = f"x^2 - ux + v, where u and v are the remainders when {a} is divided by {p} and by {q}"
    return (text, (n % q, -(n % p), 1)) if n > q else None


def _digit_polynomial(n: int, a: str, d: Draw) -> Made:
    b = 10 if d.hand else d.rng.randint(5, 10)
    found, left = [], n
    while left:
        left, digit = divmod(left, b)
        found.append(digit)
    return f"the polynomial whose value at x = {b} is {a} and whose coefficients are digits from 0 to {b - 1}", (
        tuple(found)
    )


def _divisors(n: int, a: str, d: Draw) -> Made:
    return f"the set of the positive divisors of {a}", tuple(divisors(n))


def _power_set(n: int, a: str, d: Draw) -> Made:
    k, m = d.between((5, 12), (3, 6)), d.between((101, 999), (31, 60))
    text = f"the set of the remainders that {a}, {a}^2, ..., {a}^{k} leave when divided by {m}"
    return text, tuple(sorted({pow(n, power, m) for power in range(1, k + 1)}))


def _remainder_point(n: int, a: str, d: Draw) -> Made:
    p, q = d.prime((101, 499), (11, 19)), d.prime((101, 499), (23, 31))
    text = f"the point whose coordinates are the remainders when {a} is divided by {p} and by {q}"
    return (text, (Fraction(n % p), Fraction(n % q))) if p != q and n > max(p, q) else None


def _lowest_terms(r: Fraction, a: str, d: Draw) -> Made:
    p, q = d.between((11, 99), (2, 6)), d.between((11, 99), (2, 6))
    text = f"{p} times the numerator plus {q} times the denominator of {a} in lowest terms"
    return text, p * r.numerator + q * r.denominator


def _floor(r: Fraction, a: str, d: Draw) -> Made:
    m = d.between((10**4, 10**6), (10, 99))
    return f"the largest whole number that is at most {m}*{a}", m * r.numerator // r.denominator


def _period(r: Fraction, a: str, d: Draw) -> Made:
    below = r.denominator
    for prime in (2, 5):
        while below % prime == 0:
            below //= prime
    if below == 1 or (d.hand and below > 40):
        return None
    length = next(k for k in range(1, below + 1) if pow(10, k, below) == 1)
    # Shifted by the digits before the block, the fraction repeats at once.
    rest = r * 10 ** (r.denominator.bit_length()) % 1
    block = int(rest * (10**length - 1))
    return f"the sum of the digits in the shortest repeating block of the decimal expansion of {a}", sum(
        map(int, str(block))
    )


def _continued(r: Fraction, a: str, d: Draw) -> Made:
    k, total, (above, below) = d.between((50, 999), (2, 9)), 0, r.as_integer_ratio()
    while below:
        total, (above, below) = total + above // below, (below, above % below)
    return f"{k} times the sum of the terms of the simple continued fraction of {a}", k * total


def _moebius(r: Fraction, a: str, d: Draw) -> Made:
    p, q, s, t = (d.rng.randint(1, 9) for _ in range(4))
    text = f"({p}*{a} + {q})/({s}*{a} + {t})"
    return (text, (p * r + q) / (s * r + t)) if p * t != q * s else None


def _iterated(r: Fraction, a: str, d: Draw) -> Made:
    k, p, q, n = d.rng.randint(2, 4), d.rng.randint(2, 5), d.rng.randint(1, 9), d.between((3, 6), (2, 3))
    value = r
    for _ in range(n):
        value = (value + q) / p if k % 2 else (p * value + q) / (value + 1)
    rule = f"(u(k) + {q})/{p}" if k % 2 else f"({p}*u(k) + {q})/(u(k) + 1)"
    return f"the term u({n}) of the sequence with u(0) = {a} and u(k + 1) = {rule}", value


def _fraction_polynomial(r: Fraction, a: str, d: Draw) -> Made:
    c = d.rng.randint(1, 30)
    text = f"ux^2 - vx + {c}, where u/v is {a} in lowest terms"
    return text, (c, -r.denominator, r.numerator)


def _ratio(r: Fraction, a: str, d: Draw) -> Made:
    x, y, z, w = (d.rng.randint(-20, 20) for _ in range(4))
    if (x, y) == (z, w):
        return None
    text = f"the point between ({x}, {y}) and ({z}, {w}) whose distances from them have the ratio {a}, in this order"
    return text, (x + r / (1 + r) * (z - x), y + r / (1 + r) * (w - y))


STEPS = (
    *(
        ProblemStep(ValueKind.NUMBER, ValueKind.NUMBER, make)
        for make in (
            *(_divisor_sum, _coprime, _affine, _power, _inverse, _base, _digits, _prime, _multiples, _circle),
            *(_unpayable, _congruences, _product, _choices),
        )
    ),
    *(ProblemStep(ValueKind.NUMBER, ValueKind.FRACTION, make) for make in (_telescope, _chance, _geometric)),
    *(ProblemStep(ValueKind.NUMBER, ValueKind.POLYNOMIAL, make) for make in (_trinomial, _digit_polynomial)),
    *(ProblemStep(ValueKind.NUMBER, ValueKind.SET, make) for make in (_divisors, _power_set)),
    ProblemStep(ValueKind.NUMBER, ValueKind.POINT, _remainder_point),
    *(ProblemStep(ValueKind.FRACTION, ValueKind.NUMBER, make) for make in (_lowest_terms, _floor, _period, _continued)),
    *(ProblemStep(ValueKind.FRACTION, ValueKind.FRACTION, make) for make in (_moebius, _iterated)),
    ProblemStep(ValueKind.FRACTION, ValueKind.POLYNOMIAL, _fraction_polynomial),
    ProblemStep(ValueKind.FRACTION, ValueKind.POINT, _ratio),
)
