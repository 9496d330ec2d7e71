"""The table of environments, by name."""

from __future__ import annotations

from curriculum.contract.environment import Environment
from curriculum.environments.games.environment import GAMES
from curriculum.environments.orchestration import ORCHESTRATION
from curriculum.environments.research import RESEARCH

_ROWS: tuple[Environment, ...] = (GAMES, RESEARCH, ORCHESTRATION)
ENVIRONMENTS: dict[str, Environment] = {environment.name: environment for environment in _ROWS}
