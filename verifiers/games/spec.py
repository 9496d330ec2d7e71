"""A game with its rules, which whoever plays is never shown, and a shortest solution of each level."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from verifiers.contract.spec_data import SpecData, SpecModel

ActionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,40}$")]
LEVELS, SIDE, SHORTEST = 12, 24, 200


class GameLevel(SpecData):
    map: str = Field(min_length=9, max_length=SIDE * (SIDE + 1))
    """As `verifiers.games.rules` reads it."""
    shortest: int = Field(ge=1, le=SHORTEST)
    """Actions of a shortest solution; `CUTOFF` times as many end the game."""


class GameData(SpecData):
    actions: tuple[ActionName, ...] = Field(min_length=1, max_length=12)
    """The names that the player is told."""
    effects: tuple[str, ...] = Field(min_length=1, max_length=12)
    """What each of them does: one of `rules.EFFECTS`."""
    movement: Literal["step", "slide", "fall", "turn"] = "step"
    wrap: bool = False
    """Whether rows go on at the other end of the map."""
    period: int = Field(default=0, ge=0, le=8)
    """Ticks of a barrier; 0 without any."""
    signs: str = Field(min_length=1, max_length=40)
    """For each mark of `rules.SHOWN` what a frame shows for it."""
    levels: tuple[GameLevel, ...] = Field(min_length=1, max_length=LEVELS)


class GameSpec(SpecModel):
    """The submission is the list of the player's actions, with blanks between them; they are replayed."""

    kind: Literal["game"] = "game"
    game: GameData
    solution: tuple[tuple[ActionName, ...], ...]
    """For each level actions that win it in the number that it calls the shortest."""
    least: float = Field(default=0.25, ge=0, le=1)
    """The score that passes, where all levels are won: a quarter is twice as many actions as there have to be."""

    def summary(self) -> str:
        return f"{self.kind}: {len(self.game.levels)} levels"
