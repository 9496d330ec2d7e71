"""A rollout whose session went down with a host goes on from its tokens in another one."""

from __future__ import annotations

import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from agent_tasks import task_of
from scripted_engine import Ids, ScriptedEngine
from test_agent_keeping import Digests

from appliance.agent.assignment import Assignment
from appliance.agent.budget import AgentBudget
from appliance.agent.keeping import RolloutKeeper
from appliance.agent.loop import MOVES, Agent
from appliance.inference.engine import GenerationRequest
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd
from appliance.rendering.renderer import Renderer
from appliance.worker.training.partial_rollouts import PartialRollouts
from runtime.errors import HostLostError, InfrastructureError
from runtime.sandbox import CallResult, Session, SessionPool, Usage


class DoomedSession:
    """A real session on a host that is lost after so many of its calls."""

    def __init__(self, real: Session, calls: int, error: Exception) -> None:
        self._real, self._left, self._error = real, calls, error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def usage(self) -> Usage:
        if self._left <= 0:
            raise self._error
        return self._real.usage

    def start(self, code: str, **how: Any) -> Future[CallResult]:
        self._left -= 1
        if self._left >= 0:
            return self._real.start(code, **how)
        lost: Future[CallResult] = Future()
        lost.set_exception(self._error)
        return lost


class FailingHosts:
    """A pool of real sessions, of which the first few are doomed."""

    def __init__(self, real: SessionPool, doomed: int, calls: int, error: Exception) -> None:
        self._real, self._doomed, self._calls, self._error = real, doomed, calls, error
        self.opened = 0

    def open(self, **how: Any) -> Any:
        self.opened += 1
        session = self._real.open(**how)
        return session if self.opened > self._doomed else DoomedSession(session, self._calls, self._error)

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


LOST = HostLostError("host-1 is lost")


def rolled(
    renderer: Renderer, pool: Any, first: str = "y = 5\nprint(y)", keeper: RolloutKeeper | None = None
) -> tuple[Rollout, Agent, ScriptedEngine]:
    """One rollout of two calls, of which the second needs what the first has left, and an answer."""

    def script(request: GenerationRequest, known: Ids) -> Ids:
        said = renderer.text(known)
        if "y + 1" in said:
            return renderer.answer("\\boxed{6}")
        return renderer.call("print(y + 1)") if "y = " in said else renderer.call(first)

    engine = ScriptedEngine(script, version="c@3")
    agent = Agent(engine, pool, renderer, AgentBudget(max_tokens=240), time.monotonic)
    agent.keeper = keeper
    task = task_of("gcd of 12 and 18?")
    made = Assignment("r", task, "c", 3, 0, Purpose.TRAIN, temperature=1.0, seed=0)
    (rollout,) = agent.roll([made])
    assert engine.unfinished == 0
    return rollout, agent, engine


@pytest.mark.parametrize("calls", [0, 1])
def test_it_goes_on_from_its_tokens_and_its_calls_are_made_once_more(
    renderer: Renderer, sessions: SessionPool, calls: int
) -> None:
    alone, _, undisturbed = rolled(renderer, sessions)
    pool = FailingHosts(sessions, 1, calls, LOST)
    rollout, agent, engine = rolled(renderer, pool)
    assert [node.ids for node in rollout.nodes] == [node.ids for node in alone.nodes]
    assert (rollout.ended, rollout.answer, agent.moved) == (RolloutEnd.ANSWERED, "6", 1)
    assert [call.output.strip() for call in rollout.calls] == ["5", "6"]
    assert engine.tokens_sampled == undisturbed.tokens_sampled
    assert (pool.opened, rollout.usage.calls, agent.last_failure) == (2, 2, "")


def test_one_whose_calls_cannot_be_made_once_more_begins_anew(renderer: Renderer, sessions: SessionPool) -> None:
    """The clock moves a session to a sandbox of its own."""
    pool = FailingHosts(sessions, 1, 1, LOST)
    rollout, agent, engine = rolled(renderer, pool, "import time\ny = time.time()\nprint(y)")
    assert (rollout.ended, agent.moved, pool.opened) == (RolloutEnd.ANSWERED, 1, 2)
    assert engine.tokens_sampled > rollout.sampled_tokens


def test_what_a_lost_host_cost_is_not_said_to_be_of_an_earlier_process(
    renderer: Renderer, sessions: SessionPool, tmp_path: Path
) -> None:
    keeper = PartialRollouts(tmp_path / "rollouts.json", time.monotonic, Digests())
    rollout, agent, _ = rolled(
        renderer, FailingHosts(sessions, 1, 1, LOST), "import time\ny = time.time()\nprint(y)", keeper
    )
    assert (rollout.ended, agent.moved, keeper.committed(3)) == (RolloutEnd.ANSWERED, 1, "")


def test_one_that_loses_host_after_host_is_lost(renderer: Renderer, sessions: SessionPool) -> None:
    pool = FailingHosts(sessions, 100, 0, LOST)
    rollout, agent, _ = rolled(renderer, pool)
    assert (rollout.ended, agent.moved, pool.opened) == (RolloutEnd.INFRA_ERROR, MOVES, MOVES + 1)
    assert "host-1 is lost" in agent.last_failure


def test_a_sandbox_that_died_by_itself_is_not_tried_again(renderer: Renderer, sessions: SessionPool) -> None:
    """What the model ran in it may be why."""
    pool = FailingHosts(sessions, 1, 1, InfrastructureError("it died"))
    rollout, agent, _ = rolled(renderer, pool)
    assert (rollout.ended, agent.moved, pool.opened) == (RolloutEnd.INFRA_ERROR, 0, 1)


def test_one_whose_host_is_lost_after_its_last_call_ends_as_it_would_have(
    renderer: Renderer, sessions: SessionPool
) -> None:
    """What it used is then counted from its results."""
    rollout, agent, _ = rolled(renderer, FailingHosts(sessions, 1, 2, LOST))
    assert (rollout.ended, rollout.answer, agent.moved) == (RolloutEnd.ANSWERED, "6", 0)
    assert rollout.usage.calls == 2
    assert rollout.usage.seconds == sum(call.seconds for call in rollout.calls)
