"""Plain description of a game spec, and the statement parts its verdict covers. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.verdict import Verdict
from verifiers.games.rules import CUTOFF
from verifiers.games.spec import GameSpec


def explain(spec: GameSpec) -> Iterator[str]:
    shortest = ", ".join(str(level.shortest) for level in spec.game.levels)
    yield f"The actions must win all {len(spec.game.levels)} levels; the shortest solutions take {shortest} actions."
    yield f"A level that takes {CUTOFF} times as many ends the game. Resets count as actions."
    yield f"The score, the weighted mean of (shortest / used)², must be at least {spec.least:g}."


def parts(_spec: GameSpec, verdict: Verdict) -> Verified:
    how = not_covered("that the player understood the rules", "only the actions are judged")
    return Verified([decided(verdict, "that the actions win every level, and how many there were")], [how])
