"""Movements of the plane: chains of them, undone, their fixed points, areas of images, points of a lattice."""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.exact_arithmetic import linear
from curriculum.tasksets.statements import EXACT, listed, mathematics, nonzero, say, whole, worked

Affine = tuple[Fraction, Fraction, Fraction, Fraction, Fraction, Fraction]
"""Coefficients (a, b, c, d, e, f) of an affine map: (x, y) goes to (a x + b y + e, c x + d y + f)."""
PAIR = "Give the point as a tuple of exact numbers."


def applied(move: Affine, x: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
    a, b, c, d, e, f = move
    return a * x + b * y + e, c * x + d * y + f


def _around(a: int, b: int, c: int, d: int, x: int, y: int) -> Affine:
    """Returns the affine map with linear part (a, b; c, d) that leaves (x, y) fixed."""
    return tuple(map(Fraction, (a, b, c, d, x - a * x - b * y, y - c * x - d * y)))  # type: ignore[return-value]


def _move(level: int, rng: Random) -> tuple[str, Affine]:
    """Draws a movement of the plane, in words and as numbers: rotation, reflection, shift or scaling."""
    limit = 2 + 2 * level
    x, y = (0, 0) if level == 0 else (rng.randint(-limit, limit), rng.randint(-limit, limit))
    kind = rng.choice(("turn", "mirror", "shift", "scale", "slope")[: 3 + (level > 0) + (level > 1)])
    if kind == "turn":
        quarter = rng.choice((1, 2, 3))
        a, b, c, d = ((0, -1, 1, 0), (-1, 0, 0, -1), (0, 1, -1, 0))[quarter - 1]
        return f"rotated by {90 * quarter} degrees counterclockwise around ({x}, {y})", _around(a, b, c, d, x, y)
    if kind == "mirror":
        at = nonzero(rng, limit) if level else 0
        if rng.random() < 0.5:
            return f"reflected in the line x = {at}", _around(-1, 0, 0, 1, at, 0)
        return f"reflected in the line y = {at}", _around(1, 0, 0, -1, 0, at)
    if kind == "slope":
        at = rng.randint(-limit, limit)
        name = f"y = x {'-' if at < 0 else '+'} {abs(at)}" if at else "y = x"
        return f"reflected in the line {name}", _around(0, 1, 1, 0, 0, at)
    if kind == "shift":
        u, v = nonzero(rng, 5 + limit), nonzero(rng, 5 + limit)
        return f"shifted by the vector ({u}, {v})", (
            Fraction(1),
            Fraction(0),
            Fraction(0),
            Fraction(1),
            Fraction(u),
            Fraction(v),
        )
    factor = rng.choice((2, 3, -2, -3))
    return f"scaled by the factor {factor} from the centre ({x}, {y})", _around(factor, 0, 0, factor, x, y)


def _chain(level: int, rng: Random) -> Item:
    x, y = Fraction(nonzero(rng, 6 + 4 * level)), Fraction(nonzero(rng, 6 + 4 * level))
    moves = [_move(level, rng) for _ in range(1 + level if level < 4 else 4)]
    at = (x, y)
    for _, move in moves:
        at = applied(move, *at)
    steps = "; then ".join(words for words, _ in moves)
    text = say(
        rng,
        (
            "The point ({x}, {y}) is {steps}. Where does it end up? {how}",
            "Start with the point ({x}, {y}). It is {steps}. Which point is reached? {how}",
        ),
        x=x, y=y, steps=steps, how=PAIR,
    )  # fmt: skip
    return worked(text, f"{x} {y} {steps}", f"({at[0]}, {at[1]})")


def _backwards(level: int, rng: Random) -> Item:
    x, y = Fraction(nonzero(rng, 6 + 4 * level)), Fraction(nonzero(rng, 6 + 4 * level))
    moves = [_move(level, rng) for _ in range(1 + (level + 1) // 2)]
    at = (x, y)
    for _, move in moves:
        at = applied(move, *at)
    steps = "; then ".join(words for words, _ in moves)
    text = say(
        rng,
        (
            "A point is {steps}. It ends up at ({x}, {y}). Where was it at first? {how}",
            "Which point reaches ({x}, {y}) when it is {steps}? {how}",
        ),
        x=at[0], y=at[1], steps=steps, how=PAIR,
    )  # fmt: skip
    return worked(text, f"{at[0]} {at[1]} {steps}", f"({x}, {y})")


def _fixed(level: int, rng: Random) -> Item:
    limit = 2 + level
    a, b, c, d = (rng.randint(-limit, limit) for _ in range(4))
    if level < 2:
        b = c = 0
    # (a - 1) x + b y + e = 0 and c x + (d - 1) y + f = 0
    under = (a - 1) * (d - 1) - b * c
    e, f = nonzero(rng, 9 + 3 * level), nonzero(rng, 9 + 3 * level)
    if under == 0:
        return _fixed(level, rng)
    x, y = Fraction(-e * (d - 1) + b * f, under), Fraction(-f * (a - 1) + c * e, under)
    first, second = (linear(row, ("x", "y", "")) for row in ((a, b, e), (c, d, f)))
    text = say(
        rng,
        (
            "Which point does the map (x, y) -> ({first}, {second}) leave where it is? {how}",
            "Find the fixed point of the map that takes (x, y) to ({first}, {second}). {how}",
        ),
        first=first, second=second, how=PAIR,
    )  # fmt: skip
    return worked(text, f"{a} {b} {c} {d} {e} {f}", f"({x}, {y})")


def _area(level: int, rng: Random) -> Item:
    limit, corners = 6 + 3 * level, 3 + (level + 1) // 2
    xs = sorted(rng.sample(range(-limit, limit + 1), corners))
    # A chain from left to right below, and the way back along the segment above it: never crosses itself.
    top = limit + 2
    points = [(xs[0], top), *((x, rng.randint(-limit, limit)) for x in xs[1:-1]), (xs[-1], top)]
    twice = abs(sum(a * d - b * c for (a, b), (c, d) in zip(points, [*points[1:], points[0]], strict=True)))
    stretch = level > 1
    a, b, c, d = (rng.randint(-3 - level, 3 + level) for _ in range(4)) if stretch else (1, 0, 0, 1)
    factor = abs(a * d - b * c)
    first, second = (linear(row, ("x", "y")) for row in ((a, b), (c, d)))
    moved = f" The map (x, y) -> ({first}, {second}) is applied to it." if stretch else ""
    text = say(
        rng,
        (
            "A polygon has the corners {points}, in this order.{moved} What is the area{after}? {how}",
            "Consider the polygon with the corners {points}, taken in this order.{moved} Find the area{after}. {how}",
        ),
        points=listed(points), moved=moved, after=" of its image" if stretch else "", how=EXACT,
    )  # fmt: skip
    return worked(text, f"{points} {a} {b} {c} {d}", Fraction(twice * factor, 2))


def _lattice(level: int, rng: Random) -> Item:
    limit = 8 + 5 * level
    points = [(rng.randint(-limit, limit), rng.randint(-limit, limit)) for _ in range(3)]
    sides = list(zip(points, [*points[1:], points[0]], strict=True))
    twice = abs(sum(a * d - b * c for (a, b), (c, d) in sides))
    if twice == 0:
        return _lattice(level, rng)
    edge = sum(gcd(c - a, d - b) for (a, b), (c, d) in sides)
    inner = (twice - edge + 2) // 2  # Pick's theorem
    kind = rng.choice(("inside", "both"))
    text = say(
        rng,
        (
            "How many points with whole coordinates lie {where} the triangle with the corners {points}?",
            "Count the points (x, y), x and y whole numbers, that lie {where} the triangle with the corners {points}.",
        ),
        points=listed(points),
        where={"inside": "strictly inside", "both": "inside or on the boundary of"}[kind],
    )  # fmt: skip
    return whole(text, f"{sorted(points)} {kind}", inner + edge if kind == "both" else inner)


TRANSFORMATIONS = mathematics(
    "transformations",
    2,
    {
        "chains_of_movements": _chain,
        "movements_undone": _backwards,
        "fixed_points": _fixed,
        "areas_of_polygons": _area,
        "lattice_points": _lattice,
    },
    ("0", "1", "2", "(0, 0)"),
)
