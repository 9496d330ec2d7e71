"""Attempts are sealed from one another; one that fails on its way goes on from before, too, with what it had."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from agent_tasks import task_of
from scripted_engine import ScriptedEngine

from appliance.agent.assignment import Assignment
from appliance.agent.branching import Branching, Where, branch_seed
from appliance.agent.budget import AgentBudget
from appliance.agent.loop import Agent
from appliance.learning.batches import sample_each
from appliance.records.rollouts import Purpose, Role, Rollout, RolloutEnd, ToolStatus
from appliance.rendering.renderer import Renderer
from runtime.errors import LimitError
from runtime.sandbox import Session, SessionPool, Tier

BUDGET = AgentBudget(max_tokens=600, max_calls=4, max_result_chars=60)
BEGIN = {
    Tier.SHARED: "x = 41\nprint(x)",
    Tier.PROCESS: "import enum\nx = 41\nprint(x)",
    Tier.SANDBOX: "import os\nx = 41\nopen('kept', 'w').write('41')\nprint(x)",
}
FAIL = "x = 0\nprint(1 / x)"


def asked(number: int, **changes: object) -> Assignment:
    plain = Assignment(
        id=f"job-1.{number}",
        task=task_of("gcd of 12 and 18?"),
        cycle="job-1",
        step=0,
        sample=number,
        purpose=Purpose.JOB,
        temperature=1.0,
        seed=number,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def sessions_left(pool: SessionPool) -> float:
    """What was closed before is gone by the time that a later call is answered."""
    with pool.open() as later:
        later.run("1")
        return pool.stats()["sessions"] - 1


def roll(
    engine: ScriptedEngine,
    pool: SessionPool,
    renderer: Renderer,
    *assignments: Assignment,
    each: int,
    in_all: int = 16,
    where: Where = "failed_call",
    first: int | None = None,
) -> dict[str, Rollout]:
    agent = Agent(engine, pool, renderer, BUDGET, time.monotonic)
    rollouts = agent.roll(assignments, branching=Branching(each, in_all, where, first))
    assert engine.unfinished == 0
    assert sessions_left(pool) == 0
    return {rollout.id: rollout for rollout in rollouts}


@pytest.mark.parametrize("tier", Tier)
def test_a_failure_on_the_way_is_gone_back_behind_in_other_ways_while_the_attempt_goes_on(
    renderer: Renderer, sessions: SessionPool, tier: Tier
) -> None:
    see = renderer.call("print(x)")
    engine = ScriptedEngine(
        {
            0: [renderer.call(BEGIN[tier]), renderer.call(FAIL), see, renderer.answer("\\boxed{0}")],
            1: [see, renderer.answer("\\boxed{41}")],
            2: [renderer.call("x += 1\nprint(x)"), renderer.answer("\\boxed{42}")],
        }
    )
    found = roll(engine, sessions, renderer, asked(0), each=2)
    attempt, one, other = found["job-1.0"], found["job-1.0+1"], found["job-1.0+2"]
    assert [call.status for call in attempt.calls] == [ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.OK]
    assert (attempt.calls[2].output, one.calls[1].output, other.calls[1].output) == ("0\n", "41\n", "42\n")
    for branch in (one, other):
        assert (branch.branch_of, branch.branch_at) == ("job-1.0", 3)
        assert branch.nodes[:3] == attempt.nodes[:3]
        assert [node.parent for node in branch.nodes] == [None, *range(len(branch.nodes) - 1)]
        assert branch.ended is RolloutEnd.ANSWERED
    assert (attempt.branch_of, attempt.branch_at) == (None, 0)
    assert len({one.sample, other.sample, attempt.sample}) == 3
    assert {engine.requests[number].seed for number in (1, 2)} == {branch_seed(0, 1), branch_seed(0, 2)}


def test_what_a_branch_has_from_its_attempt_is_neither_counted_nor_trained_on_again(
    renderer: Renderer, sessions: SessionPool
) -> None:
    final = renderer.answer("\\boxed{41}")
    engine = ScriptedEngine({0: [renderer.call("print(1)"), renderer.call("1 / 0"), final], 1: [final]})
    branch = roll(engine, sessions, renderer, asked(0), each=1)["job-1.0+1"]
    assert branch.sampled_tokens == len(final)
    assert engine.requests[1].prompt == tuple(token for node in branch.nodes[:3] for token in node.ids)
    assert sample_each(branch, 1.0)[0].trained_tokens == len(final)


@pytest.mark.parametrize(
    ("first", "changes", "each", "in_all"),
    [
        ("print(1)", {}, 0, 16),
        ("print(1)", {}, 2, 0),
        ("print(1)", {"temperature": 0.0}, 2, 16),
        ("print(y)", {}, 2, 16),
    ],
    ids=["none asked for", "all spent", "greedy", "nothing worked yet"],
)
def test_no_branch_is_made_where_none_may_be_or_it_would_keep_nothing(
    renderer: Renderer, sessions: SessionPool, first: str, changes: dict[str, float], each: int, in_all: int
) -> None:
    engine = ScriptedEngine({0: [renderer.call(first), renderer.call("1 / 0"), renderer.answer("\\boxed{1}")]})
    assert list(roll(engine, sessions, renderer, asked(0, **changes), each=each, in_all=in_all)) == ["job-1.0"]


def test_branches_are_bounded_for_each_attempt_and_in_all_and_do_not_branch_again(
    renderer: Renderer, sessions: SessionPool
) -> None:
    fails = [renderer.call("1 / 0")] * 2
    script = [renderer.call("print(1)"), *fails, renderer.answer("\\boxed{1}")]
    branch = [*fails, renderer.answer("\\boxed{1}")]
    engine = ScriptedEngine({0: script, 1: list(script), 2: branch, 3: list(branch), 4: list(branch)})
    found = roll(engine, sessions, renderer, asked(0), asked(1), each=2, in_all=3)
    assert sorted(rollout.branch_of or "" for rollout in found.values()) in (
        ["", "", "job-1.0", "job-1.0", "job-1.1"],
        ["", "", "job-1.0", "job-1.1", "job-1.1"],
    )


def test_a_call_that_could_not_be_read_is_gone_back_behind_as_well(renderer: Renderer, sessions: SessionPool) -> None:
    engine = ScriptedEngine(
        {
            0: [renderer.call("x = 41"), renderer.call(" "), renderer.answer("\\boxed{1}")],
            1: [renderer.call("print(x)"), renderer.answer("\\boxed{41}")],
        }
    )
    branch = roll(engine, sessions, renderer, asked(0), each=1)["job-1.0+1"]
    assert branch.calls[1].output == "41\n"


def test_files_are_there_by_name_in_every_attempt_and_changes_stay_in_theirs(
    renderer: Renderer, sessions: SessionPool
) -> None:
    files = {"numbers.txt": b"12 18"}
    change = renderer.call("open('numbers.txt', 'a').write(' 24')\nprint(open('numbers.txt').read())")
    read = renderer.call("print(open('numbers.txt').read())")
    engine = ScriptedEngine(
        {
            0: [change, renderer.call("open('numbers.txt', 'w').write('gone')\n1 / 0"), renderer.answer("\\boxed{6}")],
            1: [read, renderer.answer("\\boxed{6}")],
            2: [read, renderer.answer("\\boxed{6}")],
        }
    )
    found = roll(engine, sessions, renderer, asked(0, files=files), asked(1, files=files), each=1)
    assert found["job-1.0"].calls[0].output == "12 18 24\n"
    assert found["job-1.1"].calls[0].output == "12 18\n"
    assert found["job-1.0+1"].calls[1].output == "12 18 24\n"
    assert {call.tier for rollout in found.values() for call in rollout.calls} == {Tier.SANDBOX}
    assert files == {"numbers.txt": b"12 18"}


def test_attempts_are_sealed_from_one_another(renderer: Renderer, sessions: SessionPool) -> None:
    """The same question, other random numbers, no name, text or verdict of another attempt."""
    secret = [renderer.call("secret = 'mine'\nprint(secret)"), renderer.answer("\\boxed{mine}")]
    curious = [renderer.call("print(secret)"), renderer.answer("\\boxed{none}")]
    engine = ScriptedEngine({0: secret, 1: curious, 2: list(curious)})
    seen: list[str] = []

    def verify(rollout: Rollout) -> None:
        seen.append(rollout.id)  # the verdict is the caller's: nothing goes back into the engine

    agent = Agent(engine, sessions, renderer, BUDGET, time.monotonic)
    rollouts = agent.roll([asked(number) for number in range(3)], verify, branching=Branching(2, 16))
    assert len({engine.requests[number].prompt for number in range(3)}) == 1
    assert len({engine.requests[number].seed for number in range(3)}) == 3
    assert [rollout.calls[0].status for rollout in rollouts] == [
        ToolStatus.OK,
        ToolStatus.EXCEPTION,
        ToolStatus.EXCEPTION,
    ]
    for rollout in rollouts[1:]:
        texts = [renderer.text(node.ids) for node in rollout.nodes if node.role is not Role.ASSISTANT]
        assert not any("mine" in text for text in texts)
    assert sorted(seen) == [rollout.id for rollout in rollouts]


def test_a_reason_to_stop_ends_a_call_under_way_and_frees_its_session(
    renderer: Renderer, sessions: SessionPool
) -> None:
    engine = ScriptedEngine({0: [renderer.call("while True: pass")], 1: [renderer.call("while True: pass")]})
    agent = Agent(engine, sessions, renderer, BUDGET, time.monotonic)
    answered = sessions.stats()["calls"]
    ended = agent.roll([asked(0), asked(1)], stop_reason=lambda: "it was cancelled")
    assert (ended, agent.stopped) == ([], "it was cancelled")
    assert engine.unfinished == 0
    assert sessions_left(sessions) == 0
    assert sessions.stats()["calls"] == answered + 1  # that of `sessions_left`


def test_a_reason_to_stop_is_seen_between_turns_and_what_had_ended_is_returned(
    renderer: Renderer, sessions: SessionPool
) -> None:
    engine = ScriptedEngine({0: [renderer.answer("\\boxed{6}")], 1: [renderer.call(" ")] * 1000})
    ended: list[str] = []
    moments = iter(range(1 << 20))
    agent = Agent(
        engine, sessions, renderer, AgentBudget(max_tokens=1 << 20, max_calls=1 << 20), lambda: float(next(moments))
    )
    agent.roll(
        [asked(0), asked(1)],
        lambda rollout: ended.append(rollout.id),
        stop_reason=lambda: "the deadline has passed" if ended else "",
    )
    assert (ended, agent.stopped) == (["job-1.0"], "the deadline has passed")
    assert engine.unfinished == 0


def test_a_question_without_room_for_an_answer_ends_as_one_and_is_told(
    renderer: Renderer, sessions: SessionPool
) -> None:
    engine = ScriptedEngine({})
    agent = Agent(engine, sessions, renderer, AgentBudget(max_tokens=16), time.monotonic)
    ends: list[RolloutEnd] = []
    agent.roll([asked(0, task=task_of("gcd of 12 and 18? " * 9))], lambda rollout: ends.append(rollout.ended))
    assert ends == [RolloutEnd.TOKENS]


class Unforkable:
    """A session of which no branch can be had."""

    def __init__(self, real: Session) -> None:
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def fork(self, n: int, *, undo: bool = False) -> list[Session]:
        raise LimitError("all snapshots of this session have been taken")


class UnforkablePool:
    def __init__(self, real: SessionPool) -> None:
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def open(self, **asked: object) -> Unforkable:
        return Unforkable(self._real.open(**asked))  # type: ignore[arg-type]


def test_an_attempt_that_cannot_branch_goes_on_as_without_and_that_is_said(
    renderer: Renderer, sessions: SessionPool, caplog: pytest.LogCaptureFixture
) -> None:
    script = [renderer.call("print(1)"), renderer.call("1 / 0"), renderer.call("1 / 0"), renderer.answer("\\boxed{1}")]
    pool = UnforkablePool(sessions)
    agent = Agent(ScriptedEngine({0: script}), pool, renderer, BUDGET, time.monotonic)  # type: ignore[arg-type]
    rollouts = agent.roll([asked(0)], branching=Branching(1, 1))
    assert [rollout.ended for rollout in rollouts] == [RolloutEnd.ANSWERED]
    assert [record.message for record in caplog.records] == [
        "job-1.0 could not branch: all snapshots of this session have been taken"
    ]


def test_a_first_failure_is_mended_in_other_ways_from_the_state_that_it_left(
    renderer: Renderer, sessions: SessionPool
) -> None:
    mend = [renderer.call("print(x)"), renderer.answer("\\boxed{7}")]
    engine = ScriptedEngine(
        {
            0: [renderer.call("x = 7\n1 / 0"), renderer.call("1 / 0"), renderer.answer("\\boxed{0}")],
            1: mend,
            2: list(mend),
        }
    )
    found = roll(engine, sessions, renderer, asked(0), each=2, where="repair")
    assert len(found) == 3
    attempt, one = found["job-1.0"], found["job-1.0+1"]
    assert (one.branch_at, one.branch_token, one.branch_turn) == (3, 0, 2)
    assert one.nodes[:3] == attempt.nodes[:3]
    assert one.calls[1].output == "7\n"
    assert one.shared_tokens == len(attempt.nodes[1].ids)
    assert sample_each(one, 1.0)[0].trained_tokens == one.sampled_tokens == sum(map(len, mend))


@pytest.mark.parametrize("tier", Tier)
def test_the_least_sure_token_of_an_attempt_is_drawn_anew_with_the_names_of_then(
    renderer: Renderer, sessions: SessionPool, tier: Tier
) -> None:
    """In its second turn, behind what begins a call: what was run from there on is gone, what before that is there."""
    begin, change, later = renderer.call(BEGIN[tier]), renderer.call("gcd = 12\nx = gcd"), renderer.call("x = 3")
    see, answer = renderer.call("print(x)"), renderer.answer("\\boxed{6}")
    engine = ScriptedEngine({0: [begin, change, later, answer], 1: [see[1:], answer]})
    engine.logprobs[change[1]] = -9.0
    assert change[1] not in (*begin, *later, *answer)
    assert change[0] == see[0]
    found = roll(engine, sessions, renderer, asked(0), each=1, where="highest_entropy")
    attempt, branch = found["job-1.0"], found["job-1.0+1"]
    assert [call.status for call in attempt.calls] == [ToolStatus.OK] * 3
    assert (branch.branch_at, branch.branch_token, branch.branch_turn) == (3, 1, 2)
    assert branch.nodes[:3] == attempt.nodes[:3]
    assert branch.nodes[3].ids == see, "one turn, of which the first token is the attempt's"
    assert branch.calls[1].output == "41\n"
    assert engine.requests[1].prompt == (*(t for node in attempt.nodes[:3] for t in node.ids), change[0])
    assert [(one.start, one.end) for one in branch.nodes[3].weights] == [(0, 1), (1, len(see))]
    assert branch.sampled_tokens == len(see) - 1 + len(answer)
    assert branch.shared_tokens == len(begin) + 1
    assert sample_each(branch, 1.0)[0].trained_tokens == branch.sampled_tokens
    assert sample_each(attempt, 1.0)[0].trained_tokens == attempt.sampled_tokens


def test_an_attempt_that_was_least_sure_before_it_ran_anything_branches_into_a_session_of_its_own(
    renderer: Renderer, sessions: SessionPool
) -> None:
    begin, answer = renderer.call("x = 12 * 18\nprint(x)"), renderer.answer("\\boxed{6}")
    engine = ScriptedEngine({0: [begin, answer], 1: [renderer.call("print(x)"), answer]})
    engine.logprobs[begin[0]] = -9.0
    branch = roll(engine, sessions, renderer, asked(0), each=1, where="highest_entropy")["job-1.0+1"]
    assert (branch.branch_at, branch.branch_token, branch.shared_tokens) == (1, 0, 0)
    assert branch.calls[0].status is ToolStatus.EXCEPTION


def test_both_branch_at_the_failed_call_and_where_none_failed_at_the_least_sure_token(
    renderer: Renderer, sessions: SessionPool
) -> None:
    good, fail, answer = renderer.call("x = 1"), renderer.call("1 / 0"), renderer.answer("\\boxed{6}")
    engine = ScriptedEngine({0: [good, fail, answer], 1: [good, answer], 2: [answer], 3: [answer]})
    engine.logprobs[answer[0]] = -9.0
    found = roll(engine, sessions, renderer, asked(0), asked(1), each=1, where="both")
    assert {one.branch_of: one.branch_at for one in found.values() if one.branch_of} == {"job-1.0": 3, "job-1.1": 3}
    assert sorted(len(one.calls) for one in found.values()) == [1, 1, 1, 2]


def test_who_may_branch_and_how_branches_are_numbered_does_not_depend_on_who_is_quicker(
    renderer: Renderer, sessions: SessionPool
) -> None:
    answer = renderer.answer("\\boxed{6}")
    slow = [renderer.call("1"), answer]
    found = []
    for first, second in ((slow, [answer]), ([answer], slow)):
        script = {0: list(first), 1: list(second), **{number: [answer] for number in range(2, 7)}}
        asked_for = [asked(number) for number in range(3)]
        engine = ScriptedEngine(script)
        made = roll(engine, sessions, renderer, *asked_for, each=2, where="highest_entropy", first=2)
        found.append({name: one.sample for name, one in made.items()})
    assert found[0] == found[1]
    assert sorted(found[0].values()) == [0, 1, 2, 3, 4, 5, 6]
    assert not any(name.startswith("job-1.2+") for name in found[0])
