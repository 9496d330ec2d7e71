"""Colourings that are counted up to symmetry (Burnside): necklaces, boards, cubes and dodecahedra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import factorial, gcd, prod
from random import Random

from curriculum.contract.topics import Item
from curriculum.tasksets.statements import COLOURS, listed, say, whole

Cycles = tuple[tuple[int, int], ...]
"""Lengths of a permutation's cycles, each with its number."""
SOLIDS: Mapping[str, tuple[tuple[int, Cycles], ...]] = {
    "faces of a cube": (
        *((1, ((1, 6),)), (6, ((1, 2), (4, 1))), (3, ((1, 2), (2, 2))), (8, ((3, 2),)), (6, ((2, 3),))),
    ),
    "corners of a cube": (*((1, ((1, 8),)), (6, ((4, 2),)), (3, ((2, 4),)), (8, ((1, 2), (3, 2))), (6, ((2, 4),))),),
    "edges of a cube": (*((1, ((1, 12),)), (6, ((4, 3),)), (3, ((2, 6),)), (8, ((3, 4),)), (6, ((1, 2), (2, 5)))),),
    "faces of a regular dodecahedron": (*((1, ((1, 12),)), (24, ((1, 2), (5, 2))), (20, ((3, 4),)), (15, ((2, 6),))),),
    "corners of a regular dodecahedron": (
        *((1, ((1, 20),)), (24, ((5, 4),)), (20, ((1, 2), (3, 6))), (15, ((2, 10),))),
    ),
    "edges of a regular dodecahedron": (
        *((1, ((1, 30),)), (24, ((5, 6),)), (20, ((3, 10),)), (15, ((1, 2), (2, 14)))),
    ),
}
"""Rotations of a solid by their cycles: how many there are of each kind."""


