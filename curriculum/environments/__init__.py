"""Environments by name, and a folder for each.

`ENVIRONMENTS` is the table. A folder has the environment's definition on the host and its program, `world.py`, which
runs only in a sandbox. The protocol is `curriculum.contract.environment`; `curriculum.worlds` runs programs.
"""

from __future__ import annotations

from common.plugins.table import OpenTable
from curriculum.contract.environment import Environment
from curriculum.environments.foreign import FOREIGN
from curriculum.environments.games.environment import GAMES
from curriculum.environments.mail.environment import MAIL
from curriculum.environments.mcp import MCP
from curriculum.environments.orchestration import ORCHESTRATION, PUBLISHED_SERVERS
from curriculum.environments.research import RESEARCH
from curriculum.environments.terminal.environment import CONTAINER, TERMINAL

_ROWS: tuple[Environment, ...] = (
    *(MAIL, GAMES, RESEARCH, ORCHESTRATION, PUBLISHED_SERVERS, TERMINAL, CONTAINER, MCP),
    *FOREIGN.values(),
)
ENVIRONMENTS: OpenTable[Environment] = OpenTable(
    "environments", {environment.name: environment for environment in _ROWS}
)
