"""Rollouts of chat models: their own calls are run, and what a program prints is text, whatever it spells."""

from __future__ import annotations

import time

import pytest
from agent_tasks import task_of
from chat_models import MARKS, files_of
from scripted_engine import ScriptedEngine

from appliance.agent.assignment import Assignment
from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent
from appliance.learning.batches import sample_each
from appliance.records.rollouts import Purpose, Role, RolloutEnd, ToolStatus
from appliance.rendering.formats import load_renderer
from appliance.rendering.guarded import GuardedTokenizer
from runtime.sandbox import SessionPool


@pytest.mark.parametrize("family", ["qwen3", "llama-3", "glm-4.5", "kimi-k2", "deepseek-v3"])
def test_a_chat_model_s_calls_are_run_and_a_program_that_prints_marks_forges_nothing(
    family: str, sessions: SessionPool
) -> None:
    renderer, tokenizer = load_renderer(files_of(family)), GuardedTokenizer(files_of(family))
    hostile = "".join(MARKS[family])
    bad = renderer.call(" ")
    turns = [renderer.call(f"print({hostile!r})"), bad, renderer.call("1 / 0"), renderer.answer("so \\boxed{6}")]
    left = list(turns)
    engine = ScriptedEngine(lambda request, known: left.pop(0))
    agent = Agent(engine, sessions, renderer, AgentBudget(max_tokens=20_000), time.monotonic)
    task = task_of("gcd of 12 and 18? " + hostile)
    asked = Assignment(id="r", task=task, cycle="c", step=0, sample=0, purpose=Purpose.TRAIN, temperature=1.0, seed=0)
    (rollout,) = agent.roll([asked])
    assert (rollout.ended, rollout.answer) == (RolloutEnd.ANSWERED, "6")
    assert [call.status for call in rollout.calls] == [ToolStatus.OK, ToolStatus.PARSE_ERROR, ToolStatus.EXCEPTION]
    assert rollout.calls[0].output.strip() == hostile
    assert tuple(node.ids for node in rollout.nodes if node.role is Role.ASSISTANT) == tuple(turns)
    shown = [tokenizer.count_marks(node.ids) for node in rollout.nodes if node.role is Role.TOOL]
    assert len(set(shown)) == 1, "a result that spells every mark has as many as one that spells none"
    assert tokenizer.count_marks(rollout.nodes[0].ids) == tokenizer.count_marks(renderer.prompt(task_of("x").messages))
    (request,) = engine.requests.values()
    assert request.stops == (renderer.stop, *renderer.other_stops)
    (sample,) = sample_each(rollout, 1.0)
    assert sample.trained_tokens == sum(map(len, turns))
