"""Judges a play by replaying its actions in a fresh game. Exact and deterministic."""

from __future__ import annotations

from functools import lru_cache

from verifiers.contract.errors import SpecError
from verifiers.contract.text import clip, escaped
from verifiers.contract.verdict import Ground, Judgement, Verdict
from verifiers.games.kind import GAME
from verifiers.games.rules import EFFECTS, RESET, SHOWN, Game, Play, efficiency
from verifiers.games.spec import SIDE, GameSpec

MAX_CHARACTERS = 200_000


class GameVerifier:
    name = GAME.name
    version = GAME.version

    def check(self, spec: GameSpec, *, prove: bool = False) -> None:
        """Raises SpecError for a game that cannot be played, or that its own solution does not win."""
        _checked(spec)

    def verify(self, spec: GameSpec, submission: str) -> Verdict:
        judgement, score = self._judged(spec, submission)
        return judgement.verdict(self.name, self.version, score=score)

    def _judged(self, spec: GameSpec, submission: str) -> tuple[Judgement, float]:
        if len(submission) > MAX_CHARACTERS:
            return Judgement(Ground.UNREADABLE, f"longer than {MAX_CHARACTERS} characters", {}), 0.0
        moves = submission.split()
        if not moves:
            return Judgement(Ground.UNFINISHED, "no actions were played", {}), 0.0
        play = Play(_checked(spec))
        for move in moves:
            if play.over:
                return Judgement(Ground.UNREADABLE, "actions continue after the end of the game", {}), 0.0
            if move != RESET and move not in play.game.actions:
                return Judgement(Ground.UNREADABLE, f"unknown action {clip(escaped(move), 60)}", {}), 0.0
            play.act(move)
        levels = len(spec.game.levels)
        shortest = [level.shortest for level in spec.game.levels]
        score = efficiency(shortest, play.used, play.number)
        evidence = {"levels_won": play.number, "levels": levels, "actions": play.used, "shortest": shortest}
        if play.number < levels:
            why = "its actions ran out" if play.lost else "the player stopped"
            reason = f"{play.number} of {levels} levels were won: in the next one {why}"
            return Judgement(Ground.REFUTED, reason, evidence), score
        reason = f"all {levels} levels were won in {sum(play.used)} actions, where {sum(shortest)} are enough"
        if score < spec.least:
            return Judgement(Ground.REFUTED, f"{reason}: a score of {score:.2f} of {spec.least:.2f}", evidence), score
        return Judgement(Ground.PROVED, reason, evidence), score


@lru_cache(maxsize=256)
def _checked(spec: GameSpec) -> Game:
    game = spec.game
    wrong = set(game.effects) - set(EFFECTS)
    if wrong:
        raise SpecError("unknown effect of an action", hint=f"Choose from {', '.join(EFFECTS)}.")
    if RESET in game.actions:
        raise SpecError(f"reserved action name {RESET}", hint="Choose another name: {RESET} restarts a level.")
    if len(set(game.actions)) != len(game.actions) or len(game.actions) != len(game.effects):
        raise SpecError("each action needs a unique name and one effect")
    if len(game.signs) != len(SHOWN) or not game.signs.isprintable():
        raise SpecError("signs are missing", hint=f"Give one printable character for each of {SHOWN}")
    if len(spec.solution) != len(game.levels):
        raise SpecError("a level has no solution", hint="Give the actions of each level.")
    if any(len(row) > SIDE for level in game.levels for row in level.map.split("\n")):
        raise SpecError(f"a map is wider than {SIDE}")
    try:
        made = Game(game.model_dump())
    except ValueError as error:
        raise SpecError(f"a map cannot be read: {error}") from error
    play = Play(made)
    for number, (moves, level) in enumerate(zip(spec.solution, game.levels, strict=True)):
        known = len(moves) == level.shortest and all(move in game.actions for move in moves)
        if not known or play.number != number:
            raise SpecError(f"the solution of level {number + 1} is invalid", hint="Give `shortest` known actions.")
        for move in moves:
            if play.number != number:
                raise SpecError(f"level {number + 1} is won before its solution ends")
            play.act(move)
    if play.number != len(game.levels):
        raise SpecError("the solution does not win the game")
    return made
