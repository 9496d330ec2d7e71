"""Puzzles of moves, each answered by a shortest way: mazes, jugs, crossings, roads.

A search over all positions finds the answer, so nothing shorter exists. If several ways are shortest, the answer is the
alphabetically first, or a number that all of them share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush
from random import Random
from typing import TypeVar

from curriculum.contract.topics import Item, TopicTaskset
from curriculum.tasksets.statements import PEOPLE, TOWNS, listed
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec

Place = TypeVar("Place", bound=Hashable)
ATTEMPTS = 2_000


def first_way(
    start: Place, moves: Callable[[Place], Iterator[tuple[str, Place]]], ends: Callable[[Place], bool]
) -> str | None:
    """Returns the alphabetically first of the shortest move sequences from `start` to an end; None if none exists.
    Moves have one letter and come in alphabetical order, so breadth-first search finds it first."""
    known, ways = {start}, deque([(start, "")])
    while ways:
        place, way = ways.popleft()
        if ends(place):
            return way
        for letter, other in moves(place):
            if other not in known:
                known.add(other)
                ways.append((other, way + letter))
    return None


_FIRST = "Of several shortest ways, answer with the one whose letters come first in the alphabet, without blanks."


def _maze(level: int, rng: Random) -> Item:
    size = 5 + level
    for _ in range(ATTEMPTS):
        walls = {(r, c) for r in range(size) for c in range(size) if rng.random() < 0.3} - {
            (0, 0),
            (size - 1, size - 1),
        }

        def moves(place: tuple[int, int], walls: set[tuple[int, int]] = walls) -> Iterator[tuple[str, tuple[int, int]]]:
            row, column = place
            for letter, other in (
                ("D", (row + 1, column)),
                ("L", (row, column - 1)),
                ("R", (row, column + 1)),
                ("U", (row - 1, column)),
            ):
                if 0 <= other[0] < size and 0 <= other[1] < size and other not in walls:
                    yield letter, other

        way = first_way((0, 0), moves, lambda place: place == (size - 1, size - 1))
        if way is not None and len(way) >= 2 * size - 2 + (level > 1) * 2:
            break
    assert way is not None
    rows = ("".join("#" if (r, c) in walls else "." for c in range(size)) for r in range(size))
    said = rng.choice(
        ("Find the shortest way", "Go the shortest way", "Take the shortest way", "Give the shortest way")
    )
    text = (
        f"A map, # is a wall:\n{chr(10).join(rows)}\n{said} from the upper left to the lower right corner. Moves go "
        f"one "
        f"place: D down, L left, R right, U up. {_FIRST}"
    )
    return Item(text=text, key=str(sorted(walls)), spec=ExactSpec(expected=way), answer=way)


_MOVES = ("What can be done", "These are the moves", "One move is one of these", "Allowed are")


def _jugs(level: int, rng: Random) -> Item:
    """Makes a puzzle of unmarked jugs, to measure an amount by the fewest moves: fill, empty, pour."""
    count = 2 if level < 2 else 3
    for _ in range(ATTEMPTS):
        sizes = tuple(rng.sample(range(3, 24 + 3 * level), count))
        wanted = rng.randint(1, max(sizes) - 1)

        def moves(full: tuple[int, ...], sizes: tuple[int, ...] = sizes) -> Iterator[tuple[str, tuple[int, ...]]]:
            letters = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
            for at in range(len(sizes)):
                yield next(letters), (*full[:at], sizes[at], *full[at + 1 :])
            for at in range(len(sizes)):
                yield next(letters), (*full[:at], 0, *full[at + 1 :])
            for one in range(len(sizes)):
                for two in range(len(sizes)):
                    if one != two:
                        part = min(full[one], sizes[two] - full[two])
                        after = list(full)
                        after[one] -= part
                        after[two] += part
                        yield next(letters), tuple(after)

        way = first_way((0,) * count, moves, lambda full, wanted=wanted: wanted in full)  # type: ignore[misc]
        if way is not None and 4 + level <= len(way) <= 14 + level:
            break
    assert way is not None
    letters = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    said = [f"{next(letters)}: fill jug {at + 1}" for at in range(count)]
    said += [f"{next(letters)}: empty jug {at + 1}" for at in range(count)]
    said += [
        f"{next(letters)}: pour from jug {one + 1} into jug {two + 1}, until one is empty or the other full"
        for one in range(count) for two in range(count) if one != two
    ]  # fmt: skip
    held = ", ".join(f"jug {at + 1} holds {size}" for at, size in enumerate(sizes))
    text = (
        f"There are {count} empty jugs and as much water as one likes. In litres, {held}. {rng.choice(_MOVES)}:\n"
        f"{chr(10).join(said)}\nHow does one get exactly {wanted} litres into one of the jugs with the fewest "
        f"moves? {_FIRST}"
    )
    return Item(text=text, key=f"{sizes} {wanted}", spec=ExactSpec(expected=way), answer=way)


_LEAST = (
    "After how many minutes at least",
    "What is the least number of minutes after which",
    "How soon, in minutes,",
    "In how few minutes",
)


def _crossing(level: int, rng: Random) -> Item:
    """Asks for the least time in which people cross a bridge for two with one lamp."""
    count = 4 + level
    minutes = sorted(rng.sample(range(1, 20 + 10 * level), count))
    names = rng.sample(PEOPLE, count)
    whole = frozenset(range(count))
    times: dict[tuple[frozenset[int], bool], int] = {}
    ways: list[tuple[int, int, tuple[int, ...], bool]] = [(0, 0, tuple(range(count)), True)]
    order = 0
    while True:
        spent, _, left, here = heappop(ways)
        state = (frozenset(left), here)
        if not left:
            break
        if state in times:
            continue
        times[state] = spent
        side = left if here else tuple(sorted(whole - state[0]))
        for at, one in enumerate(side):
            for two in side[at:]:
                if (one != two) == here:  # two go over and one comes back: anything else is never quicker
                    rest = state[0] - {one, two} if here else state[0] | {one}
                    order += 1
                    heappush(ways, (spent + max(minutes[one], minutes[two]), order, tuple(sorted(rest)), not here))
    said = listed([f"{name} {time}" for name, time in zip(names, minutes, strict=True)])
    text = (
        f"{listed(names)} stand at a bridge in the dark, with one lamp. At most two can be on the bridge at a time, "
        f"and whoever "
        f"is on it needs the lamp; two go as slowly as the slower of them. Minutes that each needs for the bridge: "
        f"{said}. "
        f"{rng.choice(_LEAST)} can all be on the other side? Answer with the whole number."
    )
    return Item(text=text, key=str(minutes), spec=AnswerSpec(expected=str(spent)), answer=str(spent))


def _roads(level: int, rng: Random) -> Item:
    """Asks for the length of the shortest way between two towns over given roads."""
    count = 5 + level
    towns = rng.sample(TOWNS, count)
    while True:
        roads = {
            (one, two): rng.randint(11, 99)
            for one in range(count) for two in range(one + 1, count) if rng.random() < 0.5
        }  # fmt: skip
        lengths = _lengths(count, roads)
        if 0 < lengths[count - 1] < 10**6 and (0, count - 1) not in roads:
            break
    said = list(roads)
    rng.shuffle(said)
    lines = "\n".join(f"{towns[one]} - {towns[two]}: {roads[one, two]} km" for one, two in said)
    answer = str(lengths[count - 1])
    asked = rng.choice(
        (
            *(
                "How long is the shortest way",
                "How many kilometres is it at least",
                "What is the least distance by road",
            ),
            "How far is it by the shortest route",
        )
    )
    text = (
        f"Roads between towns, for both directions:\n{lines}\n{asked} from {towns[0]} to {towns[-1]}? Answer with "
        f"the number of "
        "kilometres alone."
    )
    return Item(text=text, key=str(sorted(roads.items())), spec=AnswerSpec(expected=answer), answer=answer)


def _lengths(count: int, roads: dict[tuple[int, int], int]) -> list[int]:
    found = [0] + [10**6] * (count - 1)
    for _ in range(count):
        for (one, two), length in roads.items():
            found[two] = min(found[two], found[one] + length)
            found[one] = min(found[one], found[two] + length)
    return found


SHORTEST_WAYS = TopicTaskset(
    name="shortest_ways",
    version=2,
    makers={"mazes": _maze, "jugs": _jugs, "bridges_by_night": _crossing, "road_maps": _roads},
    null_answers=("0", "1", "DR", "A"),
)
