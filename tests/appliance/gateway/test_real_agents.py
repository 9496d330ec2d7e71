"""Agents from PyPI, unchanged, against the gateway: each asks, has a tool called, and ends with the model's words."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest

from appliance.gateway.chat_request import ClientTool
from appliance.rendering.renderer import ToolRequest

CALLED: list[str] = []


def weather(city: str) -> str:
    """Says how the weather is.

    Args:
        city: Name of the city.
    """
    CALLED.append(city)
    return f"rain in {city}"


def call_then_answer(gateway: Any, tool: str, arguments: dict[str, Any]) -> None:
    """The model calls the tool, and answers once it has read the result."""
    name, schema = tool, {"type": "object", "properties": {one: {} for one in arguments}}
    made = gateway.renderer.request(
        ToolRequest(tool=name, arguments=arguments), (ClientTool(name=name, parameters=schema),)
    )
    turns = iter([made])
    gateway.says(lambda known: next(turns, gateway.renderer.answer("It rains in Ulm.")))


def openai_agents(gateway: Any) -> str:
    import agents
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)

    async def run() -> str:
        async with AsyncOpenAI(
            base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key=gateway.secrets["agent"]
        ) as client:
            model = agents.OpenAIResponsesModel("champion", client)
            agent = agents.Agent("forecaster", tools=[agents.function_tool(weather)], model=model)
            return str((await agents.Runner.run(agent, "How is the weather in Ulm?")).final_output)

    return asyncio.run(run())


def pydantic_ai(gateway: Any) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(base_url=f"http://127.0.0.1:{gateway.port}", api_key=gateway.secrets["agent"])
    agent = Agent(AnthropicModel("claude-sonnet-4-0", provider=provider), tools=[weather])
    return str(agent.run_sync("How is the weather in Ulm?").output)


def smolagents(gateway: Any) -> str:
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    model = OpenAIServerModel(
        "champion", api_base=f"http://127.0.0.1:{gateway.port}/v1", api_key=gateway.secrets["agent"]
    )
    turns = iter([("weather", {"city": "Ulm"}), ("final_answer", {"answer": "It rains in Ulm."})])

    def says(_known: tuple[int, ...]) -> tuple[int, ...]:
        name, arguments = next(turns)
        schema = {"type": "object", "properties": {one: {} for one in arguments}}
        made: tuple[int, ...] = gateway.renderer.request(
            ToolRequest(tool=name, arguments=arguments), (ClientTool(name=name, parameters=schema),)
        )
        return made

    gateway.says(says)
    agent = ToolCallingAgent(tools=[tool(weather)], model=model, verbosity_level=0)
    return str(agent.run("How is the weather in Ulm?"))


@pytest.mark.parametrize("agent", [openai_agents, pydantic_ai, smolagents])
def test_an_unchanged_agent_calls_its_tool_and_answers_with_the_models_words(gateway: Any, agent: Any) -> None:
    CALLED.clear()
    call_then_answer(gateway, "weather", {"city": "Ulm"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert agent(gateway).strip() == "It rains in Ulm."
    assert CALLED == ["Ulm"]
    newest = gateway.kept.get(gateway.kept.names()[0])
    assert newest.turns >= 1
