"""Makes games: rules shared by all levels of a game, maps of rooms in a row, and levels proved solvable. Pure.

Invariants: each level's number of actions is that of a shortest solution, found breadth first with the true rules; no
single action, no two in turn, not all in turn, and no tried random walk wins a level within its limit. Obstacles
between rooms yield to one rule each: a player at the goal has passed every opening, or got there by its rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import permutations
from random import Random

from verifiers.games.rules import EFFECTS, SHOWN, Game, GameState, Level
from verifiers.games.spec import GameData, GameLevel, GameSpec

MOST_STATES = 4_000


def shortest(game: Game, level: Level, most_states: int = MOST_STATES) -> list[str] | None:
    """Returns the actions of a shortest solution of a game's level; None if not found within `most_states` states."""
    if not _may_be_won(level):
        return None
    names = {effect: name for name, effect in reversed(game.actions.items()) if effect != "nothing" or game.period}
    step, cells, effects = game.after, level.cells, tuple(names.items())
    came: dict[GameState, tuple[GameState, str] | None] = {level.start: None}
    waiting = deque([level.start])
    while waiting and len(came) <= most_states:
        state = waiting.popleft()
        for effect, name in effects:
            after = step(level, state, effect)
            if after is None or after in came:
                continue
            came[after] = (state, name)
            if cells[after.place] == "G" and game.won(level, after):
                return _traced(came, after)
            waiting.append(after)
    return None


def _may_be_won(level: Level) -> bool:
    """True if a level's goal and all tokens are reachable with every door, gate and barrier open. Half of all drawn
    maps fail, and this costs less than a search."""
    reached, waiting = {level.start.place}, [level.start.place]
    while waiting:
        place = waiting.pop()
        for beside in level.beside.values():
            near = beside[place]
            if near >= 0 and near not in reached and level.cells[near] != "#":
                found = (near, level.ends.get(near, near))
                reached.update(found)
                waiting += found
    return level.tokens <= reached and level.cells.index("G") in reached


def _traced(came: dict[GameState, tuple[GameState, str] | None], state: GameState) -> list[str]:
    names = []
    while (before := came[state]) is not None:
        state, name = before
        names.append(name)
    return names[::-1]


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


MOVING = ("sliding", "falling", "turning")
TOPICS = (*OBSTACLES, *MOVING)
MOVEMENT = {"sliding": "slide", "falling": "fall", "turning": "turn"}
SIGNS = "0123456789abcdefghijklmnopqrstuvwxyz"
ACTIONS = {
    "step": EFFECTS[:4],
    "slide": EFFECTS[:4],
    "fall": ("left", "right", "flip"),
    "turn": ("forward", "turn left", "turn right"),
}
LEVELS = (3, 3, 4, 4, 5)
"""Levels per game, by the taskset's level; the next tables are also by that level."""
OBSTACLE_COUNTS = (1, 1, 2, 2, 3)
ROOMS = (2, 2, 3, 3, 3)
HEIGHTS = (6, 7, 7, 7, 7)
LEAST = {"step": (6, 7, 8, 9, 10), "slide": (6, 7, 8, 9, 9), "fall": (6, 7, 8, 9, 10), "turn": (8, 9, 10, 11, 12)}
"""Actions of a first level's shortest solution, by movement; one more for every second level."""
MOST = 60
ATTEMPTS = 200
WALKS = 24


def game(topic: str, level: int, rng: Random) -> GameSpec:
    """Makes a game with hidden rules about a topic, with its solution."""
    while True:
        made = _attempt(topic, level, rng)
        if made is not None:
            return made


