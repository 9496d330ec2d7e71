"""A world answers calls as plain data: nobody else's state, nothing that its program prints, no unfit argument."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from toy_worlds import BROKEN, TOYS, ToyEnvironment

from curriculum.worlds.world import TEXT_BYTES, World
from runtime.errors import InfrastructureError, StarvedError
from runtime.sandbox import CallResult, CallStatus, SessionPool
from runtime.sessions import Sessions
from runtime.sessions.session import LiveSession
from runtime.settings import BrokerSettings, RuntimeSettings

START = {"start": 5, "sign": "way out"}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, guest_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=guest_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, sandboxes=40)) as pool:
        yield pool


def opened(pool: SessionPool, name: str, **setup: Any) -> World:
    return World.open(pool, TOYS[name], START | setup)


def test_a_call_changes_the_world_and_a_fork_goes_its_own_way(pool: SessionPool) -> None:
    with opened(pool, "counter") as world:
        assert world.call("look", {}).text == "5  way out"
        assert [world.call("add", {"number": 2}).text, world.call("add", {"number": 3}).text] == ["7", "10"]
        one, other = world.fork(2)
        with one, other:
            assert [one.call("add", {"number": 1, "note": "ü\n'"}).text, other.call("add", {"number": 5}).text] == [
                "11",
                "15",
            ]
            assert "ü\n'" in one.call("look", {}).text
            assert [each.submission() for each in (world, one, other)] == ["10", "11", "15"]
        assert world.usage.calls == 6


def test_a_world_goes_back_behind_a_call_that_was_kept(pool: SessionPool) -> None:
    with opened(pool, "counter") as world:
        world.call("add", {"number": 1})
        kept = world.start("add", {"number": 10}, keep=True)
        fork = world.start_fork(1, undo=True)
        assert kept.result().text == "16"
        [before] = fork.result()
        with before:
            assert before.submission() == "6"


@pytest.mark.parametrize("name", ["counter", "tally"])
def test_a_call_that_was_kept_and_did_not_fit_leaves_the_world_to_go_back_to_as_it_was(
    pool: SessionPool, name: str
) -> None:
    with opened(pool, name) as origin:
        [world] = origin.fork(1)
        with world:
            world.start("add", {"number": 1}, keep=True).result()
            assert not world.start("add", {"number": "ten"}, keep=True).result().reached
            [unchanged] = world.fork(1, undo=True)
            world.call("add", {"number": 100})
            assert not world.start("fly", {}).result().reached
            world.call("add", {"number": 1_000})
            [before] = world.fork(1, undo=True)
            with unchanged, before:
                assert [each.submission() for each in (world, unchanged, before)] == ["1106", "6", "6"]
        if origin.environment.shareable:
            assert unchanged.state == world.state_kept == before.state


def test_views_of_one_world_have_their_own_state_and_its_digest_stays(pool: SessionPool) -> None:
    with opened(pool, "tally") as world:
        digest = world.digest()
        one, other = world.fork(2)
        assert [one.call("add", {"number": 2, "note": "ü'\n"}).text, other.call("add", {"number": 9}).text] == [
            "7",
            "14",
        ]
        assert one.call("look", {}).text == "7 ü'"
        refused = one.call("add", {"number": -100, "note": "gone"})
        assert (refused.failed, refused.text) == (True, "that is too little")
        assert one.start("add", {"number": 100}, keep=True).result().text == "107"
        [back], [on] = one.fork(1, undo=True), one.fork(1)
        assert back.call("add", {"number": 1, "note": "back"}).text == "8"
        assert on.call("add", {"number": 1}).text == "108"
        views = (world, one, other, back, on)
        assert [each.submission() for each in views] == ["5", "107", "14", "8", "108"]
        assert {each.digest() for each in views} == {digest}
        one.close()
        assert other.call("add", {"number": 0}).text == "14"


def test_a_world_is_broken_for_all_of_its_views(pool: SessionPool) -> None:
    program = "def call(tool, arguments):\n    return 'fine' if tool == 'look' else str(1 / 0)"
    with World.open(pool, ToyEnvironment("brittle", program, shareable=True), START) as world:
        one, other = world.fork(2)
        assert other.call("look", {}).text == "fine"
        for each in (one, other, world):
            with pytest.raises(InfrastructureError, match="ZeroDivisionError"):
                each.call("add", {"number": 1})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("STATE['x'] = __import__('random').randbytes(9000).hex()", "STATE is [0-9]+ bytes, packed; there may be 8000"),
        ("STATE['x'] = {1, 2}", "TypeError"),
    ],
)
def test_a_state_that_cannot_be_carried_breaks_the_world(pool: SessionPool, change: str, why: str) -> None:
    program = f"STATE = {{}}\ndef call(tool, arguments):\n    {change}\n    return 'said'"
    heavy = ToyEnvironment("heavy", program, shareable=True)
    with World.open(pool, heavy, START) as world, pytest.raises(InfrastructureError, match=why):
        world.call("look", {})


def test_a_text_leaves_room_for_the_state_beside_it(pool: SessionPool) -> None:
    program = (
        "import random\nSTATE = ''\ndef call(tool, arguments):\n    global STATE\n"
        "    STATE = random.randbytes(2900).hex()\n    return 'x' * 50_000"
    )
    with World.open(pool, ToyEnvironment("wordy", program, shareable=True), START) as world:
        for _ in range(2):
            assert "more characters were cut" in world.call("look", {}).text


def test_what_the_model_did_wrong_is_told_and_the_world_goes_on(pool: SessionPool) -> None:
    with opened(pool, "counter") as world:
        reply = world.call("add", {"number": -1})
        assert (reply.failed, reply.reached, reply.text) == (True, True, "only what is not negative can be added")
        assert world.call("add", {"number": 1}).text == "6"


deep: list[Any] = []
for _ in range(2000):
    deep = [deep]
HOSTILE: dict[str, tuple[str, Any, str]] = {
    "no object": ("add", [1], "are a JSON object|is a JSON object"),
    "none": ("add", None, "JSON object"),
    "missing": ("add", {}, "number"),
    "wrong type": ("add", {"number": "1"}, "number"),
    "a truth": ("add", {"number": True}, "number"),
    "too large for its schema": ("add", {"number": 2000}, "1000"),
    "too large for anybody": ("add", {"number": 10**400}, "too large"),
    "nan": ("add", {"number": float("nan")}, "not finite"),
    "infinite": ("add", {"number": float("inf")}, "not finite"),
    "unknown": ("add", {"number": 1, "__class__": 1}, "no argument `__class__`"),
    "surrogate": ("add", {"number": 1, "note": "\ud800"}, "not Unicode"),
    "surrogate in a name": ("add", {"\ud800": 1}, "not Unicode"),
    "huge": ("add", {"number": 1, "note": "x" * 100_000}, "more than 16384 bytes"),
    "deep": ("add", {"number": 1, "note": deep}, "nested more than 8 deep"),
    "no JSON": ("add", {"number": {1, 2}}, "not JSON"),
    "no such tool": ("__import__", {}, "no tool '__import__'"),
    "no tool at all": ("", {}, "no tool"),
}


def test_arguments_that_do_not_fit_never_reach_the_world(pool: SessionPool) -> None:
    with opened(pool, "counter") as world:
        world.call("look", {})
        for name, (tool, arguments, said) in HOSTILE.items():
            reply = world.call(tool, arguments)
            assert (reply.failed, reply.reached) == (True, False), name
            assert any(part in reply.text for part in said.split("|")), (name, reply.text)
            assert len(reply.text) < 300
        assert world.usage.calls == 3
        assert world.submission() == "5"


def test_arguments_are_data_whatever_they_spell(pool: SessionPool) -> None:
    note = "'); import os; os._exit(1) #\n\\\"\"\"'''\0 {ADD} \u2028"
    with opened(pool, "counter") as world:
        world.call("add", {"number": 1, "note": note})
        assert world.call("look", {}).text == f"6 {note} way out"


@pytest.mark.parametrize("name", BROKEN)
def test_a_world_that_breaks_is_the_infrastructure_s_failure_and_stays_broken(
    tmp_path_factory: pytest.TempPathFactory, guest_roots: Path, pool: SessionPool, name: str
) -> None:
    with opened(pool, f"one that {name}") as world:
        for _ in range(2):
            with pytest.raises(InfrastructureError, match=f"a world of one that {name} is broken") as met:
                world.call("look", {})
            assert met.value.hint


def test_a_sandbox_that_ends_by_its_wall_clock_is_no_tool_error_of_the_model(
    pool: SessionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(pool, "counter") as world:
        world.call("add", {"number": 1})
        world._commanded = True  # as if the model's own commands had run in it: it may end such a world itself
        whole = LiveSession.start

        def expired(self: LiveSession, *given: Any, **named: Any) -> Future[CallResult]:
            over = whole(self, *given, **named).result().model_copy(update={"status": CallStatus.EXPIRED})
            done = Future[CallResult]()
            done.set_result(over)
            return done

        with monkeypatch.context() as patch:
            patch.setattr(LiveSession, "start", expired)
            with pytest.raises(StarvedError):
                world.call("add", {"number": 1})
        with pytest.raises(InfrastructureError):
            world.call("look", {})


def test_a_long_answer_is_cut_and_says_so(pool: SessionPool) -> None:
    with opened(pool, "reader", long="\0ü" * 20_000) as world:
        text = world.call("look", {}).text
        assert len(text.encode()) <= TEXT_BYTES + 100
        assert text.endswith("more characters were cut]")


def test_a_digest_says_whether_a_world_was_changed(pool: SessionPool) -> None:
    for name, changes in (("reader", False), ("liar", True), ("writer", True), ("counter", True)):
        with opened(pool, name) as world:
            before = world.digest()
            assert world.digest() == before
            world.call("add", {"number": 1})
            assert (world.digest() != before) is changes, name


@pytest.mark.parametrize("count", [8, pytest.param(32, marks=pytest.mark.slow)])
def test_forks_at_once_have_a_world_each(pool: SessionPool, count: int) -> None:
    with opened(pool, "counter") as world:
        forks = world.fork(count)
        replies = [fork.start("add", {"number": number}) for number, fork in enumerate(forks)]
        again = [fork.start("add", {"number": number}) for number, fork in enumerate(forks)]
        assert [reply.result().text for reply in replies] == [str(5 + number) for number in range(count)]
        assert [reply.result().text for reply in again] == [str(5 + 2 * number) for number in range(count)]
        assert world.submission() == "5"
        for fork in forks:
            fork.close()
