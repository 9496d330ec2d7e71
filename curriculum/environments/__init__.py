"""The table of environments, by name."""

from __future__ import annotations

from curriculum.contract.environment import Environment

_ROWS: tuple[Environment, ...] = ()
ENVIRONMENTS: dict[str, Environment] = {environment.name: environment for environment in _ROWS}
