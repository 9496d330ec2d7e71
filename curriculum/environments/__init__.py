"""The table of environments, by name."""

from __future__ import annotations

from curriculum.contract.environment import Environment
from curriculum.environments.orchestration import ORCHESTRATION
from curriculum.environments.research import RESEARCH

_ROWS: tuple[Environment, ...] = (RESEARCH, ORCHESTRATION)
ENVIRONMENTS: dict[str, Environment] = {environment.name: environment for environment in _ROWS}
