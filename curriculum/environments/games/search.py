"""Finds shortest solutions of a level, with the true rules, breadth first. Pure."""

from __future__ import annotations

from collections import deque

from verifiers.games.rules import Game, GameState, Level

MOST_STATES = 4_000


def shortest(game: Game, level: Level, most_states: int = MOST_STATES) -> list[str] | None:
    """Returns the actions of one shortest solution of a game's level; None if none is found within `most_states`
    states."""
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
