"""Environment and arguments with which agent programs use the gateway. Pure.

Nothing is written for an agent: what it cannot read from the environment, it gets as arguments. Another agent is one
more row of `AGENTS`. The variables are those of each program's own documentation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from appliance.gateway.champion import NAME

IDLE_MILLISECONDS = 1_200_000
"""Time that a client waits for the first words of a stream: a turn is sent when it is complete."""


@dataclass(frozen=True)
class GatewayEndpoint:
    """The gateway as a client sees it."""

    url: str
    """Base URL, ending in `/v1`."""
    key: str
    """Token."""
    tokens: int
    """Tokens of the longest conversation."""


@dataclass(frozen=True)
class AgentStart:
    """Start of an agent program that uses the gateway."""

    environment: Mapping[str, str]
    command: tuple[str, ...] = ()
    """Program with its arguments; empty if any program may be started so."""
    install: str = ""
    """Command that installs the program."""


@dataclass(frozen=True)
class KnownAgent:
    about: str
    """Name of the program, or description of its kind."""
    start: Callable[[GatewayEndpoint], AgentStart] = field(repr=False)


def _claude(at: GatewayEndpoint) -> AgentStart:
    tiers = {f"ANTHROPIC_DEFAULT_{tier}_MODEL": NAME for tier in ("OPUS", "SONNET", "HAIKU")}
    off = {
        # A checksum at the beginning of each prompt would end every session and every cached prefix.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_TOTAL_TOKENS_REMINDER": "off",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    environment = {
        "ANTHROPIC_BASE_URL": at.url.removesuffix("/v1"),
        "ANTHROPIC_AUTH_TOKEN": at.key,
        "ANTHROPIC_API_KEY": "",
        "ANTHROPIC_MODEL": NAME,
        **tiers,
        "CLAUDE_CODE_SUBAGENT_MODEL": "inherit",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(at.tokens),
        **off,
    }
    return AgentStart(environment, ("claude",), "npm install -g @anthropic-ai/claude-code")


def _codex(at: GatewayEndpoint) -> AgentStart:
    provider = {"name": "assay", "base_url": at.url, "env_key": "ASSAY_GATEWAY_TOKEN", "wire_api": "responses"}
    given = {f"model_providers.assay.{name}": json.dumps(value) for name, value in provider.items()}
    given |= {"model_providers.assay.stream_idle_timeout_ms": str(IDLE_MILLISECONDS)}
    given |= {"model_provider": '"assay"', "model": json.dumps(NAME), "model_context_window": str(at.tokens)}
    given |= {"web_search": '"disabled"'}
    arguments = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
    return AgentStart({"ASSAY_GATEWAY_TOKEN": at.key}, ("codex", *arguments), "npm install -g @openai/codex")


def _opencode(at: GatewayEndpoint) -> AgentStart:
    limit = {"context": at.tokens, "output": at.tokens}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "assay",
        "options": {"baseURL": at.url, "apiKey": at.key},
        "models": {NAME: {"name": NAME, "limit": limit}},
    }
    config = {"$schema": "https://opencode.ai/config.json", "provider": {"assay": provider}, "model": f"assay/{NAME}"}
    return AgentStart({"OPENCODE_CONFIG_CONTENT": json.dumps(config)}, ("opencode",), "npm install -g opencode-ai")


def _aider(at: GatewayEndpoint) -> AgentStart:
    environment = {"OPENAI_API_BASE": at.url, "OPENAI_API_KEY": at.key}
    return AgentStart(environment, ("aider", "--model", f"openai/{NAME}"), "pip install aider-chat")


def _openai(at: GatewayEndpoint) -> AgentStart:
    return AgentStart({"OPENAI_BASE_URL": at.url, "OPENAI_API_KEY": at.key})


def _anthropic(at: GatewayEndpoint) -> AgentStart:
    return AgentStart({"ANTHROPIC_BASE_URL": at.url.removesuffix("/v1"), "ANTHROPIC_API_KEY": at.key})


AGENTS: Mapping[str, KnownAgent] = {
    "claude": KnownAgent("Claude Code", _claude),
    "codex": KnownAgent("Codex CLI", _codex),
    "opencode": KnownAgent("opencode", _opencode),
    "aider": KnownAgent("aider", _aider),
    "openai": KnownAgent("any program that reads OpenAI's variables", _openai),
    "anthropic": KnownAgent("any program that reads Anthropic's variables", _anthropic),
}
