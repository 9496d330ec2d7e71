"""Steps from a polynomial, a set or a point."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd, lcm

from curriculum.tasksets import exact_arithmetic as p
from curriculum.tasksets.composed.steps import Draw, Made, ProblemStep, ValueKind, whole
from curriculum.tasksets.statements import nonzero

Whole = tuple[int, ...]
Point = tuple[Fraction, Fraction]


def ints(coefficients: Sequence[p.Number]) -> Whole:
    """Returns a polynomial's whole coefficients, without leading zeros."""
    found = [int(one) for one in coefficients]
    while len(found) > 1 and not found[-1]:
        found.pop()
    return tuple(found)


def _value(f: Whole, a: str, d: Draw) -> Made:
    x = d.between((7, 30), (2, 6)) * d.rng.choice((1, -1))
    return f"the absolute value of {a}({x})", abs(int(p.value_at(f, x)))


def _squares(f: Whole, a: str, d: Draw) -> Made:
    return f"the sum of the squares of the coefficients of {a}(x)", sum(one * one for one in f)


def _power_coefficient(f: Whole, a: str, d: Draw) -> Made:
    k, found = d.between((3, 5), (2, 2)), [1]
    for _ in range(k):
        found = [int(one) for one in p.multiplied(found, f)]
    at = d.rng.randint(1, len(found) - 2)
    power = "x" if at == 1 else f"x^{at}"
    return f"the absolute value of the coefficient of {power} in the expansion of {a}(x)^{k}", abs(found[at])


def _values_sum(f: Whole, a: str, d: Draw) -> Made:
    n, m = d.between((100, 900), (3, 6)), d.modulus()
    text = f"the remainder when {a}(1) + {a}(2) + ... + {a}({n}) is divided by {m}"
    return text, sum(int(p.value_at(f, x)) for x in range(1, n + 1)) % m


def _integral(f: Whole, a: str, d: Draw) -> Made:
    low = d.rng.randint(-2, 1)
    high, whole_of = low + d.rng.randint(1, 4), p.integrated(f)
    text = f"the absolute value of the integral of {a}(x) over x from {low} to {high}"
    return text, abs(Fraction(p.value_at(whole_of, high) - p.value_at(whole_of, low)))


def _root_squares(f: Whole, a: str, d: Draw) -> Made:
    if len(f) < 3:
        return None
    e1, e2 = Fraction(-f[-2], f[-1]), Fraction(f[-3], f[-1])
    text = f"the absolute value of the sum of the squares of all complex roots of {a}(x), counted with multiplicity"
    return text, abs(e1 * e1 - 2 * e2)


def _derivative(f: Whole, a: str, d: Draw) -> Made:
    return f"the derivative of x*{a}(x)", ints(p.derived([0, *f]))


def _division(f: Whole, a: str, d: Draw) -> Made:
    by = (nonzero(d.rng, 6), d.rng.randint(-5, 5), 1)
    if len(f) < 4:
        return None
    return f"the remainder when {a}(x) is divided by {p.written(by)}", ints(p.remainder(f, by))


def _shift(f: Whole, a: str, d: Draw) -> Made:
    c = nonzero(d.rng, 4)
    return f"{a}({p.written((c, 1))}), expanded in powers of x", ints(p.composed(f, (c, 1)))


def _factor(f: Whole, a: str, d: Draw) -> Made:
    by = (nonzero(d.rng, 9), 1)
    return f"the product ({p.written(by)})*{a}(x), multiplied out", ints(p.multiplied(f, by))


def _value_set(f: Whole, a: str, d: Draw) -> Made:
    k, m = d.between((6, 11), (3, 5)), d.between((101, 999), (31, 60))
    text = f"the set of the remainders that {a}(0), {a}(1), ..., {a}({k}) leave when divided by {m}"
    return text, tuple(sorted({int(p.value_at(f, x)) % m for x in range(k + 1)}))


def _tangents(f: Whole, a: str, d: Draw) -> Made:
    u, v = sorted(d.rng.sample(range(-5, 6), 2))
    slopes = [p.value_at(p.derived(f), x) for x in (u, v)]
    if slopes[0] == slopes[1]:
        return None
    # y = slope (x - at) + f(at)
    starts = [p.value_at(f, x) - slope * x for x, slope in zip((u, v), slopes, strict=True)]
    x = Fraction(starts[1] - starts[0]) / (slopes[0] - slopes[1])
    text = f"the point in which the tangents to the curve y = {a}(x) at x = {u} and at x = {v} meet"
    return text, (x, slopes[0] * x + starts[0])


def _squares_of(s: Whole, a: str, d: Draw) -> Made:
    m = d.between((10**5, 10**6), (60, 200))
    return f"the remainder when the sum of the cubes of the elements of {a} is divided by {m}", sum(
        one**3 for one in s
    ) % m


