"""Spec of the kind `game`: a game with hidden rules, and a shortest solution of each level."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from verifiers.contract.spec_data import SpecData, SpecModel

ActionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,40}$")]
LEVELS, SIDE, SHORTEST = 12, 24, 200


class GameLevel(SpecData):
    map: str = Field(min_length=9, max_length=SIDE * (SIDE + 1))
    """Map in the format of `verifiers.games.rules`."""
    shortest: int = Field(ge=1, le=SHORTEST)
    """Number of actions of a shortest solution; `CUTOFF` times as many end the game."""


class GameData(SpecData):
    actions: tuple[ActionName, ...] = Field(min_length=1, max_length=12)
    """Action names shown to the player."""
    effects: tuple[str, ...] = Field(min_length=1, max_length=12)
    """Effect of each action: one of `rules.EFFECTS`."""
    movement: Literal["step", "slide", "fall", "turn"] = "step"
    wrap: bool = False
    """True if leaving the map re-enters it at the opposite edge."""
    period: int = Field(default=0, ge=0, le=8)
    """Period of the barriers in ticks; 0 without barriers."""
    signs: str = Field(min_length=1, max_length=40)
    """Character displayed in a frame for each mark of `rules.SHOWN`."""
    levels: tuple[GameLevel, ...] = Field(min_length=1, max_length=LEVELS)


class GameSpec(SpecModel):
    """The submission lists the player's actions, separated by blanks; they are replayed."""

    kind: Literal["game"] = "game"
    game: GameData
    solution: tuple[tuple[ActionName, ...], ...]
    """Winning actions of each level; their number equals its `shortest`."""
    least: float = Field(default=0.25, ge=0, le=1)
    """Minimum score to pass, once all levels are won: 0.25 allows twice the shortest number of actions."""

    def summary(self) -> str:
        return f"{self.kind}: {len(self.game.levels)} levels"
