"""Finds shortest solutions of a level, with the true rules, breadth first. Pure."""

from __future__ import annotations

from collections import deque

from verifiers.games.rules import Game, GameState, Level

MOST_STATES = 4_000


def shortest(game: Game, level: Level, most_states: int = MOST_STATES) -> list[str] | None:
    """The actions of one shortest solution; None where there is none, or none among so many states."""
    names = {effect: name for name, effect in reversed(game.actions.items()) if effect != "nothing" or game.period}
    came: dict[GameState, tuple[GameState, str]] = {}
    seen = {level.start}
    waiting = deque([level.start])
    while waiting and len(seen) <= most_states:
        state = waiting.popleft()
        for effect, name in names.items():
            after = game.after(level, state, effect)
            if after is None or after in seen:
                continue
            came[after] = (state, name)
            if game.won(level, after):
                return _traced(came, after, level.start)
            seen.add(after)
            waiting.append(after)
    return None


def _traced(came: dict[GameState, tuple[GameState, str]], state: GameState, start: GameState) -> list[str]:
    names = []
    while state != start:
        state, name = came[state]
        names.append(name)
    return names[::-1]
