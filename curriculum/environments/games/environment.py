"""The environment `games`: a game with hidden rules, played by tools.

Invariants: the world's program is the source of the verifier's rules plus the tools, so a replay reproduces the game; a
model gets the names of the actions, never their effects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import resources
from typing import Any

from pydantic import ValidationError

from common.bounded_models import first_fault
from curriculum.contract.environment import ToolSchema
from curriculum.contract.errors import CurriculumError
from runtime.sandbox import NO_FILES
from verifiers.games.spec import GameData

NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
ACT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "actions": {"type": "array", "items": {"type": "string", "maxLength": 40}, "minItems": 1, "maxItems": 20}
    },
    "required": ["actions"],
    "additionalProperties": False,
}


class GamesEnvironment:
    name = "games"
    version = 1
    shareable = True
    tools: Sequence[ToolSchema] = (
        ToolSchema(name="look", description="Shows the frame of the game. It is no action.", parameters=NOTHING),
        ToolSchema(
            name="act",
            description="Plays 1 to 20 actions, by name, one after another, and shows the frame after them. It stops "
            "where a level is won or begins anew.",
            parameters=ACT,
        ),
        ToolSchema(name="reset", description="Begins the level anew. It counts as an action.", parameters=NOTHING),
    )

    @cached_property
    def program(self) -> str:
        rules = resources.files("verifiers.games").joinpath("rules.py").read_text(encoding="utf-8")
        world = resources.files(__package__).joinpath("world.py").read_text(encoding="utf-8")
        return f"{rules}\n\n{world}"

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns no files, because the setup is the game. Raises CurriculumError for an invalid game."""
        try:
            GameData.model_validate(setup)
        except ValidationError as error:
            raise CurriculumError(f"invalid game: {first_fault(error)}", hint="see verifiers/games/spec.py") from error
        return NO_FILES

    def missing(self) -> str:
        return ""


GAMES = GamesEnvironment()