def _attempt(topic: str, level: int, rng: Random) -> GameSpec | None:
    movement = MOVEMENT.get(topic, "step")
    if movement == "step" and level >= 3 and rng.random() < 0.5 and topic != "boxes":
        movement = rng.choice(("slide", "turn"))
    known = [one for one in OBSTACLES if one != topic and (one != "boxes" or movement == "step")]
    first = [topic] if topic in OBSTACLES else []
    obstacles = [*first, *rng.sample(known, OBSTACLE_COUNTS[level] - len(first))]
    effects = [*ACTIONS[movement], *["nothing"] * (1 if level or "barriers" in obstacles else 0)]
    rng.shuffle(effects)
    signs = rng.sample(SIGNS, len(SHOWN))
    wrap = level > 0 and movement in ("step", "turn") and rng.random() < 0.3
    rules = GameData(
        actions=tuple(str(number + 1) for number in range(len(effects))),
        effects=tuple(effects),
        movement=movement,
        wrap=wrap,
        period=rng.randint(2, 3) if "barriers" in obstacles else 0,
        signs="".join(signs),
        levels=(GameLevel(map="P.......G", shortest=1),),
    )
    levels: list[GameLevel] = []
    solutions: list[tuple[str, ...]] = []
    for number in range(LEVELS[level]):
        among = obstacles[: number + 1]
        found = _level(
            rules, level, among, LEAST[movement][level] + number // 2, rng, walks=WALKS if number == 0 else 2
        )
        if found is None:
            return None
        text, solution = found
        levels.append(GameLevel(map=text, shortest=len(solution)))
        solutions.append(tuple(solution))
    return GameSpec(game=rules.model_copy(update={"levels": tuple(levels)}), solution=tuple(solutions))


def _level(
    rules: GameData, level: int, obstacles: Sequence[str], least: int, rng: Random, *, walks: int
) -> tuple[str, list[str]] | None:
    falls, data = rules.movement == "fall", rules.model_dump()
    for _ in range(ATTEMPTS):
        text = drawn(
            rng,
            obstacles,
            rooms=min(ROOMS[level], 1 + len(obstacles)),
            height=HEIGHTS[level],
            width=3,
            walls=rng.uniform(0.15, 0.3) if rules.movement in ("slide", "fall") else rng.uniform(0.05, 0.25),
            pits=rng.randint(0, 2) if level >= 2 else 0,
            wrap=rules.wrap,
            falls=falls,
        )
        if text is None:
            continue
        made = Game({**data, "levels": [{"map": text, "shortest": MOST}]})
        found = shortest(made, made.levels[0])
        if found is None or not least <= len(found) <= MOST:
            continue
        made.limits[0] = 5 * len(found)
        if not _wins_without_thought(made, rng, walks):
            return text, found
    return None


def _wins_without_thought(game: Game, rng: Random, walks: int) -> bool:
    """True if trivial play wins the game's first level within its limit. Tries one, two, all in turn, random walks."""
    names, most = sorted(game.actions), game.limits[0]
    steps: Steps = {}
    in_turn = [(name,) for name in names] + [*permutations(names, 2), tuple(names)]
    if any(_wins_in_turn(game, steps, moves, most) for moves in in_turn):
        return True
    start = game.levels[0].start
    return any(_walked(game, steps, start, rng.choices(names, k=most)) is None for _ in range(walks))


Steps = dict[tuple[GameState, str], GameState | None]
"""Cache of moves: the state after an action in a state, None if it wins."""


def _wins_in_turn(game: Game, steps: Steps, moves: tuple[str, ...], most: int) -> bool:
    """True if repeating these moves in turn wins the game's first level within `most` actions. Stops when a round
    begins in a state where one began before."""
    state, begun, left = game.levels[0].start, set[GameState](), most
    while left > 0 and state not in begun:
        begun.add(state)
        after = _walked(game, steps, state, moves[:left])
        if after is None:
            return True
        state, left = after, left - len(moves)
    return False


def _walked(game: Game, steps: Steps, state: GameState, moves: Iterable[str]) -> GameState | None:
    """Returns the state of the game's first level after all moves, or None as soon as it is won. Caches in `steps`."""
    level: Level = game.levels[0]
    for name in moves:
        step = (state, name)
        if step in steps:
            after = steps[step]
        else:
            after = game.after(level, state, game.actions[name]) or level.start
            after = steps[step] = None if game.won(level, after) else after
        if after is None:
            return None
        state = after
    return state
