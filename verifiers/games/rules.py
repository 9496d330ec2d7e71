"""Rules of the grid games in one plain-Python module, shared by the playing environment and the replaying verifier.

Invariants: a step is a pure function of game, state and action, without clock or randomness. A game is plain data: the
effect of each action, the movement mode, and a map for each level.

Maps have one row per line. `#` wall, `.` floor, `P` start, `G` goal, `O` box, `_` plate for a box, `k` key, `D` door
that takes a key, `a` to `c` tiles that colour the player, `1` to `3` gates for that colour, `x` and `y` two ends of a
teleport each, `*` token, `^` pit, `|` barrier that is open in one of `period` ticks. A level is won on the goal once
all tokens are taken and all plates covered; a player who falls into a pit restarts the level.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
HEADINGS = ((-1, 0), (0, 1), (1, 0), (0, -1))
EFFECTS = (*MOVES, "forward", "turn left", "turn right", "flip", "nothing")
"""Effects of an action: `forward` and turns need a heading, `flip` reverses gravity."""
TURNS = {"turn right": 1, "turn left": -1, "flip": 0}
MOVEMENTS = ("step", "slide", "fall", "turn")
"""`slide`: until blocked. `fall`: one step, then down as far as possible. `turn`: with a heading."""
MARKS = "#.PGO_kDabc123xy*^|"
SHOWN = "#.GO_kDabc123xy*^|PQRS"
"""Marks that a frame can show: P to S are the player, by colour."""
CUTOFF = 5
"""Multiple of the shortest solution after which a level, and so the game, is lost."""
RESET = "reset"


class GameState(NamedTuple):
    """Positions and counters of a game. Cells are numbered row by row."""

    place: int
    boxes: frozenset[int]
    gone: frozenset[int]
    """Cells whose key or token was taken, or whose door was opened."""
    keys: int = 0
    colour: int = 0
    tick: int = 0
    down: int = 1
    heading: int = 0


_state = partial(tuple.__new__, GameState)
"""Fast constructor of `GameState`, twice as fast as the class: a search makes hundreds of thousands."""


class Level:
    """A game level's parsed map. Raises ValueError for an invalid one."""

    def __init__(self, text: str, wrap: bool) -> None:
        rows = text.split("\n")
        self.width, self.height = len(rows[0]), len(rows)
        self.cells = "".join(rows)
        if any(len(row) != self.width for row in rows) or set(self.cells) - set(MARKS):
            raise ValueError("rows of different lengths, or an unknown mark")
        if self.cells.count("P") != 1 or self.cells.count("G") != 1:
            raise ValueError("a map needs exactly one start and one goal")
        self.plates = self._all("_")
        self.tokens = self._all("*")
        self.ends: dict[int, int] = {}
        for mark in "xy":
            found = sorted(self._all(mark))
            if len(found) not in (0, 2):
                raise ValueError("a teleport needs two ends")
            self.ends.update(zip(found, reversed(found), strict=True))
        self.beside = _neighbours(self.width, self.height, wrap)
        """Neighbour cell by direction and cell, or -1 beyond the edge."""
        self.start = GameState(self.cells.index("P"), self._all("O"), frozenset())

    def _all(self, mark: str) -> frozenset[int]:
        return frozenset(place for place, found in enumerate(self.cells) if found == mark)


@lru_cache(maxsize=256)
def _neighbours(width: int, height: int, wrap: bool) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for move in HEADINGS:
        cells = [(row + move[0], column + move[1]) for row in range(height) for column in range(width)]
        cells = [(row % height if wrap else row, column) for row, column in cells]
        found[move] = [r * width + c if 0 <= r < height and 0 <= c < width else -1 for r, c in cells]
    return found


