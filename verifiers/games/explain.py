"""Description of a game spec, the statement parts its verdict covers, and variants of the solution to reject. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.contract import examples as e
from verifiers.contract.statement import Verified, decided, not_covered
from verifiers.contract.verdict import Verdict
from verifiers.games.rules import CUTOFF, RESET
from verifiers.games.spec import GameSpec


def explain(spec: GameSpec) -> Iterator[str]:
    shortest = ", ".join(str(level.shortest) for level in spec.game.levels)
    yield f"The actions must win all {len(spec.game.levels)} levels; the shortest solutions take {shortest} actions."
    yield f"A level that takes {CUTOFF} times as many ends the game. Resets count as actions."
    yield f"The score, the weighted mean of (shortest / used)², must be at least {spec.least:g}."


def parts(_spec: GameSpec, verdict: Verdict) -> Verified:
    how = not_covered("that the player understood the rules", "only the actions are judged")
    return Verified([decided(verdict, "that the actions win every level, and how many there were")], [how])


def examples(spec: GameSpec, answer: str | None, try_: e.AskVerifier) -> e.ExampleReport:
    moves = [move for level in spec.solution for move in level]
    names = sorted(spec.game.actions)
    whole = " ".join(moves)
    inputs = [
        *e.of_the_job(spec, answer),
        e.ExampleInput("example", "the solution", spec, whole),
        e.ExampleInput("example", "the solution after a reset", spec, f"{RESET} {whole}"),
        e.ExampleInput("mutant", "the solution without its last action", spec, " ".join(moves[:-1])),
        e.ExampleInput("mutant", "one action repeated", spec, " ".join(names[:1] * len(moves))),
        e.ExampleInput("mutant", "all actions in turn", spec, " ".join(names * len(moves))),
        e.ExampleInput("mutant", "only resets", spec, " ".join([RESET] * 3)),
        e.ExampleInput("mutant", "empty", spec, ""),
    ]
    tried = try_(e.distinct(inputs, whole))
    return e.ExampleReport(tuple(tried), e.refused(tried, "the solution", "THE SOLUTION ITSELF IS REFUSED"))
