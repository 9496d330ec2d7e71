"""Orchestration of many tools in the manner of LiveMCP-101 (2508.15760): servers of the Model Context Protocol.

A world has several servers in one child process, each of which speaks the protocol over a pair of pipes through the
real SDK. Their data drift from day to day; the setup fixes the day, so no call changes anything. The model lists and
calls their tools through the client, which is the world's program. Worlds of `published_servers` also have servers that
others publish on PyPI and npm (`published`), in processes of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from curriculum.adapters import ADAPTERS
from curriculum.contract.environment import MadeCall, ToolSchema
from curriculum.contract.errors import CurriculumError
from curriculum.environments.orchestration.failures import failure_modes
from curriculum.environments.orchestration.plans import executed
from curriculum.environments.orchestration.published import ALL_SERVICES, GIVEN, PUBLISHED, given
from curriculum.environments.orchestration.services import SERVICES
from runtime.model import FrozenModel
from runtime.profile import PackageSet

_SERVER = {"type": "string", "maxLength": 40, "description": "A server, as list_tools names it."}
TOOLS = (
    ToolSchema(
        name="list_tools",
        description="Without a server: lists the servers. With one: lists its tools and their arguments.",
        parameters={"type": "object", "properties": {"server": _SERVER}, "additionalProperties": False},
    ),
    ToolSchema(
        name="call_tool",
        description="Calls one tool of a server.",
        parameters={
            "type": "object",
            "properties": {
                "server": _SERVER,
                "tool": {"type": "string", "maxLength": 80},
                "arguments": {"type": "object", "description": "The tool's arguments by name; none unless given."},
            },
            "required": ["server", "tool"],
            "additionalProperties": False,
        },
    ),
)


class OrchestrationSetup(FrozenModel):
    seed: int = Field(ge=0)
    day: int = Field(ge=0)
    servers: tuple[str, ...] = Field(min_length=1, max_length=len(ALL_SERVICES))
    question: dict[str, Any] = Field(default_factory=dict)
    """Input of the plan, for classifying a rollout's failures."""


class OrchestrationEnvironment:
    name = "orchestration"
    version = 1
    tools: Sequence[ToolSchema] = TOOLS
    shareable = True
    adapter = "mcp"
    """Name of the adapter whose packages its guests have."""
    servers: Sequence[str] = tuple(SERVICES)
    """Servers that a world may have."""

    @property
    def program(self) -> str:
        here = Path(__file__)
        return "\n\n".join(here.with_name(name).read_text(encoding="utf-8") for name in ("services.py", "world.py"))

    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Returns what the servers that others publish need, if the setup names any: how they start, and their files.
        Raises CurriculumError for an invalid setup."""
        hint = f"give a seed, a day, and servers among {', '.join(self.servers)}"
        try:
            asked = OrchestrationSetup.model_validate(setup)
        except ValidationError as error:
            problem = f"invalid setup of a world of {self.name}: {error.errors()[0]['msg']}"
            raise CurriculumError(problem, hint=hint) from error
        if unknown := set(asked.servers) - set(self.servers):
            raise CurriculumError(f"unknown server {min(unknown)[:40]!r}", hint=hint)
        published = [name for name in asked.servers if name in PUBLISHED]
        return {GIVEN: json.dumps(given(asked.seed, asked.day, published)).encode()} if published else {}

    def failure_modes(
        self, setup: Mapping[str, Any], calls: Sequence[MadeCall], *, answered: bool, passed: bool
    ) -> Mapping[str, int]:
        """Counts the seven failure modes of LiveMCP-101 in a rollout's tool calls; see `failures`."""
        asked = OrchestrationSetup.model_validate(setup)
        steps = executed(asked.question, asked.seed, asked.day).steps
        return failure_modes(steps, calls, answered=answered, passed=passed)

    def packages(self, setup: Mapping[str, Any]) -> PackageSet | None:
        """Returns the installed package set with the MCP SDK; None if it is not installed."""
        return ADAPTERS[self.adapter].installed()

    def missing(self) -> str:
        return ADAPTERS[self.adapter].missing()


class PublishedServersEnvironment(OrchestrationEnvironment):
    """Worlds with servers that others publish beside ours, from a package set of exact versions."""

    name = "published_servers"
    adapter = "mcp_servers"
    servers = tuple(ALL_SERVICES)


ORCHESTRATION = OrchestrationEnvironment()
PUBLISHED_SERVERS = PublishedServersEnvironment()
