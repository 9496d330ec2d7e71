"""The table of environments, by name."""

from __future__ import annotations

from curriculum.contract.environment import Environment
from curriculum.environments.games.environment import GAMES
from curriculum.environments.terminal.environment import TERMINAL

_ROWS: tuple[Environment, ...] = (GAMES, TERMINAL)
ENVIRONMENTS: dict[str, Environment] = {environment.name: environment for environment in _ROWS}