class Game:
    """A game parsed from its data: `actions` and their `effects`, `movement`, `wrap`, `period`, `signs` for `SHOWN`,
    and `levels`, each a `map` and the length of its `shortest` solution."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.actions: dict[str, str] = dict(zip(data["actions"], data["effects"], strict=True))
        self.movement: str = data["movement"]
        self.wrap: bool = data["wrap"]
        self.period: int = data["period"]
        self.signs: dict[str, str] = dict(zip(SHOWN, data["signs"], strict=True))
        self.levels = [Level(level["map"], self.wrap) for level in data["levels"]]
        self.limits = [CUTOFF * level["shortest"] for level in data["levels"]]

    def after(self, level: Level, state: GameState, effect: str) -> GameState | None:
        """Returns a game's state after an action with this effect, or None if the player fell into a pit."""
        if self.period or effect in TURNS:
            place, boxes, gone, keys, colour, tick, down, heading = state
            tick = (tick + 1) % self.period if self.period else 0
            down = -down if effect == "flip" else down
            state = _state((place, boxes, gone, keys, colour, tick, down, (heading + TURNS.get(effect, 0)) % 4))
        move = HEADINGS[state.heading] if effect == "forward" else MOVES.get(effect)
        if move is not None:
            if self.movement == "slide":
                state = self._went(level, state, move, level.width + level.height)
            else:
                state, _ = self._entered(level, state, move)
        if self.movement == "fall":
            state = self._went(level, state, (state.down, 0), level.height)
        return None if level.cells[state.place] == "^" else state

    def won(self, level: Level, state: GameState) -> bool:
        return level.cells[state.place] == "G" and self._goal_open(level, state)

    def _goal_open(self, level: Level, state: GameState) -> bool:
        return level.tokens <= state.gone and level.plates <= state.boxes

    def _stops(self, level: Level, state: GameState) -> bool:
        mark = level.cells[state.place]
        return mark == "^" or (mark == "G" and self._goal_open(level, state))

    def _went(self, level: Level, state: GameState, move: tuple[int, int], most: int) -> GameState:
        """Moves a game's player up to `most` cells, until blocked; returns the state."""
        cells, beside = level.cells, level.beside[move]
        while most > 0 and not self._stops(level, state):
            at, boxes = place, _ = state[:2]
            while most > 0 and (following := beside[at]) >= 0 and cells[following] == "." and following not in boxes:
                at, most = following, most - 1  # bare floor changes only the position
            if at != place:
                state = _state((at, *state[1:]))
            if most > 0:
                state, on = self._entered(level, state, move)
                most = most - 1 if on else 0
        return state

    def _entered(self, level: Level, state: GameState, move: tuple[int, int]) -> tuple[GameState, bool]:
        """Moves a game's player one cell; returns the state, and True if a slide or fall continues."""
        place = level.beside[move][state.place]
        if place < 0:
            return state, False
        mark = level.cells[place]
        if mark == "#":
            return state, False
        _, boxes, gone, keys, colour, tick, down, heading = state
        if mark == "." and place not in boxes:  # the most common cell
            return _state((place, boxes, gone, keys, colour, tick, down, heading)), True
        on = True
        if mark == "|" and tick:
            return state, False
        if mark in "123" and colour != int(mark):
            return state, False
        if mark == "D" and place not in gone:
            if not keys:
                return state, False
            keys, gone = keys - 1, gone | {place}
        if place in boxes:
            beyond = level.beside[move][place]
            if beyond < 0 or level.cells[beyond] not in "._PO" or beyond in boxes:
                return state, False
            boxes, on = (boxes - {place}) | {beyond}, False
        if mark in "k*" and place not in gone:
            keys, gone = keys + (mark == "k"), gone | {place}
        elif mark in "abc":
            colour = "abc".index(mark) + 1
        elif mark in "xy":
            place, on = level.ends[place], False
        return _state((place, boxes, gone, keys, colour, tick, down, heading)), on

    def frame(self, level: Level, state: GameState) -> str:
        """Returns the player's view: a sign for each cell, row by row."""
        shown = [
            "." if mark == "P" or mark == "O" or place in state.gone else mark for place, mark in enumerate(level.cells)
        ]
        for place in state.boxes:
            shown[place] = "O"
        shown[state.place] = "PQRS"[state.colour]
        signs = [self.signs[mark] for mark in shown]
        return "\n".join("".join(signs[at : at + level.width]) for at in range(0, len(signs), level.width))


class Play:
    """One play of a game. `used` counts the actions of each level, resets included."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.used = [0] * len(game.levels)
        self.number = 0
        """Index of the current level; the number of levels once all are won."""
        self.lost = False
        self.state = game.levels[0].start

    @property
    def over(self) -> bool:
        return self.lost or self.number == len(self.game.levels)

    def act(self, action: str) -> str:
        """Performs one action of a game; returns "", `won` (the level), `restarted`, or `lost` (the game). Raises
        KeyError for an unknown action. Must not be called once the game is over."""
        level = self.game.levels[self.number]
        after = level.start if action == RESET else self.game.after(level, self.state, self.game.actions[action])
        self.used[self.number] += 1
        self.state = level.start if after is None else after
        if after is not None and self.game.won(level, after):
            self.number += 1
            if not self.over:
                self.state = self.game.levels[self.number].start
            return "won"
        if self.used[self.number] >= self.game.limits[self.number]:
            self.lost = True
            return "lost"
        return "restarted" if after is None or action == RESET else ""

    def frame(self) -> str:
        return self.game.frame(self.game.levels[min(self.number, len(self.game.levels) - 1)], self.state)


def efficiency(shortest: list[int], used: list[int], won: int) -> float:
    """Scores a play from 0 to 1 as ARC-AGI-3 does (docs.arcprize.org/methodology, RHAE). Each level won earns (shortest
    / used)², at most 1; the score is the mean weighted by level number. The baseline here is the shortest solution,
    where the source uses people's."""
    earned = sum(number * min(1.0, (shortest[number - 1] / used[number - 1]) ** 2) for number in range(1, won + 1))
    return earned / (len(shortest) * (len(shortest) + 1) / 2)
