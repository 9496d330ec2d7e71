"""The table of environments, by name."""

from __future__ import annotations

from curriculum.contract.environment import Environment
from curriculum.environments.mail.environment import MAIL

_ROWS: tuple[Environment, ...] = (MAIL,)
ENVIRONMENTS: dict[str, Environment] = {environment.name: environment for environment in _ROWS}
