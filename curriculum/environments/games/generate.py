"""Makes games: rules shared by all levels of a game, and levels proved solvable and not won by trivial play.

Invariants: each level's number of actions is that of a shortest solution, found breadth first with the true rules; no
single action, no two in turn, not all in turn, and no tried random walk wins a level within its limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from random import Random

from curriculum.environments.games.maps import OBSTACLES, drawn
from curriculum.environments.games.search import shortest
from verifiers.games.rules import EFFECTS, SHOWN, Game, GameState, Level
from verifiers.games.spec import GameData, GameLevel, GameSpec

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
    """True if trivial play wins the game's first level within its limit. Tries one action, two or all in turn, and
    random walks."""
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
    """Returns the state of the game's first level after all moves, or None as soon as it is won. Adds new steps to the
    cache `steps`."""
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
