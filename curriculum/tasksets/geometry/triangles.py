"""Triangles with exact answers: sides and angles, areas, radii, heights, medians, similar and right ones."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import surd, surd_text
from curriculum.tasksets.statements import EXACT, mathematics, say, worked

ROOT = "Give it exactly, with a square root where needed, not as a decimal."
COSINES = {
    30: (1, 3), 45: (1, 2), 60: (1, 1), 90: (0, 1), 120: (-1, 1), 135: (-1, 2), 150: (-1, 3),
}  # fmt: skip
"""Sign of the cosine by angle, and the number whose root is twice its absolute value."""


def root(square: Fraction) -> str:
    """Returns the square root of a positive rational number, exactly: `(3/2)*sqrt(5)`."""
    outside, inside = surd(square.numerator * square.denominator)
    factor = Fraction(outside, square.denominator)
    return surd_text(factor, inside)


def _sides(level: int, rng: Random) -> tuple[int, int, int]:
    while True:
        a, b, c = sorted(rng.randint(2 + level, 22 + 4 * level) for _ in range(3))
        if a + b > c:
            return a, b, c


def sixteen_areas_squared(a: int, b: int, c: int) -> int:
    """Returns sixteen times the squared area of the triangle with these sides (Heron)."""
    return (a + b + c) * (-a + b + c) * (a - b + c) * (a + b - c)


def _radii(level: int, rng: Random) -> Item:
    a, b, c = _sides(level, rng)
    square = Fraction(sixteen_areas_squared(a, b, c), 16)
    total = a + b + c
    what, value = rng.choice(
        (
            ("area", square),
            ("height on the longest side", 4 * square / c**2),
            ("radius of the inscribed circle", 4 * square / total**2),
            ("radius of the circumscribed circle", Fraction(a * b * c) ** 2 / (16 * square)),
        )[: 1 if level == 0 else 2 + level // 2]
    )
    text = say(
        rng,
        (
            "A triangle has sides of the lengths {a}, {b} and {c}. What is the {what}? {how}",
            "Find the {what} of the triangle whose sides measure {a}, {b} and {c}. {how}",
        ),
        a=a, b=b, c=c, what=what, how=ROOT,
    )  # fmt: skip
    return worked(text, f"{what} {a} {b} {c}", root(value))


def _cosine_rule(level: int, rng: Random) -> Item:
    a, b, c = _sides(level, rng)
    x, y, z = rng.sample((a, b, c), 3)
    names = "ABC"
    text = say(
        rng,
        (
            ("In a triangle ABC the side opposite A is {x}, the one opposite B is {y}, the one opposite C is {z}."
            " What is"
            " the cosine of the angle at {at}? {how}"),
            "A triangle ABC has BC = {x}, CA = {y}, AB = {z}. Find the cosine of its angle at {at}. {how}",
        ),
        x=x, y=y, z=z, at=names[0], how=EXACT,
    )  # fmt: skip
    return worked(text, f"{x} {sorted((y, z))}", Fraction(y * y + z * z - x * x, 2 * y * z))


def _third_side(level: int, rng: Random) -> Item:
    b, c = sorted((rng.randint(2, 22 + 4 * level), rng.randint(2, 22 + 4 * level)))
    angle = rng.choice((60, 90, 120) if level < 2 else (30, 45, 60, 120, 135, 150))
    sign, under = COSINES[angle]
    # b^2 + c^2 - 2 b c cos(angle)
    rest, product = b * b + c * c, -sign * b * c
    if under == 1:
        answer = root(Fraction(rest + product)) if sign else root(Fraction(rest))
        squared = rng.random() < 0.3
        answer = str(rest + product if sign else rest) if squared else answer
    else:
        squared, answer = True, surd_text(Fraction(product), under, rest)
    text = say(
        rng,
        (
            ("Two sides of a triangle measure {b} and {c} and enclose an angle of {angle} degrees. What is"
            " {what}? {how}"),
            "A triangle has the angle {angle} degrees between sides of the lengths {b} and {c}. Find {what}. {how}",
        ),
        b=b, c=c, angle=angle, how=ROOT,
        what="the square of the length of the third side" if squared else "the length of the third side",
    )  # fmt: skip
    return worked(text, f"{b} {c} {angle} {squared}", answer)


def _medians(level: int, rng: Random) -> Item:
    a, b, c = _sides(level, rng)
    on = rng.choice((a, b, c))
    others = [a, b, c]
    others.remove(on)
    y, z = others
    bisector = level > 1 and rng.random() < 0.5
    # The median's square, and Stewart's theorem for the bisector.
    square = Fraction(2 * y * y + 2 * z * z - on * on, 4)
    if bisector:
        square = y * z * (1 - Fraction(on * on, (y + z) ** 2))
    text = say(
        rng,
        (
            "In a triangle ABC let BC = {x}, CA = {y}, AB = {z}. How long is the {line} from A to the side BC? {how}",
            ("A triangle ABC has BC = {x}, CA = {y} and AB = {z}. What is the length of its {line} from A (to"
            " BC)? {how}"),
        ),
        x=on, y=y, z=z, line="angle bisector" if bisector else "median", how=ROOT,
    )  # fmt: skip
    return worked(text, f"{on} {sorted((y, z))} {bisector}", root(square))


def _right(level: int, rng: Random) -> Item:
    m = rng.randint(2, 6 + level)
    n = rng.randint(1, m - 1)
    scale = Fraction(rng.randint(1, 15 + level), 1 if level < 3 else rng.choice((1, 2, 3)))
    a, b, c = ((m * m - n * n) * scale, 2 * m * n * scale, (m * m + n * n) * scale)
    if rng.random() < 0.5:
        a, b = b, a
    kinds = (
        ("legs of {0} and {1}", (a, b), "the hypotenuse", c),
        ("the hypotenuse {0} and a leg of {1}", (c, a), "the other leg", b),
        ("the hypotenuse {0} and a leg of {1}", (c, a), "the height on the hypotenuse", a * b / c),
        ("legs of {0} and {1}", (a, b), "the radius of the inscribed circle", (a + b - c) / 2),
        ("the hypotenuse {0} and the area {1}", (c, a * b / 2), "the perimeter", a + b + c),
        ("legs of {0} and {1}", (a, b), ("the distance from the foot of the height on the hypotenuse to the end of the"
         " first leg that is not the right angle"), a * a / c),
        ("the perimeter {0} and the hypotenuse {1}", (a + b + c, c), "the area", a * b / 2),
    )  # fmt: skip
    given, numbers, what, value = rng.choice(kinds[max(0, level - 1) : 3 + level])
    text = say(
        rng,
        (
            "A right triangle has {given}. Find {what}. {how}",
            "In a right triangle with {given}, what is {what}? {how}",
        ),
        given=given.format(*numbers), what=what, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{what} {given} {' '.join(map(str, numbers))}", value)


def _similar(level: int, rng: Random) -> Item:
    # DE parallel to BC, D on AB and E on AC: AD : AB = m : n.
    n = rng.randint(2, 5 + 2 * level)
    m = rng.randint(1, n - 1)
    if gcd(m, n) != 1:
        return _similar(level, rng)
    ratio, unit = Fraction(m, n), rng.randint(1, 15 + 3 * level)
    bc, area = unit * rng.randint(2, 9), unit * rng.randint(2, 30)
    kinds = (
        (f"BC = {bc}", "the length of DE", bc * ratio),
        (f"DE = {bc}", "the length of BC", bc / ratio),
        (f"the triangle ABC has the area {area}", "the area of the triangle ADE", area * ratio**2),
        (f"the triangle ADE has the area {area}", "the area of the triangle ABC", area / ratio**2),
        (f"the triangle ABC has the area {area}", "the area of the quadrilateral DBCE", area * (1 - ratio**2)),
        (f"the quadrilateral DBCE has the area {area}", "the area of the triangle ADE", area / (1 / ratio**2 - 1)),
    )  # fmt: skip
    given, what, value = rng.choice(kinds[max(0, level - 1) : 2 + level])
    text = say(
        rng,
        (
            ("In a triangle ABC the point D lies on AB and E on AC, with DE parallel to BC and AD : DB = {m} :"
            " {k}. Given"
            " that {given}, what is {what}? {how}"),
            ("D on the side AB and E on the side AC of a triangle ABC are such that DE is parallel to BC and"
            " AD : DB = {m} : {k}; also {given}. Find {what}. {how}"),
        ),
        m=m, k=n - m, given=given, what=what, how=EXACT,
    )  # fmt: skip
    return worked(text, f"{m} {n} {given} {what}", value)


TRIANGLES = mathematics(
    "triangles",
    2,
    {
        "areas_and_radii": _radii,
        "cosines": _cosine_rule,
        "third_sides": _third_side,
        "medians_and_bisectors": _medians,
        "right_triangles": _right,
        "similar_triangles": _similar,
    },
)
