"""Steps to a number that cannot be counted out: their words, taken literally, ask for more than 10^9 operations."""

from __future__ import annotations

from fractions import Fraction

from curriculum.tasksets import huge_numbers as huge
from curriculum.tasksets.composed.object_steps import Point, Whole, lattice_points
from curriculum.tasksets.composed.steps import Draw, Made, ProblemStep, ValueKind, whole
from curriculum.tasksets.exact_arithmetic import divisors, totient, value_at


def _tower(n: int, a: str, d: Draw) -> Made:
    c, m = d.rng.randint(2, 19), d.modulus()
    return f"the remainder when {c}^({a}^({a}^{a})) is divided by {m}", huge.tower((c, n, n, n), m)


def _fibonacci(n: int, a: str, d: Draw) -> Made:
    k, m = d.rng.randint(12, 18), d.modulus()
    text = f"the remainder modulo {m} of the Fibonacci number F(10^{k} + {a}), where F(1) = F(2) = 1"
    return text, huge.distant_term((1, 1), (0, 1), 10**k + n, m)


def _digit_sums(n: int, a: str, d: Draw) -> Made:
    k, total, m = d.rng.randint(12, 18), d.rng.randint(15, 60), d.modulus()
    text = f"the remainder modulo {m} of the number of whole numbers from 1 to 10^{k} + {a} with the digit sum {total}"
    return text, huge.with_digit_sum(10**k + n + 1, total) % m


def _floors(n: int, a: str, d: Draw) -> Made:
    p, q, m = d.prime((101, 499), (101, 499)), d.prime((503, 997), (503, 997)), d.modulus()
    text = f"the remainder modulo {m} of the sum of floor({p}k/{q}) over all whole numbers k from 1 to 10^12 + {a}"
    return text, huge.floor_sum(10**12 + n + 1, q, p, 0) % m


def _subsets(n: int, a: str, d: Draw) -> Made:
    q, m = d.rng.choice((3, 5, 7)), d.modulus()
    text = f"the remainder modulo {m} of the number of subsets of {{1, 2, ..., 10^9 + {a}}} whose element sum is"
    return f"{text} divisible by {q}, the empty set included", huge.subsets_divisible(10**9 + n, q, m)


def _necklaces(n: int, a: str, d: Draw) -> Made:
    k, m = d.rng.randint(2, 9), d.modulus()
    found = sum(totient(by) * pow(k, n // by, n * m) for by in divisors(n)) % (n * m) // n
    text = f"the remainder modulo {m} of the number of necklaces of {a} beads in {k} colours, where necklaces that a"
    return (f"{text} rotation turns into each other are the same", found) if n > 60 else None


def _factorial(n: int, a: str, d: Draw) -> Made:
    p, m = d.prime((3, 97), (3, 97)), d.modulus()
    text = f"the remainder modulo {m} of the largest k for which {p}^k divides (10^12 + {a})!"
    return text, huge.factorial_valuation(10**12 + n, p) % m


def _polynomial_sum(f: Whole, a: str, d: Draw) -> Made:
    k, m = d.rng.randint(12, 15), d.modulus()
    full, rest = divmod(10**k, m)
    period = [int(value_at(f, x)) % m for x in range(1, m + 1)]
    text = f"the remainder when {a}(1) + {a}(2) + ... + {a}(10^{k}) is divided by {m}"
    return text, (full * sum(period) + sum(period[:rest])) % m


def _sequences(s: Whole, a: str, d: Draw) -> Made:
    k, q, m = d.rng.randint(12, 15), d.rng.choice((5, 7, 9, 11)), d.modulus()
    text = f"the remainder modulo {m} of the number of sequences of 10^{k} elements of {a}, repetitions allowed, whose"
    return f"{text} sum is divisible by {q}", huge.sums_modulo(s, 10**k, q, m)[0]


def _grid(at: Point, a: str, d: Draw) -> Made:
    point, m, scale = whole(at), d.modulus(), 10 ** d.rng.randint(7, 9)
    u, v = d.rng.randint(2, 99), d.rng.randint(2, 99)
    if point is None:
        return None
    corners = [(0, 0), (u * scale, v * scale), (point[0] * scale + 1, point[1] * scale)]
    text = f"the remainder modulo {m} of the number of points with whole coordinates in the triangle with the corners"
    text += f" (0, 0), ({u * scale}, {v * scale}) and ({scale}u + 1, {scale}v), its boundary included, where (u, v) ="
    return f"{text} {a}", lattice_points(corners) % m


def _multiples(r: Fraction, a: str, d: Draw) -> Made:
    k, m = d.rng.randint(12, 15), d.modulus()
    text = f"the remainder modulo {m} of the sum of floor(k*{a}) over all whole numbers k from 1 to 10^{k}"
    return text, huge.floor_sum(10**k + 1, r.denominator, r.numerator, 0) % m


STEPS = (
    *(
        ProblemStep(ValueKind.NUMBER, ValueKind.NUMBER, make, huge=True)
        for make in (_tower, _fibonacci, _digit_sums, _floors, _subsets, _necklaces, _factorial)
    ),
    ProblemStep(ValueKind.FRACTION, ValueKind.NUMBER, _multiples, huge=True),
    ProblemStep(ValueKind.POLYNOMIAL, ValueKind.NUMBER, _polynomial_sum, huge=True),
    ProblemStep(ValueKind.SET, ValueKind.NUMBER, _sequences, huge=True),
    ProblemStep(ValueKind.POINT, ValueKind.NUMBER, _grid, huge=True),
)
