"""Draws maps: rooms in a row, separated by obstacles that only one of the game's rules gets past. Pure.

Invariants: a player who reaches the goal has passed every opening, or got there by the rule that the opening is about.
The caller checks whether a map can be solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

OBSTACLES = ("doors", "colours", "teleports", "tokens", "barriers", "boxes")
"""Requirements of a room's exit. `tokens` and `boxes` concern the goal, and need no opening of their own."""


class Drawing:
    """Map of a game's level under construction, cell by cell."""

    def __init__(self, rng: Random, rooms: int, height: int, widths: Sequence[int], *, wrap: bool) -> None:
        self.rng, self.height = rng, height
        self.columns: list[range] = []
        at = 1
        for width in widths[:rooms]:
            self.columns.append(range(at, at + width))
            at += width + 1
        self.width = at
        edge = "." if wrap else "#"
        rows = [[edge if row in (0, height - 1) else "." for _ in range(self.width)] for row in range(height)]
        for row in rows:
            for column in [0, *(room.stop for room in self.columns)]:
                row[column] = "#"
        self.rows = rows

    def put(self, mark: str, room: int, *, near_wall: bool = True) -> tuple[int, int] | None:
        """Puts a mark on a random free cell of the room, and returns the cell; None if none is free. Without
        `near_wall`, a box there can be pushed from all sides."""
        free = [
            (row, column)
            for row in range(self.height)
            for column in self.columns[room]
            if self.rows[row][column] == "." and (near_wall or self._open(row, column))
        ]
        if not free:
            return None
        row, column = self.rng.choice(free)
        self.rows[row][column] = mark
        return row, column

    def open(self, mark: str, room: int) -> None:
        """Puts `mark` into the wall between this room and the next one, at a random height."""
        self.rows[self.rng.randrange(1, self.height - 1)][self.columns[room].stop] = mark

    def text(self) -> str:
        """Returns the map as text, a line per row, mirrored left to right at random."""
        lines = ["".join(row) for row in self.rows]
        return "\n".join(line[::-1] for line in lines) if self.rng.random() < 0.5 else "\n".join(lines)

    def _open(self, row: int, column: int) -> bool:
        return 1 < row < self.height - 2 and self.columns_hold(column - 1) and self.columns_hold(column + 1)

    def columns_hold(self, column: int) -> bool:
        return any(column in room for room in self.columns)


def drawn(
    rng: Random, obstacles: Sequence[str], *, rooms: int, height: int, width: int, walls: float, pits: int, wrap: bool,
    falls: bool,
) -> str | None:  # fmt: skip
    """Draws a map of a game's level with these rooms and obstacles; None if something did not fit."""
    made = Drawing(rng, rooms, height, [rng.randint(width - 1, width + 1) for _ in range(rooms)], wrap=wrap)
    put: list[object] = []
    in_way = [obstacle for obstacle in obstacles if obstacle not in ("tokens", "boxes")]
    order = [*in_way, *["gap"] * rooms][: rooms - 1]
    rng.shuffle(order)
    colours: list[int] = []
    for room, obstacle in enumerate(order):
        before = rng.randrange(room + 1)
        if obstacle == "doors":
            made.open("D", room)
            put.append(made.put("k", before))
        elif obstacle == "colours":
            colour = rng.randint(1, 3)
            colours.append(colour)
            made.open(str(colour), room)
            put.append(made.put("abc"[colour - 1], before))
        elif obstacle == "barriers":
            made.open("|", room)
        elif obstacle == "teleports" and not any("x" in row for row in made.rows):
            put += [made.put("x", room), made.put("x", room + 1)]
        elif obstacle == "teleports" and not any("y" in row for row in made.rows):
            put += [made.put("y", room), made.put("y", room + 1)]
        else:
            made.open(".", room)
    if colours:
        put.append(made.put("abc"[rng.randrange(3)], rng.randrange(rooms)))
    if "tokens" in obstacles:
        put += [made.put("*", rng.randrange(rooms)) for _ in range(2)]
    if "boxes" in obstacles:
        room = rng.randrange(rooms)
        put += [made.put("O", room, near_wall=False), made.put("_", room)]
    put += [made.put("P", 0), made.put("G", rooms - 1)]
    free = sum(row.count(".") for row in made.rows)
    for _ in range(int(walls * free)):
        made.put("#", rng.randrange(rooms))
    for _ in range(pits):
        made.put("^", rng.randrange(rooms))
    return None if None in put else made.text()
