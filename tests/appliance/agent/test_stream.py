"""Rollouts are made in a stream, too: more are added while others are under way, and batches are made beside them."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import pytest
from agent_tasks import task_of
from scripted_engine import ScriptedEngine

from appliance.agent.assignment import Assignment
from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent
from appliance.records.rollouts import Purpose, Rollout
from appliance.rendering.renderer import Renderer
from runtime.errors import RefusedError
from runtime.sandbox import CallResult, CallStatus, Tier, Usage


class Calls:
    """A pool and its session: a call is answered when the test says so."""

    tier, usage = Tier.SHARED, Usage()

    def __init__(self, refuses: bool = False) -> None:
        self.waiting: list[Future[CallResult]] = []
        self.open_sessions = 0
        self._refuses = refuses

    def open(self, **_: Any) -> Calls:
        if self._refuses:
            raise RefusedError("no runsc")
        self.open_sessions += 1
        return self

    def start(self, code: str, **_: Any) -> Future[CallResult]:
        self.waiting.append(Future())
        return self.waiting[-1]

    def answer(self) -> None:
        for future in self.waiting:
            future.set_result(CallResult(status=CallStatus.OK, output="6", seconds=0, tier=Tier.SHARED, sandbox="s"))
        self.waiting.clear()

    def close(self) -> None:
        self.open_sessions -= 1


def assignments(*names: str) -> list[Assignment]:
    task = task_of("gcd of 12 and 18?")
    return [Assignment(name, task, "c", 0, number, Purpose.TRAIN, 1.0, number) for number, name in enumerate(names)]


def agent_of(renderer: Renderer, pool: Calls) -> tuple[Agent, ScriptedEngine]:
    """Calls a tool with an even seed, and then answers; the others answer at once."""

    def script(request: Any, known: tuple[int, ...]) -> tuple[int, ...]:
        first = len(known) == len(request.prompt)
        return renderer.call("6") if first and request.seed % 2 == 0 else renderer.answer("\\boxed{6}")

    engine = ScriptedEngine(script)
    return Agent(engine, pool, renderer, AgentBudget(max_tokens=400), time.monotonic), engine  # type: ignore[arg-type]


def names(rollouts: list[Rollout]) -> list[str]:
    return [rollout.id for rollout in rollouts]


def test_a_batch_is_made_beside_a_stream_and_takes_nothing_from_it(renderer: Renderer) -> None:
    pool = Calls()
    agent, engine = agent_of(renderer, pool)
    agent.add(assignments("calls", "answers"))
    assert names(agent.advance()) == ["answers"]
    assert (agent.unfinished, pool.open_sessions) == (1, 1)
    assert names(agent.roll(assignments("", "batch")[1:])) == ["batch"]
    assert (agent.unfinished, pool.open_sessions, engine.unfinished) == (1, 1, 1), "it is still under way"
    agent.add(assignments("", "added")[1:])
    assert names(agent.advance()) == ["added"]
    pool.answer()
    ended = [rollout for _ in range(3) for rollout in agent.advance()]
    assert names(ended) == ["calls"]
    assert ended[0].answer == "6"
    assert (agent.unfinished, pool.open_sessions, engine.unfinished) == (0, 0, 0)


def test_a_stream_that_is_dropped_holds_nothing_and_what_comes_back_late_goes_to_nobody(renderer: Renderer) -> None:
    pool = Calls()
    agent, engine = agent_of(renderer, pool)
    agent.add(assignments("calls"))
    agent.advance()
    agent.drop()
    assert (agent.unfinished, pool.open_sessions, engine.unfinished) == (0, 0, 0)
    pool.answer()
    assert names(agent.roll(assignments("", "batch")[1:])) == ["batch"]


def test_without_isolation_a_stream_ends_too(renderer: Renderer) -> None:
    agent, engine = agent_of(renderer, Calls(refuses=True))
    agent.add(assignments("calls"))
    with pytest.raises(RefusedError):
        agent.advance()
    agent.drop()
    assert engine.unfinished == 0
