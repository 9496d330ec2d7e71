"""Worlds of an owner's MCP servers: each runs one server in its own sandbox, and offers its tools.

Invariants: none of the server's code runs outside that sandbox. The tool descriptions that a model sees are in the
task's setup, bounded and checked when the task was made; a server that lists anything else is a broken world. Neither
the answer nor the check of a task is in its world. A server's score is not a verdict: if a task asks for it, its spec
passes nothing (`FOREIGN_SPEC`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from curriculum.adapters import ADAPTERS
from curriculum.contract.environment import ToolSchema
from curriculum.contract.errors import CurriculumError
from curriculum.environments.mcp.listing import CALLED_CHARS, MOST_TOOLS, ServedTool, fault_in
from runtime.model import FrozenModel
from runtime.profile import PackageSet

MOST_ARGUMENTS = 16
Argument = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]
LIST_SERVED = ToolSchema(
    name="list_served_tools",
    description="Lists what the server can be asked, beginning with the given tool, as many as fit.",
    parameters={
        "type": "object",
        "properties": {"first": {"type": "integer", "minimum": 0, "maximum": MOST_TOOLS}},
        "required": ["first"],
        "additionalProperties": False,
    },
)
"""Tool for making tasks, never offered to a model."""


class ServerSetup(FrozenModel):
    package: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    """Owner's package, started as by `python -m`."""
    arguments: tuple[Argument, ...] = Field(default=(), max_length=MOST_ARGUMENTS)
    """Command-line arguments of the server."""
    listed: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """SHA-256 of the server's tool list; empty for a world that makes tasks and offers no tools."""
    tools: tuple[ServedTool, ...] = Field(default=(), max_length=MOST_TOOLS)
    """Tools that the model may call."""
    score: str = Field(default="", max_length=CALLED_CHARS)
    """Server tool that scores the rollout, for a task without a built-in check."""


class McpEnvironment:
    name = "mcp"
    version = 1
    tools: Sequence[ToolSchema] = (LIST_SERVED,)
    shareable = False

    @property
    def program(self) -> str:
        here = Path(__file__).parent
        return "\n\n".join(
            file.read_text(encoding="utf-8") for file in (here.parent / "foreign/serving.py", here / "world.py")
        )

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns no files, because the world needs none. Raises CurriculumError for an invalid setup."""
        self.read(setup)
        return {}

    def brought(self, setup: Mapping[str, Any]) -> Sequence[ToolSchema]:
        return tuple(tool.as_schema for tool in self.read(setup).tools)

    def read(self, setup: Mapping[str, Any]) -> ServerSetup:
        """Parses the setup of an MCP server's world. Raises CurriculumError if it is invalid."""
        try:
            return _read(json.dumps(dict(setup), sort_keys=True))
        except (ValueError, TypeError, RecursionError) as error:
            what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            problem = f"invalid setup of a world of {self.name}: {what}"
            raise CurriculumError(problem, hint="make its tasks again: `assay curriculum adapter add mcp`") from error

    def packages(self, setup: Mapping[str, Any]) -> PackageSet | None:
        """Returns the MCP SDK's package set, with the owner's package that the setup names."""
        return ADAPTERS[self.name].installed(self.read(setup).package)

    def missing(self) -> str:
        """Returns an empty reason, so never refuses: each world checks its own package."""
        return ""


@lru_cache(maxsize=64)
def _read(setup: str) -> ServerSetup:
    found = ServerSetup.model_validate_json(setup)
    for tool in found.tools:
        if why := fault_in(tool):
            raise ValueError(why)
    return found


MCP = McpEnvironment()
