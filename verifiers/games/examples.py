"""Variants of the solution that a check should reject. Pure: the verifier decides each."""

from __future__ import annotations

from verifiers.contract import examples as e
from verifiers.games.rules import RESET
from verifiers.games.spec import GameSpec


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
