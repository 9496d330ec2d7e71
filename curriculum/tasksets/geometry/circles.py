"""Circles: centres and radii from equations, tangents, chords, powers of points, sectors, circles through points."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import linear
from curriculum.tasksets.geometry.triangles import ROOT, root
from curriculum.tasksets.statements import EXACT, mathematics, nonzero, say, worked


def _equation(h: Fraction, k: Fraction, square: Fraction) -> str:
    """Returns the equation of the circle around (h, k), multiplied out."""
    left = linear((1, 1, -2 * h, -2 * k), ("x^2", "y^2", "x", "y"))
    return f"{left} = {square - h * h - k * k}"


def _circle(level: int, rng: Random) -> tuple[Fraction, Fraction, Fraction]:
    below = 1 if level < 2 else rng.choice((1, 2))
    limit = 4 + 3 * level
    h, k = Fraction(nonzero(rng, limit), below), Fraction(nonzero(rng, limit), below)
    return h, k, Fraction(rng.randint(2, 20 + 15 * level))


def _centre(level: int, rng: Random) -> Item:
    h, k, square = _circle(level, rng)
    radius = level > 0 and rng.random() < 0.5
    text = say(
        rng,
        (
            "What is the {what} of the circle {equation}? {how}",
            "The equation {equation} describes a circle. Find its {what}. {how}",
        ),
        equation=_equation(h, k, square), what="radius" if radius else "centre",
        how=ROOT if radius else "Give it as a tuple of exact numbers.",
    )  # fmt: skip
    return worked(text, f"{h} {k} {square} {radius}", root(square) if radius else f"({h}, {k})")


def _tangent(level: int, rng: Random) -> Item:
    h, k, square = _circle(level, rng)
    x, y = h + nonzero(rng, 9 + 4 * level), k + nonzero(rng, 9 + 4 * level)
    power = (x - h) ** 2 + (y - k) ** 2 - square
    if power <= 0:
        return _tangent(level, rng)
    text = say(
        rng,
        (
            ("A tangent from ({x}, {y}) touches the circle {equation} at T. How long is the segment from ({x},"
            " {y}) to T?"
            " {how}"),
            "How far is the point ({x}, {y}) from the points where its tangents touch the circle {equation}? {how}",
        ),
        x=x, y=y, equation=_equation(h, k, square), how=ROOT,
    )  # fmt: skip
    return worked(text, f"{h} {k} {square} {x} {y}", root(power))


def _chord(level: int, rng: Random) -> Item:
    h, k, square = _circle(level, rng)
    a, b = nonzero(rng, 2 + level), nonzero(rng, 2 + level)
    c = a * h + b * k + rng.randint(-4, 4)
    away = (a * h + b * k - c) ** 2 / (a * a + b * b)
    if away >= square:
        return _chord(level, rng)
    line = f"{linear((a, b), ('x', 'y'))} = {c}"
    text = say(
        rng,
        (
            "The circle {equation} cuts a chord out of the line {line}. How long is the chord? {how}",
            "What is the distance between the two common points of the line {line} and the circle {equation}? {how}",
        ),
        equation=_equation(h, k, square), line=line, how=ROOT,
    )  # fmt: skip
    return worked(text, f"{h} {k} {square} {line}", root(4 * (square - away)))


def _secants(level: int, rng: Random) -> Item:
    a, b = rng.randint(2, 16 + 4 * level), rng.randint(2, 16 + 4 * level)
    c = rng.randint(2, 16 + 4 * level)
    outside = level > 1 and rng.random() < 0.6
    if outside:
        # PA * PB = PC * PD with A nearer to P than B, and C than D.
        near, far = sorted((a, a + b))
        if c * c >= near * far:
            return _secants(level, rng)
        value = Fraction(near * far, c) - c
        text = say(
            rng,
            (
                ("Two lines through a point P outside a circle meet it at A, B and at C, D, where A lies between"
                " P and B"
                " and C between P and D. PA = {near}, AB = {inner}, PC = {c}. How long is CD? {how}"),
                ("From P outside a circle, one secant meets it first at A, then at B, another first at C, then at"
                " D. With"
                " PA = {near}, AB = {inner} and PC = {c}, find CD. {how}"),
            ),
            near=near, inner=far - near, c=c, how=EXACT,
        )  # fmt: skip
    else:
        value = Fraction(a * b, c)
        text = say(
            rng,
            (
                "Two chords AB and CD of a circle cross at P. AP = {a}, PB = {b} and CP = {c}. How long is PD? {how}",
                ("The chords AB and CD of a circle meet at P inside it, with AP = {a}, PB = {b}, CP = {c}. Find"
                " PD. {how}"),
            ),
            a=a, b=b, c=c, how=EXACT,
        )  # fmt: skip
    return worked(text, f"{outside} {(a, a + b) if outside else sorted((a, b))} {c}", value)


def _sector(level: int, rng: Random) -> Item:
    radius = Fraction(rng.randint(2, 60 + 5 * level), 1 if level < 2 else rng.choice((1, 2)))
    angle = rng.choice((30, 45, 60, 90, 120, 150, 210, 240, 300) if level < 3 else (12, 36, 40, 72, 75, 100, 165, 220))
    share = Fraction(angle, 360)
    kinds = (
        ("area of the sector", share * radius**2, ""),
        ("length of its arc", 2 * share * radius, ""),
        ("perimeter of the sector, both radii included", 2 * share * radius, f"{2 * radius}"),
    )
    what, factor, more = kinds[rng.randrange(2 + (level > 0))]
    text = say(
        rng,
        (
            ("A sector of a circle of radius {r} has an angle of {angle} degrees at the centre. What is the"
            " {what}? {how}"),
            "From a circle of radius {r} a sector with the angle {angle} degrees is cut out. Find the {what}. {how}",
        ),
        r=radius, angle=angle, what=what, how="Give it exactly, with pi.",
    )  # fmt: skip
    return worked(text, f"{what} {radius} {angle}", f"{linear((factor,), ('pi',))}{f' + {more}' if more else ''}")


def _through(level: int, rng: Random) -> Item:
    limit = 4 + 2 * level
    points = [(rng.randint(-limit, limit), rng.randint(-limit, limit)) for _ in range(3)]
    if level < 2:
        # A right angle at the second point: its neighbours are the ends of a diameter.
        x, y = points[1]
        u, v = nonzero(rng, 3 + level), nonzero(rng, 3 + level)
        s, t = rng.choice((1, 2)), rng.choice((-2, -1, 1, 2))
        points = [(x + s * u, y + s * v), (x, y), (x - t * v, y + t * u)]
    (ax, ay), (bx, by), (cx, cy) = points
    d = 2 * (ax * (by - cy) + bx * (cy - ay) + cx * (ay - by))
    if d == 0:
        return _through(level, rng)
    a, b, c = (x * x + y * y for x, y in points)
    h = Fraction(a * (by - cy) + b * (cy - ay) + c * (ay - by), d)
    k = Fraction(a * (cx - bx) + b * (ax - cx) + c * (bx - ax), d)
    text = say(
        rng,
        (
            "Which point has the same distance from {a}, {b} and {c}? Give it as a tuple of exact numbers.",
            "What is the centre of the circle through {a}, {b} and {c}? Give it as a tuple of exact numbers.",
        ),
        a=points[0], b=points[1], c=points[2],
    )  # fmt: skip
    return worked(text, f"{sorted(points)}", f"({h}, {k})")


CIRCLES = mathematics(
    "circles",
    2,
    {
        "centres_and_radii": _centre,
        "tangent_lengths": _tangent,
        "chords": _chord,
        "chords_and_secants": _secants,
        "sectors": _sector,
        "circles_through_points": _through,
    },
    ("0", "1", "2", "(0, 0)"),
)
