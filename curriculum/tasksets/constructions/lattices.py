"""Points with whole coordinates in large figures, and reflected paths that are unfolded."""

from __future__ import annotations

from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.composed.object_steps import lattice_points
from curriculum.tasksets.huge_numbers import floor_sum
from curriculum.tasksets.statements import listed, say, whole, worked


def polygons(hand: bool, level: int, rng: Random) -> Item:
    """Asks for the points in a polygon whose corners are given in turn: star-shaped about (0, 0)."""
    size = (15, 20, 25, 40, 60)[level] if hand else (40, 10**4, 10**6, 10**9, 10**12)[level]
    ways = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
    chosen = sorted(rng.sample(range(8), 3 + level // 2))
    if any((b - a) % 8 > 3 for a, b in zip(chosen, [*chosen[1:], chosen[0]], strict=True)):
        return polygons(hand, level, rng)  # (0, 0) is not inside
    corners = [
        (x * rng.randint(size // 4, size), y * rng.randint(size // 4, size)) for x, y in (ways[i] for i in chosen)
    ]
    if rng.random() < 0.5:
        corners.reverse()
    text = say(
        rng,
        (
            ("How many points with whole coordinates lie in the polygon with the corners {corners}, in this order?"
            " Points on the boundary count."),
            ("A polygon has the corners {corners}, one after the other. Count the points with whole coordinates inside"
            " it and on its boundary."),
        ),
        corners=listed(corners),
    )  # fmt: skip
    return whole(text, f"{sorted(corners)}", lattice_points(corners))


def below_lines(level: int, rng: Random) -> Item:
    """Asks for the points with coordinates >= 0 below a line, and from level 3 on between two lines."""
    size = (10**3, 10**6, 10**9, 10**12, 10**15)[level]
    a, b = rng.sample(range(2, 10 * 4**level), 2)
    high = rng.randint(size // 2, size)
    low = 0 if level < 3 else rng.randint(size // 9, size // 3)
    answer = _below(a, b, high) - (_below(a, b, low - 1) if low else 0)
    text = say(
        rng,
        (
            "How many pairs (x, y) of whole numbers x, y >= 0 satisfy {rule}?",
            "Count the points (x, y) with whole coordinates, neither of them negative, for which {rule}.",
        ),
        rule=f"{low} <= {a}x + {b}y <= {high}" if low else f"{a}x + {b}y <= {high}",
    )  # fmt: skip
    return whole(text, f"{a} {b} {low} {high}", answer)


def _below(a: int, b: int, total: int) -> int:
    count = total // a + 1  # x from 0 on; counted from the largest x downwards
    return floor_sum(count, b, a, total - a * (count - 1)) + count


def billiards(hand: bool, level: int, rng: Random) -> Item:
    """Asks where a reflected point is after a long time, or how often it has touched a side."""
    width, height = rng.sample(range(7, 20 if hand else 60 + 100 * level), 2)
    x, y = rng.randint(1, width - 1), rng.randint(1, height - 1)
    u, v = rng.randint(1, 9 if hand else width), rng.randint(1, 9 if hand else height)
    time = (20, 60, 200, 999, 2_026)[level] if hand else (300, 10**6, 10**9, 10**12, 10**15)[level]
    time += rng.randint(0, time)
    counted = level > 1 and rng.random() < 0.5
    ends = [abs((at + speed * time + side) % (2 * side) - side) for at, speed, side in ((x, u, width), (y, v, height))]
    if level and not any((at + speed * time) // side % 2 for at, speed, side in ((x, u, width), (y, v, height))):
        return billiards(hand, level, rng)  # the path ends as if the sides were passed, not reflected
    hits = (x + u * time) // width + (y + v * time) // height
    text = say(
        rng,
        (
            ("A point moves in the rectangle 0 <= x <= {w}, 0 <= y <= {h}. It starts at ({x}, {y}); per second x grows"
            " by {u} and y by {v}, until a side reflects it like a mirror. {what}"),
            ("A billiard ball without friction starts at ({x}, {y}) on a table with the corners (0, 0), ({w}, 0),"
            " ({w}, {h}) and (0, {h}), with the velocity ({u}, {v}) per second, and is reflected by the sides. {what}"),
        ),
        w=width, h=height, x=x, y=y, u=u, v=v,
        what=f"How often has it touched a side after {time} seconds? A touch at that moment counts, and a corner is"
        " two touches." if counted else f"Where is it after {time} seconds? Give the point as (x, y).",
    )  # fmt: skip
    key = f"{width} {height} {x} {y} {u} {v} {time} {counted}"
    return whole(text, key, hits) if counted else worked(text, key, f"({ends[0]}, {ends[1]})")