def _pairs(s: Whole, a: str, d: Draw) -> Made:
    text = f"the sum of the products of all pairs of different elements of {a}"
    return text, sum(one * other for one, other in combinations(s, 2))


def _gaps(s: Whole, a: str, d: Draw) -> Made:
    text = f"the sum of the differences, larger minus smaller, over all pairs of different elements of {a}"
    return text, sum(other - one for one, other in combinations(s, 2))


def _multiple(s: Whole, a: str, d: Draw) -> Made:
    m = d.modulus()
    text = f"the remainder when the least common multiple of the non-zero elements of {a} is divided by {m}"
    return text, lcm(*(one for one in s if one)) % m


def _subsets(s: Whole, a: str, d: Draw) -> Made:
    m = d.between((2, 9), (2, 3))
    good = [sum(some) for size in range(len(s) + 1) for some in combinations(s, size) if sum(some) % m == 0]
    text = f"the sum of the element sums of all those subsets of {a} whose element sum is divisible by {m}"
    return text, sum(good)


def _square_set(s: Whole, a: str, d: Draw) -> Made:
    m = d.between((101, 999), (31, 60))
    text = f"the set of the remainders that the squares of the elements of {a} leave when divided by {m}"
    return text, tuple(sorted({one * one % m for one in s}))


def _sum_set(s: Whole, a: str, d: Draw) -> Made:
    m = d.between((31, 99), (13, 29))
    text = f"the set of the remainders of the sums of two different elements of {a} on division by {m}"
    return text, tuple(sorted({(one + other) % m for one, other in combinations(s, 2)}))


def _scaled_set(s: Whole, a: str, d: Draw) -> Made:
    if not d.earlier:
        return None
    (b, factor), m = d.rng.choice(d.earlier), d.between((101, 999), (31, 60))
    text = f"the set of the remainders of {b}*z on division by {m}, where z runs through {a}"
    return text, tuple(sorted({factor * one % m for one in s}))


def _root_polynomial(s: Whole, a: str, d: Draw) -> Made:
    count = d.rng.randint(2, 2 if d.hand else 3)
    text = f"the monic polynomial of degree {count} whose roots are the {count} smallest elements of {a}"
    return text, ints(p.with_roots(s[:count]))


def _variance(s: Whole, a: str, d: Draw) -> Made:
    mean = Fraction(sum(s), len(s))
    text = f"the mean squared deviation of the elements of {a} from their mean"
    return text, sum((one - mean) ** 2 for one in s) / len(s)


def _larger(s: Whole, a: str, d: Draw) -> Made:
    text = f"the expected value of the larger of two different elements of {a}, drawn at random"
    pairs = list(combinations(s, 2))
    return text, Fraction(sum(other for _, other in pairs), len(pairs))


def _power_sums(s: Whole, a: str, d: Draw) -> Made:
    m, q = d.prime((101, 499), (11, 19)), d.prime((101, 499), (23, 31))
    if m == q:
        return None
    text = f"the point (u, v), where u is the sum of the elements of {a} modulo {m} and v that of their squares"
    return f"{text} modulo {q}", (Fraction(sum(s) % m), Fraction(sum(one * one for one in s) % q))


def _turned(at: Point, a: str, d: Draw) -> Made:
    (x, y), u, v = at, d.rng.randint(-9, 9), d.rng.randint(-9, 9)
    text = f"the image of {a} under the rotation by 90 degrees counterclockwise about ({u}, {v})"
    return text, (u - (y - v), v + (x - u))


def _mirrored(at: Point, a: str, d: Draw) -> Made:
    (x, y), c = at, d.rng.randint(-9, 9)
    return f"the mirror image of {a} in the line {p.linear((1, -1), ('x', 'y'))} = {c}", (y + c, x - c)


def _reflected(at: Point, a: str, d: Draw) -> Made:
    (x, y), u, v, c = at, d.rng.randint(1, 5), nonzero(d.rng, 5), d.rng.randint(-20, 20)
    t = 2 * (u * x + v * y - c) / (u * u + v * v)
    return f"the mirror image of {a} in the line {p.linear((u, v), ('x', 'y'))} = {c}", (x - t * u, y - t * v)


def _foot(at: Point, a: str, d: Draw) -> Made:
    (x, y), u, v, c = at, d.rng.randint(1, 5), nonzero(d.rng, 5), d.rng.randint(-20, 20)
    t = (u * x + v * y - c) / (u * u + v * v)
    return f"the point of the line {p.linear((u, v), ('x', 'y'))} = {c} closest to {a}", (x - t * u, y - t * v)


def _stretched(at: Point, a: str, d: Draw) -> Made:
    (x, y), u, v, k = at, d.rng.randint(-9, 9), d.rng.randint(-9, 9), d.rng.choice((-3, -2, 2, 3))
    text = f"the image of {a} under the central dilation with centre ({u}, {v}) and factor {k}"
    return text, (u + k * (x - u), v + k * (y - v))


