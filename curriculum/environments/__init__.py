"""The table of environments, by name."""

from __future__ import annotations

from curriculum.contract.environment import Environment
from curriculum.environments.games.environment import GAMES

_ROWS: tuple[Environment, ...] = (GAMES,)
ENVIRONMENTS: dict[str, Environment] = {environment.name: environment for environment in _ROWS}
