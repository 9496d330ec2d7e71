"""Points and lines in plane and space: distances, crossings, feet of perpendiculars, division, points on one line."""

from __future__ import annotations

from fractions import Fraction
from math import gcd, isqrt
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.algebra.polynomial_roots import surd
from curriculum.tasksets.exact_arithmetic import linear, surd_text
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked

Point = tuple[Fraction, ...]
PAIR = "Give the point as a tuple of exact numbers."


def _point(size: int, level: int, rng: Random) -> Point:
    limit = 5 + 4 * level
    below = 1 if level < 3 else rng.choice((1, 2))
    return tuple(Fraction(rng.randint(-limit, limit), below) for _ in range(size))


def shown(point: Point) -> str:
    return f"({', '.join(map(str, point))})"


def _size(level: int) -> int:
    return 2 if level < 2 else 3


def _distance(level: int, rng: Random) -> Item:
    a, b = (_point(_size(level), min(level, 2), rng) for _ in range(2))
    square = sum(int(x - y) ** 2 for x, y in zip(a, b, strict=True))
    if square == 0:
        return _distance(level, rng)
    outside, inside = surd(square)
    answer = surd_text(outside, inside)
    text = say(
        rng,
        (
            "What is the distance between the points {a} and {b}? Give it exactly, with a square root where needed.",
            "How long is the segment from {a} to {b}? Give the exact length, not a decimal.",
        ),
        a=shown(a), b=shown(b),
    )  # fmt: skip
    return worked(text, f"{sorted((shown(a), shown(b)))}", answer)


def _division(level: int, rng: Random) -> Item:
    a, b = (_point(_size(level), level, rng) for _ in range(2))
    if a == b:
        return _division(level, rng)
    m, n = (1, 1) if level == 0 else (rng.randint(1, 3 + level), rng.randint(1, 3 + level))
    m, n = m // gcd(m, n), n // gcd(m, n)
    at = tuple(x + Fraction(m, m + n) * (y - x) for x, y in zip(a, b, strict=True))
    text = say(
        rng,
        (
            "The point P divides the segment from A = {a} to B = {b} such that AP : PB = {m} : {n}. What is P? {how}",
            "On the segment from A = {a} to B = {b} lies P, with AP : PB = {m} : {n}. Find P. {how}",
        ),
        a=shown(a), b=shown(b), m=m, n=n, how=PAIR,
    )  # fmt: skip
    return worked(text, f"{shown(a)} {shown(b)} {m}:{n}", shown(at))


def _crossing(level: int, rng: Random) -> Item:
    limit = 3 + 2 * level
    rows = [(nonzero(rng, limit), nonzero(rng, limit)) for _ in range(2)]
    (a, b), (c, d) = rows
    if a * d == b * c:
        return _crossing(level, rng)
    if level < 2:
        x, y = Fraction(rng.randint(-9, 9)), Fraction(rng.randint(-9, 9))
        e, f = a * x + b * y, c * x + d * y
    else:
        e, f = Fraction(rng.randint(-20, 20)), Fraction(rng.randint(-20, 20))
        x, y = (e * d - b * f) / (a * d - b * c), (a * f - e * c) / (a * d - b * c)
    lines = [f"{linear(row, ('x', 'y'))} = {total}" for row, total in zip(rows, (e, f), strict=True)]
    text = say(
        rng,
        (
            "At which point do the lines {one} and {two} meet? {how}",
            "Find the common point of the lines {one} and {two}. {how}",
        ),
        one=lines[0], two=lines[1], how=PAIR,
    )  # fmt: skip
    return worked(text, f"{sorted(lines)}", shown((x, y)))


def _foot(level: int, rng: Random) -> Item:
    mirror = rng.random() < 0.5
    point, base = _point(_size(level), min(level, 2), rng), _point(_size(level), min(level, 2), rng)
    way = tuple(Fraction(rng.randint(-3 - level, 3 + level)) for _ in point)
    length = sum(one * one for one in way)
    if length == 0:
        return _foot(level, rng)
    t = sum((p - q) * w for p, q, w in zip(point, base, way, strict=True)) / length
    foot = tuple(q + t * w for q, w in zip(base, way, strict=True))
    if foot == point:
        return _foot(level, rng)
    answer = tuple(2 * f - p for f, p in zip(foot, point, strict=True)) if mirror else foot
    through = tuple(q + w for q, w in zip(base, way, strict=True))
    text = say(
        rng,
        (
            "A line goes through {a} and {b}. {what} {how}",
            "Let g be the line through {a} and {b}. {what} {how}",
        ),
        a=shown(base), b=shown(through), how=PAIR,
        what=f"To which point is {shown(point)} reflected by it?"
        if mirror
        else f"Which point of it is closest to {shown(point)}?",
    )  # fmt: skip
    key = f"{sorted((shown(base), shown(through)))} {shown(point)} {mirror}"
    return worked(text, key, shown(answer))


def _collinear(level: int, rng: Random) -> Item:
    size = _size(level)
    a, way = _point(size, level, rng), tuple(Fraction(nonzero(rng, 4 + level)) for _ in range(size))
    s, t = (Fraction(one, 1 if level == 0 else 2) for one in rng.sample([-4, -3, -2, -1, 1, 2, 3, 4, 5], 2))
    b, c = (tuple(x + k * w for x, w in zip(a, way, strict=True)) for k in (s, t))
    hidden = rng.randrange(size)
    points = [shown(a), shown(b), f"({', '.join('k' if at == hidden else str(x) for at, x in enumerate(c))})"]
    text = say(
        rng,
        (
            "The points {a}, {b} and {c} lie on one line. What is k? {how}",
            "For which k is there a line through {a}, {b} and {c}? {how}",
        ),
        a=points[0], b=points[1], c=points[2], how=EXACT,
    )  # fmt: skip
    return worked(text, f"{sorted(points)}", c[hidden])


def _line_distance(level: int, rng: Random) -> Item:
    space = level > 1
    triples = ((3, 4), (5, 12), (8, 15), (7, 24), (4, 3), (12, 5))
    quads = ((1, 2, 2), (2, 3, 6), (1, 4, 8), (4, 4, 7), (2, 6, 9), (6, 6, 7))
    normal = [one * rng.choice((1, -1)) for one in rng.choice(quads if space else triples)]
    point = _point(3 if space else 2, level, rng)
    total = rng.randint(-20 - 10 * level, 20 + 10 * level)
    length = isqrt(sum(one * one for one in normal))
    value = abs(sum((a * x for a, x in zip(normal, point, strict=True)), Fraction()) - total) / length
    names = ("x", "y", "z")[: len(normal)]
    text = say(
        rng,
        (
            "How far is the point {p} from the {thing} {equation}? {how}",
            "What is the distance of {p} from the {thing} with the equation {equation}? {how}",
        ),
        p=shown(point), thing="plane" if space else "line", equation=f"{linear(normal, names)} = {total}", how=EXACT,
    )  # fmt: skip
    return worked(text, f"{shown(point)} {normal} {total}", value)


COORDINATE_GEOMETRY = mathematics(
    "coordinate_geometry",
    2,
    {
        "distances": _distance,
        "divided_segments": _division,
        "crossing_lines": _crossing,
        "closest_points": _foot,
        "points_on_one_line": _collinear,
        "distances_from_lines_and_planes": _line_distance,
    },
    ("0", "1", "(0, 0)", "(0, 0, 0)"),
)