def _corners(d: Draw) -> Whole:
    size = 15 if d.hand else 300
    return tuple(d.rng.randint(-size, size) for _ in range(4))


def _distance(at: Point, a: str, d: Draw) -> Made:
    (u, v, *_), point = _corners(d), whole(at)
    if point is None:
        return None
    return f"the square of the distance between {a} and ({u}, {v})", (point[0] - u) ** 2 + (point[1] - v) ** 2


def _area(at: Point, a: str, d: Draw) -> Made:
    (u, v, w, z), point = _corners(d), whole(at)
    if point is None:
        return None
    found = abs((u - point[0]) * (z - point[1]) - (w - point[0]) * (v - point[1]))
    return f"twice the area of the triangle with the corners {a}, ({u}, {v}) and ({w}, {z})", found


def lattice_points(corners: Sequence[tuple[int, int]]) -> int:
    """Counts the points with whole coordinates in a polygon and on its boundary (Pick); 0 for a flat one."""
    sides = list(zip(corners, [*corners[1:], corners[0]], strict=True))
    doubled = abs(sum(a * d - b * c for (a, b), (c, d) in sides))
    edge = sum(gcd(c - a, d - b) for (a, b), (c, d) in sides)
    return (doubled + edge) // 2 + 1 if doubled else 0


def _lattice(at: Point, a: str, d: Draw) -> Made:
    (u, v, w, z), point = _corners(d), whole(at)
    if point is None:
        return None
    text = f"the number of points with whole coordinates in the triangle with the corners {a}, ({u}, {v}) and"
    return f"{text} ({w}, {z}), its boundary included", lattice_points([point, (u, v), (w, z)])


def _line_distance(at: Point, a: str, d: Draw) -> Made:
    (x, y), u, v, c = at, d.rng.randint(1, 5), nonzero(d.rng, 5), d.rng.randint(-20, 20)
    text = f"the square of the distance of {a} from the line {p.linear((u, v), ('x', 'y'))} = {c}"
    return text, Fraction((u * x + v * y - c) ** 2) / (u * u + v * v)


def _point_polynomial(at: Point, a: str, d: Draw) -> Made:
    point, c = whole(at), d.rng.randint(1, 5)
    text = f"the polynomial ux^2 + {c}x + v, where (u, v) = {a}"
    return (text, ints((point[1], c, point[0]))) if point else None


def _point_set(at: Point, a: str, d: Draw) -> Made:
    k, m, point = d.between((5, 12), (3, 6)), d.between((101, 999), (31, 60)), whole(at)
    if point is None:
        return None
    text = f"the set of the remainders of u + v, u + 2v, ..., u + {k}v on division by {m}, where (u, v) = {a}"
    return text, tuple(sorted({(point[0] + step * point[1]) % m for step in range(1, k + 1)}))


STEPS = (
    *(
        ProblemStep(ValueKind.POLYNOMIAL, ValueKind.NUMBER, make)
        for make in (_value, _squares, _power_coefficient, _values_sum)
    ),
    *(ProblemStep(ValueKind.POLYNOMIAL, ValueKind.FRACTION, make) for make in (_integral, _root_squares)),
    *(
        ProblemStep(ValueKind.POLYNOMIAL, ValueKind.POLYNOMIAL, make)
        for make in (_derivative, _division, _shift, _factor)
    ),
    ProblemStep(ValueKind.POLYNOMIAL, ValueKind.SET, _value_set),
    ProblemStep(ValueKind.POLYNOMIAL, ValueKind.POINT, _tangents),
    *(ProblemStep(ValueKind.SET, ValueKind.NUMBER, make) for make in (_squares_of, _pairs, _gaps, _multiple, _subsets)),
    *(ProblemStep(ValueKind.SET, ValueKind.SET, make) for make in (_square_set, _sum_set, _scaled_set)),
    ProblemStep(ValueKind.SET, ValueKind.POLYNOMIAL, _root_polynomial),
    *(ProblemStep(ValueKind.SET, ValueKind.FRACTION, make) for make in (_variance, _larger)),
    ProblemStep(ValueKind.SET, ValueKind.POINT, _power_sums),
    *(
        ProblemStep(ValueKind.POINT, ValueKind.POINT, make)
        for make in (_turned, _mirrored, _reflected, _foot, _stretched)
    ),
    *(ProblemStep(ValueKind.POINT, ValueKind.NUMBER, make) for make in (_distance, _area, _lattice)),
    ProblemStep(ValueKind.POINT, ValueKind.FRACTION, _line_distance),
    ProblemStep(ValueKind.POINT, ValueKind.POLYNOMIAL, _point_polynomial),
    ProblemStep(ValueKind.POINT, ValueKind.SET, _point_set),
)