def fixed(cycles: Cycles, counts: Sequence[int], free: int = 0) -> int:
    """Counts the colourings that a permutation with these cycles keeps: `counts[i]` places have colour i, and every
    other place one of `free` more colours."""
    places = sum(length * number for length, number in cycles)
    found = {(*counts, places - sum(counts)): 1}
    for length, number in cycles:
        after: dict[tuple[int, ...], int] = {}
        for left, ways in found.items():
            for split in product(*(range(min(number, one // length) + 1) for one in left)):
                if sum(split) == number:
                    rest = tuple(one - length * part for one, part in zip(left, split, strict=True))
                    more = factorial(number) // prod(map(factorial, split)) * free ** split[-1]
                    after[rest] = after.get(rest, 0) + ways * more
        found = after
    return found.get((0,) * (len(counts) + 1), 0)


def solids(hand: bool, level: int, rng: Random) -> Item:
    """Asks for the colourings of a solid in any of k colours, of which up to two are on a given number of places."""
    what = rng.choice(list(SOLIDS)[:3] if hand or level < 2 else list(SOLIDS)[3:])
    group = SOLIDS[what]
    places = sum(length * number for length, number in group[0][1])
    named = (1, 1, 1, 2, 2)[level] if hand else (0, 1, 0, 1, 2)[level]
    counts = sorted(rng.randint(1, places // 2 - 1) for _ in range(named))
    free = rng.randint(2, 45) if hand else rng.randint(2, 60 if named else 200)
    order, every = sum(times for times, _ in group), fixed(group[0][1], counts, free)
    found = sum(times * fixed(cycles, counts, free) for times, cycles in group) // order
    if found == every // order:
        return solids(hand, level, rng)  # no colouring has a symmetry, so a division would do
    colours = rng.sample(COLOURS, named)
    rule = f"each in one of {free} colours"
    if named:
        shown = listed([f"exactly {count} of them {colour}" for count, colour in zip(counts, colours, strict=True)])
        rule = f"{shown}, and each of the rest in one of {free} other colours"
    text = say(
        rng,
        (
            ("The {what} are painted, {rule}; not all colours need to be used. In how many ways is that possible, if"
            " ways that a rotation of the solid turns into each other count as one?"),
            ("How many essentially different ways are there to paint the {what}, {rule}? Not all colours need to be"
            " used. Ways are the same if a rotation of the solid takes one to the other; mirror images are not."),
        ),
        what=what, rule=rule,
    )  # fmt: skip
    return whole(text, f"{what} {counts} {free}", found)


def boards(level: int, rng: Random) -> Item:
    """Asks for the square boards with a number of black cells, up to rotations and, from level 2 on, reflections."""
    side = rng.randint(4 + 2 * level, 7 + 2 * level)
    cells = side * side
    black, free = rng.randint(2, cells // 2), rng.randint(2, 9)
    rotations = (((1, cells),), _cycles(cells, 2), _cycles(cells, 4), _cycles(cells, 4))
    on_axis = side if side % 2 else 0
    mirrors = [((1, on_axis), (2, (cells - on_axis) // 2))] * 2 + [((1, side), (2, (cells - side) // 2))] * 2
    group = (*rotations, *mirrors) if level > 1 else rotations
    found = sum(fixed(cycles, (black,), free) for cycles in group) // len(group)
    text = say(
        rng,
        (
            ("On a board of {n} by {n} cells, exactly {k} cells are black, and every other cell has one of {c} other"
            " colours. How many such boards are there, if boards that {moves} turns into each other count as one?"),
            ("The cells of a square board of {n} by {n} are painted: {k} of them black, and each of the others in one"
            " of {c} other colours. How many ways are there, if ways that {moves} of the board turns into each other"
            " are the same?"),
        ),
        n=side, k=black, c=free, moves="a rotation or reflection" if level > 1 else "a rotation",
    )  # fmt: skip
    return whole(text, f"{side} {black} {free} {level > 1}", found)


def _cycles(cells: int, turns: int) -> Cycles:
    """Returns the cycles of a rotation of that order: all of that length, but for the middle cell."""
    return ((1, cells % 2), (turns, cells // turns))


def necklaces(level: int, rng: Random) -> Item:
    """Asks for necklaces: of any colours, with different neighbours, or with given numbers of each colour."""
    beads, k = rng.randint(*((8, 45), (12, 50), (12, 55), (20, 45), (30, 60))[level]), rng.randint(3, 12)
    flips, kind = level > 0, ("any", "any", "differ", "counts", rng.choice(("differ", "counts")))[level]
    cuts = sorted(rng.sample(range(1, beads), 2))
    counts = sorted(b - a for a, b in zip([0, *cuts], [*cuts, beads], strict=True))
    rotated = sum(_kept(kind, beads // gcd(beads, turn), gcd(beads, turn), k, counts) for turn in range(1, beads + 1))
    found = (rotated + _mirrored(kind, beads, k, counts)) // (2 * beads) if flips else rotated // beads
    rule = {
        "any": f"{beads} beads, each in one of {k} colours, of which not all need to be used",
        "differ": f"{beads} beads, each in one of {k} colours, where neighbouring beads have different colours",
        "counts": f"{beads} beads, {listed([f'{one} {colour}' for one, colour in zip(counts, COLOURS, strict=False)])}",
    }[kind]
    text = say(
        rng,
        (
            "How many different necklaces have {rule}? Necklaces that {moves} turns into each other are the same.",
            ("A closed necklace has {rule}. How many are there, if those that {moves} turns into each other are the"
            " same?"),
        ),
        rule=rule, moves="a rotation or a flip" if flips else "a rotation",
    )  # fmt: skip
    key = f"{beads} {flips} {kind} {counts if kind == 'counts' else k}"
    return whole(text, key, found)


def _kept(kind: str, length: int, number: int, k: int, counts: Sequence[int]) -> int:
    """Counts the necklaces that a rotation with `number` cycles of this length keeps."""
    if kind == "differ":
        return int((k - 1) ** number + (-1) ** number * (k - 1))
    return int(k**number) if kind == "any" else fixed(((length, number),), counts)


def _mirrored(kind: str, beads: int, k: int, counts: Sequence[int]) -> int:
    """Counts, over all flips, the necklaces that the flip keeps."""
    half = beads // 2
    through = ((1, 1), (2, half)) if beads % 2 else ((1, 2), (2, half - 1))
    between = through if beads % 2 else ((2, half),)
    if kind == "differ":  # a flip that exchanges two neighbours keeps none
        return 0 if beads % 2 else int(half * k * (k - 1) ** half)
    each = [int(k ** sum(number for _, number in one)) if kind == "any" else fixed(one, counts)
            for one in (through, between)]  # fmt: skip
    return beads * each[0] if beads % 2 else half * sum(each)
