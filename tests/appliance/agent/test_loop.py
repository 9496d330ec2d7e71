"""The agent keeps what was sampled, runs code only in sandboxes, and never lets one tool call hold up the others."""

from __future__ import annotations

import ast
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agent_tasks import task_of
from scripted_engine import ScriptedEngine
from tokenizers import Tokenizer

import appliance.agent
from appliance.agent.assignment import Assignment
from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent, calls_outside_sandbox
from appliance.learning.batches import sample_each
from appliance.records.rollouts import Purpose, Role, Rollout, RolloutEnd, ToolStatus
from appliance.rendering.markers import SEEDLING, MarkerRenderer
from appliance.rendering.renderer import Renderer
from appliance.seedling.tokenizer import train_tokenizer
from curriculum.contract.task import TaskMessage
from runtime.errors import BusyError, InfrastructureError, LimitError, RefusedError, SandboxError
from runtime.sandbox import CallResult, CallStatus, Priority, Session, SessionPool, Tier, Usage
from verifiers.contract.kinds import AnswerForm


class BrokenPool:
    """Sessions on a machine where sandboxes die."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def open(self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING) -> Session:
        raise self._error

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


def assignment(number: int, prompt: str = "gcd of 12 and 18?", **of_task: object) -> Assignment:
    return Assignment(
        id=f"r{number}",
        task=task_of(prompt, **of_task),
        cycle="c",
        step=0,
        sample=number,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        seed=number,
    )


def roll(renderer: Renderer, pool: SessionPool, *scripts: list[tuple[int, ...]], **budget: int) -> list[Rollout]:
    engine = ScriptedEngine(dict(enumerate(scripts)))
    agent = Agent(engine, pool, renderer, AgentBudget(**{"max_tokens": 400, **budget}), time.monotonic)
    rollouts = agent.roll([assignment(number) for number in range(len(scripts))])
    assert engine.unfinished == 0
    return rollouts


def test_a_rollout_ends_where_its_assignment_says_how_much_may_follow_its_prompt(
    renderer: Renderer, sessions: SessionPool
) -> None:
    asked = [replace(assignment(number), max_completion=most) for number, most in enumerate((3, None, 10_000))]
    engine = ScriptedEngine({number: [renderer.answer("\\boxed{6}" * 200)] for number in range(3)})
    cut, whole, no_further = Agent(engine, sessions, renderer, AgentBudget(max_tokens=60), time.monotonic).roll(asked)
    prompt = len(cut.nodes[0].ids)
    assert (cut.ended, cut.tokens) == (RolloutEnd.TOKENS, prompt + 3)
    assert whole.tokens == no_further.tokens == 60, "it is never more than the agent's"


def test_a_call_is_run_and_its_result_is_forced_back_unsampled(renderer: Renderer, sessions: SessionPool) -> None:
    call, final = renderer.call("import math\nprint(math.gcd(12,18))"), renderer.answer("\\boxed{6}")
    (rollout,) = roll(renderer, sessions, [call, final])
    assert [node.role for node in rollout.nodes] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert [node.sampled for node in rollout.nodes] == [False, True, False, True]
    assert [node.parent for node in rollout.nodes] == [None, 0, 1, 2]
    assert rollout.nodes[1].ids == call
    assert rollout.nodes[2].ids == renderer.result("6")
    assert all(len(node.logprobs) == len(node.ids) for node in rollout.nodes if node.sampled)
    assert (rollout.answer, rollout.answers, rollout.ended) == ("6", 1, RolloutEnd.ANSWERED)
    assert rollout.calls[0].status is ToolStatus.OK
    assert rollout.calls[0].sandbox


def test_a_failing_call_comes_back_as_its_error_and_counts_as_failed(renderer: Renderer, sessions: SessionPool) -> None:
    (rollout,) = roll(renderer, sessions, [renderer.call("print(gcd(1,2))"), renderer.answer("\\boxed{6}")])
    assert rollout.failed_calls == 1
    assert rollout.calls[0].status is ToolStatus.EXCEPTION
    assert "NameError" in renderer.text(rollout.nodes[2].ids)


def test_a_malformed_call_comes_back_as_a_result_and_never_reaches_a_sandbox(
    renderer: Renderer, sessions: SessionPool
) -> None:
    (rollout,) = roll(renderer, sessions, [renderer.call(" "), renderer.answer("\\boxed{6}")])
    assert rollout.calls[0].status is ToolStatus.PARSE_ERROR
    assert rollout.calls[0].sandbox == ""
    assert "empty call" in renderer.text(rollout.nodes[2].ids)
    assert calls_outside_sandbox([rollout]) == 0


def test_a_program_that_prints_markers_gets_ordinary_characters(renderer: Renderer, sessions: SessionPool) -> None:
    (rollout,) = roll(
        renderer, sessions, [renderer.call("print('<|' + 'end|><|' + 'user|>')"), renderer.answer("\\boxed{6}")]
    )
    shown = rollout.nodes[2].ids
    assert shown.count(renderer.stop) == 1
    assert "<|end|><|user|>" in renderer.text(shown)


def test_state_lasts_within_a_rollout_and_never_reaches_another(renderer: Renderer, sessions: SessionPool) -> None:
    mine = [renderer.call("x = 41"), renderer.call("print(x + 1)"), renderer.answer("\\boxed{42}")]
    other = [renderer.call("print(1)"), renderer.call("print(x)"), renderer.answer("\\boxed{0}")]
    first, second = roll(renderer, sessions, mine, other)
    assert first.calls[1].output.strip() == "42"
    assert second.calls[1].status is ToolStatus.EXCEPTION


def test_too_many_calls_end_a_rollout_and_so_does_a_result_beyond_its_budget(
    renderer: Renderer, sessions: SessionPool
) -> None:
    again = renderer.call("print(1)")
    (turns,) = roll(renderer, sessions, [again, again, again], max_calls=2)
    assert turns.ended is RolloutEnd.TURNS
    prompt = len(renderer.question(assignment(0).task.question))
    (tokens,) = roll(renderer, sessions, [again], max_tokens=prompt + len(again) + 2)
    assert tokens.ended is RolloutEnd.TOKENS


LOST = pytest.mark.parametrize(
    "error", [InfrastructureError("it died"), BusyError("too many wait"), LimitError("used up")], ids=repr
)


@LOST
def test_a_dead_sandbox_or_no_place_for_one_is_an_infrastructure_error_and_no_answer(
    renderer: Renderer, error: SandboxError
) -> None:
    (rollout,) = roll(renderer, BrokenPool(error), [renderer.call("print(1)")])
    assert rollout.ended is RolloutEnd.INFRA_ERROR
    assert rollout.answer is None


@LOST
def test_a_call_that_finds_no_place_is_an_infrastructure_error_too(renderer: Renderer, error: SandboxError) -> None:
    asked = Recorded()
    asked.answer.set_exception(error)
    (rollout,) = roll(renderer, asked, [renderer.call("print(1)")])
    assert rollout.ended is RolloutEnd.INFRA_ERROR
    assert asked.closed == 1


def test_without_isolation_nothing_runs(renderer: Renderer) -> None:
    with pytest.raises(RefusedError):
        roll(renderer, BrokenPool(RefusedError("no runsc")), [renderer.call("print(1)")])


class SlowSession:
    """A session whose answer comes when the test says so."""

    id = "slow"
    tier = Tier.SHARED
    usage = Usage()

    def __init__(self, future: Future[CallResult]) -> None:
        self._future = future

    def start(self, code: str, *, seconds: float | None = None) -> Future[CallResult]:
        return self._future

    def close(self) -> None: ...


class Recorded:
    """A pool with one session, of which everything that is asked is written down; `answer` is that of every call."""

    id = "recorded"
    tier = Tier.PROCESS
    usage = Usage(calls=1, seconds=0.25, moves=2, cpu_seconds=0.125)

    def __init__(self) -> None:
        self.answer: Future[CallResult] = Future()
        self.opened: list[tuple[Tier, str, Priority]] = []
        self.closed = 0
        self.started = 0

    def open(self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING) -> Session:
        self.opened.append((tier, caller, priority))
        return self  # type: ignore[return-value]

    def start(self, code: str, *, seconds: float | None = None) -> Future[CallResult]:
        self.started += 1
        return self.answer

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None:
        self.closed += 1


class OneSlowPool:
    """The first session is slow, the others come from a real pool; the slow one answers when `others` have ended."""

    def __init__(self, real: SessionPool) -> None:
        self._real = real
        self.slow: Future[CallResult] = Future()
        self._opened = 0

    def open(self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING) -> Session:
        self._opened += 1
        if self._opened == 1:
            return SlowSession(self.slow)  # type: ignore[return-value]
        return self._real.open(tier=tier, caller=caller, priority=priority)

    def stats(self) -> dict[str, float]:
        return {}

    def close(self) -> None: ...


def test_a_slow_call_does_not_hold_up_the_other_rollouts(renderer: Renderer, sessions: SessionPool) -> None:
    pool = OneSlowPool(sessions)
    script = [renderer.call("print(6)"), renderer.answer("\\boxed{6}")]
    engine = ScriptedEngine({number: list(script) for number in range(4)})
    ended: list[str] = []

    def on_finish(rollout: Rollout) -> None:
        ended.append(rollout.id)
        if len(ended) == 3:
            result = CallResult(status=CallStatus.OK, output="6", seconds=9.0, tier=Tier.SHARED, sandbox="s")
            pool.slow.set_result(result)

    agent = Agent(engine, pool, renderer, AgentBudget(max_tokens=400), time.monotonic)
    rollouts = agent.roll([assignment(number) for number in range(4)], on_finish)
    assert (set(ended[:3]), ended[3]) == ({"r1", "r2", "r3"}, "r0")
    assert [rollout.id for rollout in rollouts] == ["r0", "r1", "r2", "r3"]


@pytest.mark.parametrize(
    ("purpose", "priority"),
    [
        (Purpose.JOB, Priority.JOB),
        (Purpose.TRAIN, Priority.TRAINING),
        (Purpose.VALIDATION, Priority.TRAINING),
        (Purpose.EVALUATION, Priority.TRAINING),
    ],
)
def test_a_session_is_asked_for_by_name_with_the_tier_of_its_assignment_and_people_first(
    renderer: Renderer, purpose: Purpose, priority: Priority
) -> None:
    pool = Recorded()
    pool.answer.set_result(CallResult(status=CallStatus.OK, output="6", seconds=0.25, tier=Tier.PROCESS, sandbox="s"))
    agent = Agent(
        ScriptedEngine({0: [renderer.call("print(6)"), renderer.answer("\\boxed{6}")]}),
        pool,
        renderer,
        AgentBudget(max_tokens=400),
        time.monotonic,
    )
    (rollout,) = agent.roll([replace(assignment(7), purpose=purpose, tier=Tier.PROCESS)])
    assert pool.opened == [(Tier.PROCESS, "r7", priority)]
    assert rollout.usage == Recorded.usage
    assert pool.closed == 1


@pytest.mark.parametrize("status", [status for status in CallStatus if status is not CallStatus.OK])
def test_whatever_the_runtime_says_of_a_call_but_ok_counts_as_failed(renderer: Renderer, status: CallStatus) -> None:
    pool = Recorded()
    pool.answer.set_result(CallResult(status=status, seconds=0.25, tier=Tier.SANDBOX, sandbox="s"))
    (rollout,) = roll(renderer, pool, [renderer.call("print(6)"), renderer.answer("\\boxed{6}")])
    assert (rollout.failed_calls, rollout.calls[0].status) == (1, ToolStatus(status.value))


def test_a_call_beyond_those_that_a_session_has_did_not_run_and_needs_no_sandbox(renderer: Renderer) -> None:
    pool = Recorded()
    pool.answer.set_result(CallResult(status=CallStatus.CALLS, seconds=0.0, tier=Tier.SANDBOX, sandbox=""))
    (rollout,) = roll(renderer, pool, [renderer.call("print(6)"), renderer.answer("\\boxed{6}")])
    assert calls_outside_sandbox([rollout]) == 0


def test_a_stop_frees_the_session_of_a_call_under_way(renderer: Renderer) -> None:
    pool = Recorded()
    engine = ScriptedEngine({0: [renderer.call("while True: pass")], 1: [renderer.answer("\\boxed{1}")]})
    agent = Agent(engine, pool, renderer, AgentBudget(max_tokens=400), time.monotonic)
    rollouts = agent.roll([assignment(0), assignment(1)], lambda rollout: True)
    assert [rollout.id for rollout in rollouts] == ["r1"]
    assert (pool.started, pool.closed, engine.unfinished) == (1, 1, 0)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_frees_the_session_of_a_call_under_way(
    renderer: Renderer, interruption: type[BaseException]
) -> None:
    class Interrupted(ScriptedEngine):
        @property
        def runnable(self) -> int:
            raise interruption

    pool = Recorded()
    engine = Interrupted({0: [renderer.call("while True: pass")]})
    with pytest.raises(interruption):
        Agent(engine, pool, renderer, AgentBudget(max_tokens=400), time.monotonic).roll([assignment(0)])
    assert (pool.started, pool.closed, engine.unfinished) == (1, 1, 0)


def test_a_stop_drops_what_is_under_way_and_frees_the_engine(renderer: Renderer, sessions: SessionPool) -> None:
    engine = ScriptedEngine(
        {0: [renderer.answer("\\boxed{1}")], 1: [renderer.call("print(1)"), renderer.answer("\\boxed{1}")]}
    )
    agent = Agent(engine, sessions, renderer, AgentBudget(max_tokens=400), time.monotonic)
    rollouts = agent.roll([assignment(0), assignment(1)], lambda rollout: True)
    assert [rollout.id for rollout in rollouts] == ["r0"]
    assert engine.unfinished == 0


def test_the_agent_has_no_other_way_to_run_code() -> None:
    """Nothing in the package can start a process, evaluate text or open a file of the guest's choosing."""
    forbidden = {"subprocess", "os", "multiprocessing", "pty", "ctypes", "socket", "runpy", "importlib", "shutil"}
    for path in Path(appliance.agent.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {
            alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        imported |= {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not imported & forbidden, path
        assert not called & {"eval", "exec", "compile", "__import__", "open"}, path


def test_a_call_without_a_sandbox_on_it_is_counted(renderer: Renderer, sessions: SessionPool) -> None:
    (rollout,) = roll(renderer, sessions, [renderer.call("print(1)"), renderer.answer("\\boxed{1}")])
    nodes = list(rollout.nodes)
    assert nodes[2].call is not None
    for change, counted in (
        ({}, 1),
        ({"tool": "look"}, 1),
        ({"tool": "look", "status": ToolStatus.EXCEPTION}, 0),  # the world refused it
    ):
        call = nodes[2].call.model_copy(update={"sandbox": "", **change})
        without = (*nodes[:2], nodes[2].model_copy(update={"call": call}))
        assert calls_outside_sandbox([rollout.model_copy(update={"nodes": without})]) == counted


def rolled(
    renderer: Renderer, pool: SessionPool, script: list[tuple[int, ...]], of_task: dict[str, object], **budget: int
) -> Rollout:
    engine = ScriptedEngine({0: script})
    agent = Agent(engine, pool, renderer, AgentBudget(**{"max_tokens": 400, **budget}), time.monotonic)
    (rollout,) = agent.roll([assignment(0, **of_task)])
    return rollout


FORMS = (AnswerForm.BOXED, AnswerForm.BLOCK, AnswerForm.WHOLE)


def test_a_task_says_how_its_answer_is_marked(renderer: Renderer, sessions: SessionPool) -> None:
    text = "\\boxed{6} it is:\n```\nprint(6)\n```"
    answers = {form: rolled(renderer, sessions, [renderer.answer(text)], {"form": form}).answer for form in FORMS}
    assert answers == {AnswerForm.BOXED: "6", AnswerForm.BLOCK: "print(6)\n", AnswerForm.WHOLE: text}


def test_a_task_may_ask_for_less_than_the_agents_budget_and_never_gets_more(
    renderer: Renderer, sessions: SessionPool
) -> None:
    again = [renderer.call("print(1)")] * 3
    assert len(rolled(renderer, sessions, again, {"turns": 1}).calls) == 1
    assert len(rolled(renderer, sessions, again, {"turns": 9}, max_calls=2).calls) == 2
    length = len(renderer.question(assignment(0).task.question)) + len(again[0])
    short = rolled(renderer, sessions, again, {"tokens": length + 1})
    assert (short.ended, short.turns) == (RolloutEnd.TOKENS, 1)
    assert rolled(renderer, sessions, again, {"tokens": 4_000}, max_tokens=length + 1).ended is RolloutEnd.TOKENS


def test_a_task_without_tools_runs_nothing(renderer: Renderer, sessions: SessionPool) -> None:
    script = [renderer.call("print(6)"), renderer.answer("\\boxed{6}")]
    rollout = rolled(renderer, sessions, script, {"tools": ()})
    assert [call.status for call in rollout.calls] == [ToolStatus.PARSE_ERROR]
    assert "no tool can be called" in renderer.text(rollout.nodes[2].ids)


def test_the_files_of_a_task_lie_in_the_working_folder(renderer: Renderer, sessions: SessionPool) -> None:
    script = [renderer.call("print(open('a.txt').read())"), renderer.answer("\\boxed{6}")]
    rollout = rolled(renderer, sessions, script, {"files": {"a.txt": "41"}})
    assert rollout.calls[0].output == "41\n"


def test_all_messages_of_a_task_are_there_before_the_first_turn(renderer: Renderer, sessions: SessionPool) -> None:
    messages = (TaskMessage(role="system", text="Be short."), TaskMessage(text="1+1?"))
    rollout = rolled(renderer, sessions, [renderer.answer("\\boxed{2}")], {"messages": messages})
    assert rollout.nodes[0].ids == renderer.prompt(messages)


class Forgetful(MarkerRenderer):
    """A format that writes the conversation anew behind its second call."""

    def follow(self, before: tuple[int, ...], turn: tuple[int, ...], result: str, tools: object = ()) -> Any:
        return None if before.count(self.stop) % 4 == 3 else super().follow(before, turn, result)


def test_c13_where_the_format_writes_the_conversation_anew_a_new_sample_begins(sessions: SessionPool) -> None:
    tokenizer = train_tokenizer(["print(1+2) gcd of 12 and 18? \\boxed{6} NameError: name"] * 50)
    renderer = Forgetful(Tokenizer.from_str(tokenizer.to_str()), SEEDLING)
    see, final = renderer.call("x = globals().get('x', 40) + 1\nprint(x)"), renderer.answer("\\boxed{42}")
    left = [see, see, final]
    engine = ScriptedEngine(lambda request, known: left.pop(0))
    agent = Agent(engine, sessions, renderer, AgentBudget(max_tokens=400), time.monotonic)
    (rollout,) = agent.roll([assignment(0)])
    assert engine.unfinished == 0
    assert (rollout.answer, [call.output.strip() for call in rollout.calls]) == ("42", ["41", "42"])
    assert [node.parent for node in rollout.nodes] == [None, 0, 1, 2, None, 4]
    old, new = (tuple(token for node in part for token in node.ids) for part in rollout.samples)
    assert engine.requests[0].prompt == rollout.nodes[0].ids
    assert engine.requests[1].prompt == rollout.nodes[4].ids == new[: -len(final)]
    assert new[: len(old)] == old, "the markers write it as it was; nothing of it is sampled here"
    assert engine.requests[0].seed != engine.requests[1].seed
    first, second = sample_each(rollout, 1.0)
    assert (first.trained_tokens, second.trained_tokens) == (2 * len(see), len(final))
    assert {first.rollout, second.rollout} == {rollout.id}


def test_a_poll_reports_how_many_rollouts_have_ended(renderer: Renderer, sessions: SessionPool) -> None:
    engine = ScriptedEngine({number: [renderer.answer("\\boxed{6}")] for number in range(3)})
    ticks = iter(range(10_000))
    agent = Agent(engine, sessions, renderer, AgentBudget(max_tokens=400), lambda: float(next(ticks)))
    seen: list[tuple[int, int]] = []
    agent.on_poll = lambda ended, asked: seen.append((ended, asked))
    agent.roll([assignment(number) for number in range(3)])
    assert seen
    assert {asked for _, asked in seen} == {3}
    assert [ended for ended, _ in seen] == sorted(ended for ended, _ in seen)
