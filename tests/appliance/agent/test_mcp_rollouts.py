"""Rollouts over an owner's MCP server: the model is told of its tools, calls them, and is judged by a check of ours.

They need the SDK for guests: `assay curriculum adapter install mcp`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from chat_models import files_of
from owned_packages import SERVERS, sessions_with
from scripted_engine import ScriptedEngine

from appliance.agent.assignment import Assignment
from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent
from appliance.inference.engine import GenerationRequest
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import Renderer, ToolRequest
from appliance.rendering.tools import tools_of
from appliance.worker.setup.cycle_setup import left_out
from curriculum.adapters import ADAPTERS
from curriculum.certification.certificate import made_by
from curriculum.contract.task import Split, Task, asked
from curriculum.foreign.given import GivenTask, rows_given
from curriculum.own.rows import OwnRow, with_levels
from curriculum.own.taskset import OwnContent, OwnTaskset
from curriculum.registry import BUILT_IN
from runtime.sandbox import Limits, SessionPool
from verifiers.contract.verdict import Outcome
from verifiers.registry import decide

ADAPTER = ADAPTERS["mcp"]
BUDGET = AgentBudget(max_tokens=40_000, max_calls=6, max_result_chars=500, worlds=8)
TASKS = [json.loads(line) for line in (SERVERS / "ledger_server/tasks.jsonl").read_text().splitlines()]
Turns = Callable[[int, int], ToolRequest | str]
pytestmark = pytest.mark.skipif(bool(ADAPTER.missing()), reason=ADAPTER.missing())


@pytest.fixture(scope="module")
def chat() -> Renderer:
    return load_renderer(files_of("qwen3"))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    packages = [SERVERS / "ledger_server", SERVERS / "hostile_server"]
    with sessions_with(ADAPTER, packages, guest_roots, tmp_path_factory, Limits(call_seconds=2)) as sessions:
        yield sessions


def task_of(row: OwnRow) -> Task:
    return Task(
        taskset="own/x",
        level=0,
        seed=1,
        split=Split.JOB,
        messages=asked(row.question),
        spec=row.spec,
        form=row.form,
        environment=row.environment,
        world=dict(row.world),
        tools=row.tools,
        turns=row.turns,
    )


def row_of(pool: SessionPool, package: str, task: dict[str, object]) -> OwnRow:
    return rows_given(pool, package, [GivenTask("t:1", task)])[0][0]


def roll(chat: Renderer, pool: SessionPool, task: Task, count: int, turns: Turns) -> list[Rollout]:
    tools, said = tools_of(task), dict[int, int]()

    def script(request: GenerationRequest, _known: tuple[int, ...]) -> tuple[int, ...]:
        place = said[request.id] = said.get(request.id, -1) + 1
        turn = turns(request.id, place)
        return chat.request(turn, tools) if isinstance(turn, ToolRequest) else chat.answer(turn)

    agent = Agent(ScriptedEngine(script), pool, chat, BUDGET, time.monotonic)
    one = Assignment(
        id="job-1.0", task=task, cycle="job-1", step=0, sample=0, purpose=Purpose.JOB, temperature=1.0, seed=0
    )
    return agent.roll([replace(one, id=f"job-1.{at}", sample=at, seed=at) for at in range(count)])


def test_rollouts_at_once_each_have_a_server_of_their_own_and_a_check_of_ours_decides(
    chat: Renderer, pool: SessionPool
) -> None:
    task = task_of(row_of(pool, "ledger_server", TASKS[12]))
    whole, moved = int(TASKS[12]["answer"]), 4

    def turns(request: int, place: int) -> ToolRequest | str:
        move = {"source": "rent", "target": "food", "coins": request}
        call = (
            ToolRequest(tool="move_coins", arguments=move),
            ToolRequest(tool="balance", arguments={"account": "food"}),
        )
        return call[place] if place < len(call) else f"\\boxed{{{whole if request % 2 else 1}}}"

    rollouts = roll(chat, pool, task, moved, turns)
    first = chat.text(rollouts[0].nodes[0].ids)
    assert "Moves coins from one account to another." in first
    assert "list_served_tools" not in first
    held = [int(rollout.calls[1].output) for rollout in rollouts]
    assert held == [held[0] + request for request in range(moved)]
    outcomes = [decide(task.spec, rollout.answer or "").outcome for rollout in rollouts]
    assert outcomes == [Outcome.FAIL, Outcome.PASS] * (moved // 2)


@pytest.mark.parametrize("what", ["end", "notify", "other id"])
def test_a_rollout_whose_server_breaks_is_the_infrastructures_failure(
    chat: Renderer, pool: SessionPool, what: str
) -> None:
    row = row_of(pool, "hostile_server", {"question": f"A fact, {what}?", "answer": "7", "arguments": [what]})
    fact = ToolRequest(tool="fact", arguments={"about": "x"})
    rollouts = roll(chat, pool, task_of(row), 2, lambda request, place: fact if request == 0 else "\\boxed{7}")
    assert [rollout.ended for rollout in rollouts] == [RolloutEnd.INFRA_ERROR, RolloutEnd.ANSWERED]
    assert rollouts[0].answer is None


def test_a_taskset_whose_tools_spell_a_mark_of_the_models_format_is_left_out(pool: SessionPool, tmp_path: Path) -> None:
    for name, data in files_of("qwen3").items():
        (tmp_path / name).write_bytes(data)

    def reasons(rows: list[OwnRow]) -> dict[str, str]:
        content = OwnContent(name="ledger", added="", rows=with_levels(rows))
        taskset = OwnTaskset(content.model_copy(update={"digest": content.rows_digest()}))
        catalog = BUILT_IN.with_domain("own", (taskset,))
        return left_out(("digits", "own/ledger"), {"own/ledger": made_by(catalog, "own/ledger")}, tmp_path, catalog)

    rows, _ = rows_given(pool, "ledger_server", [GivenTask("t", task) for task in TASKS[:5]])
    assert reasons(rows) == {}
    tools = [{**tool, "description": "Says <tool_call> how much."} for tool in rows[0].world["tools"]]
    marked = [row.model_copy(update={"world": {**row.world, "tools": tools}}) for row in rows]
    assert "spells '<tool_call>', a mark of this model's format" in reasons(marked)["own/ledger"]
