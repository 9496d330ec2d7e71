"""Tools of a task's world in rollouts: each rollout has its own world, prepared once; nothing of another's is seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from agent_tasks import task_of
from chat_models import files_of
from scripted_engine import ScriptedEngine
from toy_worlds import BROKEN, TOYS, ToyEnvironment

from appliance.agent.assignment import Assignment
from appliance.agent.branching import Branching, Where
from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent, calls_outside_sandbox
from appliance.agent.worlds import TaskWorlds
from appliance.inference.engine import GenerationRequest
from appliance.records.rollouts import Purpose, Rollout, RolloutEnd, ToolStatus
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import Renderer, RenderingError, ToolRequest
from appliance.rendering.tools import tools_of
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Task
from curriculum.environments import ENVIRONMENTS
from runtime.errors import InfrastructureError
from runtime.sandbox import Limits, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.kinds import AnswerForm

BUDGET = AgentBudget(max_tokens=20_000, max_calls=6, max_result_chars=200, worlds=8)
LEFT = 10


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, environment in TOYS.items():
        monkeypatch.setitem(ENVIRONMENTS, name, environment)


@pytest.fixture(scope="module")
def chat() -> Renderer:
    return load_renderer(files_of("qwen3"))


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, sandboxes=48)) as pool:
        yield pool


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    """Its sessions have calls for two rollouts and a bit."""
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, limits=Limits(calls=22))) as pool:
        yield pool


def world_task(name: str = "counter", **fields: Any) -> Task:
    world = {"start": 5, "sign": "way out"} | fields.pop("world", {})
    given = {"tools": ("python", "add", "look"), "environment": name, "world": world, "form": AnswerForm.WORLD}
    return task_of("How much is it?", **given | fields)


def assigned(number: int, task: Task, **changes: Any) -> Assignment:
    plain = Assignment(
        id=f"job-1.{number}",
        task=task,
        cycle="job-1",
        step=0,
        sample=number,
        purpose=Purpose.JOB,
        temperature=1.0,
        seed=number,
    )
    return replace(plain, **changes)


class Script:
    """Says the turns of each rollout, known by its seed; a branch has those of its own."""

    def __init__(
        self, renderer: Renderer, task: Task, turns: Callable[[int, int], Sequence[ToolRequest | str]]
    ) -> None:
        self._renderer, self._tools, self._turns = renderer, tools_of(task), turns
        self._said: dict[int, int] = {}

    def __call__(self, request: GenerationRequest, known: tuple[int, ...]) -> tuple[int, ...]:
        place = self._said[request.id] = self._said.get(request.id, -1) + 1
        turn = self._turns(request.id, place)
        return (
            self._renderer.request(turn, self._tools) if isinstance(turn, ToolRequest) else self._renderer.answer(turn)
        )


def add(number: int, note: str = "") -> ToolRequest:
    return ToolRequest(tool="add", arguments={"number": number, "note": note})


LOOK = ToolRequest(tool="look")


def roll(
    renderer: Renderer,
    pool: SessionPool,
    task: Task,
    turns: Callable[[int, int], ToolRequest | str],
    *,
    count: int = 1,
    budget: AgentBudget = BUDGET,
    where: Where | None = None,
    tasks: Sequence[Task] = (),
) -> list[Rollout]:
    engine = ScriptedEngine(Script(renderer, task, turns))
    agent = Agent(engine, pool, renderer, budget, time.monotonic)
    assignments = [assigned(number, one) for number, one in enumerate(tasks or [task] * count)]
    rollouts = agent.roll(assignments, branching=Branching(2, 8, where) if where else None)
    assert engine.unfinished == 0
    assert calls_outside_sandbox(rollouts) == 0
    with pool.open() as later:
        later.run("1")
        assert pool.stats()["sessions"] == 1
    return rollouts


def listed(*turns: ToolRequest | str) -> Callable[[int, int], ToolRequest | str]:
    return lambda _request, place: turns[place]


def test_code_and_world_are_both_called_and_the_world_submits_the_answer(chat: Renderer, pool: SessionPool) -> None:
    python = ToolRequest("print(6 * 7)")
    [rollout] = roll(chat, pool, world_task(), listed(add(2), python, LOOK, "I am done."))
    assert (rollout.ended, rollout.answer, rollout.answers) == (RolloutEnd.ANSWERED, "7", 1)
    assert [(call.tool, call.status, call.output) for call in rollout.calls] == [
        ("add", ToolStatus.OK, "7"),
        ("python", ToolStatus.OK, "42\n"),
        ("look", ToolStatus.OK, "7  way out"),
    ]
    assert [call.asked for call in rollout.calls] == ['add {"number": 2, "note": ""}', "print(6 * 7)", "look {}"]
    assert rollout.calls[0].sandbox != rollout.calls[1].sandbox
    assert rollout.usage.calls == 4
    assert "7  way out" in chat.text(rollout.nodes[-2].ids)


def test_a_world_that_nobody_called_submits_what_it_is(chat: Renderer, pool: SessionPool) -> None:
    [rollout] = roll(chat, pool, world_task(), listed("Nothing to do."))
    assert (rollout.ended, rollout.answer) == (RolloutEnd.ANSWERED, "5")


@pytest.mark.parametrize("count", [8, pytest.param(32, marks=pytest.mark.slow)])
def test_rollouts_at_once_see_nothing_of_each_other(chat: Renderer, pool: SessionPool, count: int) -> None:
    def turns(request: int, place: int) -> ToolRequest | str:
        return (add(request, f"note {request}"), LOOK, "done")[place]

    begun = pool.stats()["sandboxes_started"]
    rollouts = roll(chat, pool, world_task(), turns, count=count, budget=BUDGET.model_copy(update={"worlds": count}))
    for number, rollout in enumerate(rollouts):
        assert rollout.answer == str(5 + number)
        assert rollout.calls[1].output == f"{5 + number} note {number} way out"
    assert pool.stats()["sandboxes_started"] - begun <= count + 2


def test_tasks_have_their_own_worlds_and_few_are_prepared_at_once(chat: Renderer, pool: SessionPool) -> None:
    tasks = [world_task(world={"start": start}) for start in range(7)]
    rollouts = roll(chat, pool, tasks[0], listed(add(1), "done"), tasks=[task for task in tasks for _ in range(2)])
    assert [rollout.answer for rollout in rollouts] == [str(start + 1) for start in range(7) for _ in range(2)]


def test_a_failed_call_of_the_world_is_gone_back_behind_with_code_and_world_as_they_were(
    chat: Renderer, pool: SessionPool
) -> None:
    see = ToolRequest("print(x)")

    def turns(request: int, place: int) -> ToolRequest | str:
        if request == 0:
            return (add(1), ToolRequest("x = 41\nprint(x)"), add(-1), add(100), "done")[place]
        return (see, add(request), "done")[place]

    attempt, one, other = roll(chat, pool, world_task(), turns, where="failed_call")
    assert [call.status for call in attempt.calls][2] is ToolStatus.EXCEPTION
    assert "error: only what is not negative" in chat.text(attempt.nodes[6].ids)
    assert (attempt.answer, one.answer, other.answer) == ("106", "7", "8")
    assert one.calls[2].output == other.calls[2].output == "41\n"


def test_a_failed_call_of_code_takes_the_world_along_as_it_was(chat: Renderer, pool: SessionPool) -> None:
    def turns(request: int, place: int) -> ToolRequest | str:
        if request == 0:
            return (add(1), ToolRequest("x = 1"), ToolRequest("x = 2; 1/0"), add(100), "done")[place]
        return (ToolRequest("print(x)"), add(request), "done")[place]

    attempt, one, other = roll(chat, pool, world_task(), turns, where="failed_call")
    assert (attempt.answer, one.answer, other.answer) == ("106", "7", "8")
    assert one.calls[2].output == other.calls[2].output == "1\n"


def test_a_failure_is_mended_in_other_ways_from_the_world_that_it_left(chat: Renderer, pool: SessionPool) -> None:
    def turns(request: int, place: int) -> ToolRequest | str:
        return (add(1), add(-1), add(10), "done")[place] if request == 0 else (add(request), "done")[place]

    attempt, one, other = roll(chat, pool, world_task(), turns, where="repair")
    assert (attempt.answer, one.answer, other.answer) == ("16", "7", "8")


def test_a_branch_in_the_middle_of_a_turn_has_the_world_of_that_moment(chat: Renderer, pool: SessionPool) -> None:
    task = world_task()
    calls = [chat.request(add(number), tools_of(task)) for number in (1, 10, 100)]
    rare = next(token for token in calls[1] if token not in calls[0])
    engine = ScriptedEngine(lambda request, known: next(said[request.id]))
    said = {0: iter([*calls, chat.answer("done")]), 1: iter([calls[1][calls[1].index(rare) :], chat.answer("done")])}
    engine.logprobs[rare] = -9.0
    agent = Agent(engine, pool, chat, BUDGET, time.monotonic)
    attempt, branch = agent.roll([assigned(0, task)], branching=Branching(1, 1, "highest_entropy"))
    assert (attempt.answer, branch.answer) == ("116", "16")
    assert branch.branch_token > 0


@pytest.mark.parametrize("name", ["hangs", "dies", "raises", "does not begin"])
def test_a_world_that_breaks_costs_the_rollout_and_is_no_failure_of_the_model(
    chat: Renderer, pool: SessionPool, name: str
) -> None:
    assert name in BROKEN
    task = world_task(f"one that {name}")
    fine = world_task()
    rollouts = roll(chat, pool, fine, listed(LOOK, "done"), tasks=[task, fine, task])
    assert [rollout.ended for rollout in rollouts] == [
        RolloutEnd.INFRA_ERROR,
        RolloutEnd.ANSWERED,
        RolloutEnd.INFRA_ERROR,
    ]


def test_a_world_that_only_reads_is_shared_and_one_that_lies_about_it_is_found(
    chat: Renderer, pool: SessionPool
) -> None:
    begun = pool.stats()["sandboxes_started"]
    task = world_task("reader", form=AnswerForm.BOXED)
    rollouts = roll(chat, pool, task, listed(LOOK, add(1), "\\boxed{6}"), count=6)
    assert [rollout.answer for rollout in rollouts] == ["6"] * 6
    assert len({call.sandbox for rollout in rollouts for call in rollout.calls}) == 1
    assert pool.stats()["sandboxes_started"] - begun <= 2
    assert [rollout.usage.calls for rollout in rollouts] == [2] * 6
    for name in ("liar", "writer"):
        task = world_task(name, form=AnswerForm.BOXED)
        lies = roll(chat, pool, task, listed(add(1, "secret"), add(1, "seen"), "\\boxed{6}"), count=4)
        assert [rollout.ended for rollout in lies] == [RolloutEnd.INFRA_ERROR] * 4


def test_rollouts_that_share_a_world_have_what_they_changed_for_themselves(chat: Renderer, pool: SessionPool) -> None:
    def turns(request: int, place: int) -> ToolRequest | str:
        return (add(request, f"note {request}"), add(1), LOOK, "done")[place]

    rollouts = roll(chat, pool, world_task("tally"), turns, count=8)
    for number, rollout in enumerate(rollouts):
        assert (rollout.answer, rollout.calls[2].output) == (str(6 + number), f"{6 + number} note {number}")
    assert len({call.sandbox for rollout in rollouts for call in rollout.calls}) == 1


@pytest.mark.parametrize("where", ["failed_call", "repair"])
@pytest.mark.parametrize("pools", ["pool", "narrow"])
def test_a_branch_of_a_shared_world_goes_on_from_what_its_attempt_had_changed(
    chat: Renderer, where: Where, pools: str, request: pytest.FixtureRequest
) -> None:
    """In `narrow` there are no calls left for the branches in the session that the attempt had."""

    def turns(request: int, place: int) -> ToolRequest | str:
        if request == 0:
            return (add(1), add(-100), add(10), LOOK, LOOK, "done")[place]
        return (add(request), LOOK, "done")[place]

    attempt, one, other = roll(chat, request.getfixturevalue(pools), world_task("tally"), turns, where=where)
    assert (attempt.answer, one.answer, other.answer) == ("16", "7", "8")
    assert len({call.sandbox for rollout in (attempt, one, other) for call in rollout.calls}) <= 2


def test_more_rollouts_share_a_world_than_one_session_has_calls_for(chat: Renderer, narrow: SessionPool) -> None:
    task = world_task("reader", form=AnswerForm.BOXED)
    turns = listed(LOOK, add(1), LOOK, LOOK, LOOK, "\\boxed{6}")
    rollouts = roll(chat, narrow, task, turns, count=12)
    assert [rollout.answer for rollout in rollouts] == ["6"] * 12
    worlds = [{call.sandbox for call in rollout.calls} for rollout in rollouts]
    assert {len(used) for used in worlds} == {1}
    assert len(set.union(*worlds)) == 6


def test_a_branch_shares_another_world_where_its_own_has_no_calls_left(chat: Renderer, narrow: SessionPool) -> None:
    task = world_task("reader", form=AnswerForm.BOXED)

    def turns(request: int, place: int) -> ToolRequest | str:
        begun = (LOOK, ToolRequest("1/0")) if request == 0 else ()
        return (*begun, LOOK, LOOK, LOOK, "\\boxed{6}")[place]

    rollouts = roll(chat, narrow, task, turns, where="repair")
    assert [(rollout.answer, len(rollout.calls)) for rollout in rollouts] == [("6", 5)] * 3
    assert len({call.sandbox for rollout in rollouts for call in rollout.calls if call.tool == "look"}) == 2


def test_a_branch_of_a_branch_falls_with_the_world_that_its_first_attempt_read(narrow: SessionPool) -> None:
    """What it goes on from was read there, though it shares another one."""
    arrived: SimpleQueue[Callable[[], None]] = SimpleQueue()
    worlds, task = TaskWorlds(narrow, arrived.put), world_task("tally")
    first, beside = (worlds.lease(assigned(number, task), 6) for number in range(2))
    while first.world is None or beside.world is None:
        arrived.get(timeout=120)()
    [branch] = worlds.fork(first, 1, undo=False)
    while branch.world is None:
        arrived.get(timeout=120)()
    [later] = worlds.fork(branch, 1, undo=False)
    apart, other = Future[str](), worlds.lease(assigned(2, task), 6)
    apart.set_result("another digest than it had")
    with pytest.raises(InfrastructureError, match="read-only"):
        worlds.verify(beside, apart)
    assert all(lease.failed is not None for lease in (first, beside, branch, later))
    assert other.failed is None, "it began anew"
    for lease in (first, beside, branch, later, other):
        lease.close()
    worlds.free(task.id, wanted=False)


def test_a_shared_world_that_broke_is_given_to_nobody_else(
    chat: Renderer, pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import os\ndef call(tool, arguments):\n    return 'fine' if tool == 'look' else os._exit(0)"
    monkeypatch.setitem(ENVIRONMENTS, "brittle", ToyEnvironment("brittle", program, shareable=True))
    task = world_task("brittle", form=AnswerForm.BOXED)
    one_by_one = BUDGET.model_copy(update={"worlds": 1})

    def turns(request: int, place: int) -> ToolRequest | str:
        return (LOOK if request else add(1), "\\boxed{6}")[place]

    rollouts = roll(chat, pool, task, turns, count=3, budget=one_by_one)
    assert [rollout.answer for rollout in rollouts] == [None, "6", "6"]
    assert rollouts[0].ended is RolloutEnd.INFRA_ERROR


@dataclass(frozen=True)
class WrongSetup(ToyEnvironment):
    def files(self, setup: Mapping[str, Any]) -> Mapping[str, bytes]:
        raise CurriculumError("the setup has no rooms")


def test_a_world_that_cannot_be_made_costs_its_own_rollouts_alone(
    chat: Renderer, pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENTS, "wrong", WrongSetup("wrong", ""))
    wrong, fine = world_task("wrong"), world_task()
    rollouts = roll(chat, pool, fine, listed(LOOK, "done"), tasks=[wrong, fine, wrong])
    lost = RolloutEnd.INFRA_ERROR
    assert [rollout.ended for rollout in rollouts] == [lost, RolloutEnd.ANSWERED, lost]
    engine = ScriptedEngine(Script(chat, wrong, listed(LOOK)))
    agent = Agent(engine, pool, chat, BUDGET, time.monotonic)
    assert [rollout.ended for rollout in agent.roll([assigned(0, wrong)])] == [lost]
    assert agent.last_failure == "the setup has no rooms"


def test_freeing_a_world_does_not_raise_for_the_next_one_that_cannot_be_made(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENTS, "wrong", WrongSetup("wrong", ""))
    monkeypatch.setattr("appliance.agent.worlds.PREPARED", 1)
    worlds = TaskWorlds(pool, lambda step: None)
    fine, wrong = world_task(), world_task("wrong")
    worlds.lease(assigned(0, fine), 6)
    waits = worlds.lease(assigned(1, wrong), 6)
    assert waits.failed is None
    worlds.free(fine.id, wanted=False)
    assert isinstance(waits.failed, InfrastructureError)


@pytest.mark.parametrize("closed", ["when it has come", "before it comes"])
def test_a_fork_for_a_rollout_that_was_dropped_is_closed_though_no_loop_takes_it(
    pool: SessionPool, closed: str
) -> None:
    arrived: SimpleQueue[Callable[[], None]] = SimpleQueue()
    worlds = TaskWorlds(pool, arrived.put)
    task = world_task()
    leases = [worlds.lease(assigned(number, task), 6) for number in range(2)]
    arrived.get(timeout=120)()  # it has begun
    if closed == "when it has come":
        fork = arrived.get(timeout=120)
    for lease in leases:
        lease.close()
    if closed == "before it comes":
        fork = arrived.get(timeout=120)
    worlds.free(task.id, wanted=False)
    with pool.open() as later:
        later.run("1")
        assert pool.stats()["sessions"] == 1
    fork()
    assert [lease.world for lease in leases if lease.failed is None] == []


HOSTILE = {
    "wrong type": ('{"name": "add", "arguments": {"number": "x"}}', "number"),
    "no such tool": ('{"name": "drop", "arguments": {}}', "no tool"),
    "too many": ('{"name": "add", "arguments": {"number": 1, "at": 2}}', "no argument"),
    "nan": ('{"name": "add", "arguments": {"number": NaN}}', ""),
    "surrogate": ('{"name": "add", "arguments": {"number": 1, "note": "\\ud800"}}', "Unicode"),
    "deep": (f'{{"name": "add", "arguments": {{"number": {"[" * 50}{"]" * 50}}}}}', "deep"),
    "very deep": (f'{{"name": "add", "arguments": {{"number": {"[" * 900}{"]" * 900}}}}}', ""),
    "huge": (f'{{"name": "add", "arguments": {{"number": {"9" * 900}}}}}', ""),
    "surrogate in code": ('{"name": "python", "arguments": {"code": "\\ud800"}}', ""),
}


def test_hostile_calls_are_malformed_and_the_rollout_goes_on(chat: Renderer, pool: SessionPool) -> None:
    task = world_task()

    def script(request: GenerationRequest, known: tuple[int, ...]) -> tuple[int, ...]:
        if said[request.id] < 2:
            said[request.id] += 1
            text = list(HOSTILE.values())[request.id][0]
            return (*mark("<tool_call>"), *chat.plain(f"\n{text}\n"), *mark("</tool_call>"), chat.stop)
        return chat.answer("done")

    marks = {one: token for token, one in chat._tokenizer.marks.items()}  # type: ignore[attr-defined]
    mark = lambda text: (marks[text],)  # noqa: E731
    said = dict.fromkeys(range(len(HOSTILE)), 0)
    agent = Agent(ScriptedEngine(script), pool, chat, BUDGET, time.monotonic)
    rollouts = agent.roll([assigned(number, task) for number in range(len(HOSTILE))])
    for name, rollout in zip(HOSTILE, rollouts, strict=True):
        assert [call.status for call in rollout.calls] == [ToolStatus.PARSE_ERROR] * 2, name
        assert HOSTILE[name][1] in rollout.calls[0].error, (name, rollout.calls[0].error)
        assert rollout.answer == "5", name
        assert Rollout.model_validate_json(rollout.model_dump_json()) == rollout


def test_a_format_that_calls_only_python_refuses_a_task_with_other_tools(
    renderer: Renderer, sessions: SessionPool
) -> None:
    agent = Agent(ScriptedEngine({}), sessions, renderer, BUDGET, time.monotonic)
    with pytest.raises(RenderingError, match="no way to call add, look"):
        agent.roll([assigned(0, world_task())])


def test_a_task_whose_environment_nobody_knows_or_has_no_such_tool_is_refused(
    chat: Renderer, pool: SessionPool
) -> None:
    agent = Agent(ScriptedEngine({0: [chat.answer("x")]}), pool, chat, BUDGET, time.monotonic)
    with pytest.raises(RenderingError, match="unknown tool 'add' of environment 'nowhere'"):
        agent.roll([assigned(0, world_task("nowhere"))])
    agent = Agent(ScriptedEngine({0: [chat.answer("x")]}), pool, chat, BUDGET, time.monotonic)
    with pytest.raises(CurriculumError, match="unknown environment"):
        agent.roll([assigned(0, world_task("nowhere", tools=()))])
