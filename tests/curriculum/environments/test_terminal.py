"""The terminal: repairs by commands, what hostile commands come to, and worlds that never meet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curriculum.contract.errors import CurriculumError
from curriculum.environments.terminal.environment import TERMINAL, TerminalEnvironment
from curriculum.environments.terminal.repairs import commands_of, submission_of
from curriculum.registry import make_draft
from curriculum.tasksets.terminal_repairs import TERMINAL_REPAIRS
from curriculum.worlds.world import ENDED, World
from runtime.errors import InfrastructureError
from runtime.sandbox import ExecResult, Limits, Sandbox, SessionPool
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.files.spec import FilesSpec, PlacedFile, read
from verifiers.files.verifier import FilesVerifier

SETUP = {
    "files": [{"path": "etc/a.txt", "text": "one\n", "mode": "640"}],
    "declared": ["etc/a.txt", "b.txt"],
    "seconds": 30.0,
}
AT_ONCE = 32


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory, full_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=1)
    limits = Limits(call_seconds=40.0, memory_mib=192)  # a machine that is busy is no command's fault
    with Sessions(RuntimeSettings(own=own, sandboxes=40, limits=limits)) as pool:
        yield pool


@pytest.fixture
def world(pool: SessionPool) -> Iterator[World]:
    with World.open(pool, TERMINAL, SETUP) as world:
        yield world


def ran(world: World, command: str, **more: Any) -> str:
    return world.call("run_command", {"command": command, **more}).text


def submitted(world: World) -> dict[str, dict[str, str]]:
    return json.loads(world.submission() or "null")


def drafts_by_topic(level: int) -> list[Any]:
    found: dict[str, Any] = {}
    for seed in range(30):
        draft = make_draft("terminal_repairs", level, seed)
        found.setdefault(draft.topic, draft)
    assert set(found) == set(TERMINAL_REPAIRS.topics)
    return list(found.values())


def test_a_repair_by_commands_passes_and_what_was_there_before_does_not(pool: SessionPool) -> None:
    verifier = FilesVerifier(pool)
    for draft in [*drafts_by_topic(1), *drafts_by_topic(3)]:
        solved = read(draft.spec, draft.answer)
        assert isinstance(solved, dict)
        with World.open(pool, TERMINAL, {**draft.world, "seconds": 30.0}) as world:
            before = world.submission() or ""
            for path, one in solved.items():
                said = ran(world, commands_of([PlacedFile(path=path, text=one.text, mode=one.mode)]))
                assert said.endswith("[exit code 0]"), said
            after = world.submission() or ""
        assert json.loads(after) == json.loads(draft.answer)
        assert verifier.verify(draft.spec, after).passed, draft.topic
        assert verifier.verify(draft.spec, before).outcome is Outcome.FAIL, draft.topic


@pytest.mark.parametrize("level", range(6))
def test_idle_agents_pass_no_repair(pool: SessionPool, level: int) -> None:
    """Those that need no sandbox to be refused are asked of every family, the others of one."""
    verifier = FilesVerifier(pool)
    for place, draft in enumerate(drafts_by_topic(level)):
        empty = submission_of([PlacedFile(path=path, text="exit 0\n") for path in draft.spec.declared])
        for nothing in (
            *TERMINAL_REPAIRS.null_answers,
            *([empty] if place == level % 3 or not draft.spec.commands else []),
        ):
            assert verifier.verify(draft.spec, nothing).outcome is Outcome.FAIL
        assert verifier.verify(TERMINAL_REPAIRS.unsolvable(draft, 3), draft.answer).outcome is Outcome.FAIL


def test_commands_have_files_in_common_and_processes_end_with_them(world: World) -> None:
    assert ran(world, "cat etc/a.txt; stat -c %a etc/a.txt; id -u") == "one\n640\n1000\n[exit code 0]"
    assert "started" in ran(world, "setsid sh -c 'sleep 0.6; echo x > late.txt' > /dev/null 2>&1 & echo started")
    assert ran(world, "sleep 0.7; ls; exit 3") == "etc\n[exit code 3]"
    assert submitted(world) == {"etc/a.txt": {"text": "one\n", "mode": "640"}}


@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("yes", "printed too much"),
        ("exec 1>&- 2>&-; sleep 60", "closed its output"),
        ("date -s 2001-01-01", "exit code 1"),
        ("head -c 20000000 /dev/zero > big", "exit code"),
        ("python3 -c 'bytearray(300 << 20)'", "exit code 1"),
        ("cat", "exit code 0"),
        ("touch /etc/x /usr/x", "exit code 1"),
        ("printf '\\000\\377\\033[31m'", "exit code 0"),
    ],
)
def test_a_hostile_command_ends_and_the_terminal_goes_on(world: World, command: str, end: str) -> None:
    assert end in ran(world, command)
    assert ran(world, "echo on") == "on\n[exit code 0]"


@pytest.mark.parametrize("command", ["sleep 100", "sleep 100 & sleep 100 & echo x", "while :; do :; done"])
def test_a_command_that_does_not_end_is_ended(world: World, command: str) -> None:
    assert "took too long" in ran(world, command, timeout=0.3)
    assert ran(world, "echo on") == "on\n[exit code 0]"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("ln -s /etc/passwd b.txt", "a link"),
        ("mkfifo b.txt", "no regular file"),
        ("mkdir b.txt", "no regular file"),
        ("head -c 70000 /dev/zero > b.txt", "more than"),
        ("printf '\\377' > b.txt", "no text"),
        ("echo x > b.txt; chmod 000 b.txt", "cannot be opened"),
        ("mv etc real; ln -s real etc; echo x > b.txt", "a link"),
    ],
)
def test_what_is_no_plain_file_is_submitted_as_a_problem(world: World, command: str, problem: str) -> None:
    ran(world, command)
    assert any(problem in one.get("problem", "") for one in submitted(world).values())


@pytest.mark.parametrize(
    "arguments",
    [{}, {"command": ""}, {"command": 7}, {"command": "x" * 9000}, {"command": "ls", "timeout": 31},
     {"command": "ls", "timeout": True}, {"command": "a\0b"}, {"command": "ls", "user": "root"}],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_told_and_nothing_runs(world: World, arguments: dict[str, Any]) -> None:
    assert world.call("run_command", arguments).failed


def test_who_ends_the_terminal_has_failed_and_submits_nothing(world: World) -> None:
    [before] = world.fork(1)
    with before:
        reply = world.call("run_command", {"command": "kill -9 -1"})
        assert reply.failed
        assert "ended the terminal" in reply.text
        assert world.call("run_command", {"command": "ls"}).failed
        assert world.submission() is None
        assert ran(before, "cat etc/a.txt") == "one\n[exit code 0]", "a branch has its own"


@pytest.fixture(scope="module")
def short_pool(tmp_path_factory: pytest.TempPathFactory, full_roots: Path) -> Iterator[SessionPool]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=full_roots, ready=1)
    with Sessions(RuntimeSettings(own=own, sandboxes=4, limits=Limits(call_seconds=2.0, memory_mib=192))) as pool:
        yield pool


def test_who_stops_the_terminal_has_failed_and_submits_nothing(short_pool: SessionPool) -> None:
    with World.open(short_pool, TERMINAL, SETUP) as world:
        reply = world.call("run_command", {"command": "kill -STOP $PPID"})
        assert (reply.failed, reply.text) == (True, ENDED)
        assert world.call("run_command", {"command": "ls"}).text == ENDED
        assert world.submission() is None
        [branch] = world.fork(1)
        with branch:
            assert branch.submission() is None


@pytest.mark.parametrize("command", ["sleep 1000", "while :; do :; done", "exec 3>&1; sleep 1000 & sleep 1000 | cat"])
def test_a_command_without_a_time_is_ended_by_the_host_and_the_terminal_goes_on(
    short_pool: SessionPool, command: str
) -> None:
    with World.open(short_pool, TERMINAL, SETUP) as world:
        assert ran(world, f"echo kept > b.txt; echo begun; {command}") == "begun\n[it took too long and was ended]"
        assert ran(world, "cat b.txt") == "kept\n[exit code 0]"


def test_a_terminal_that_gives_no_answer_any_more_was_spoiled_by_its_commands(pool: SessionPool) -> None:
    """Whatever they did to the program that answers, which has their user."""

    class Spoiled(TerminalEnvironment):
        program = (
            "import os\n"
            "def call(tool, arguments):\n"
            "    if arguments['command'] == 'answer': return 'an answer'\n"
            "    raise OSError('no more files')\n"
            "def submission(): raise OSError('no more files')\n"
        )

    with World.open(pool, Spoiled(), SETUP) as world, pytest.raises(InfrastructureError):
        world.submission()  # no command has run there
    with World.open(pool, Spoiled(), SETUP) as world:
        assert not world.call("run_command", {"command": "answer"}).failed
        [branch] = world.fork(1)
        with branch:
            assert branch.submission() is None
        assert world.call("run_command", {"command": "spoil"}).text == ENDED
        assert world.submission() is None


def test_a_terminal_that_has_not_begun_is_nobodys_failure(pool: SessionPool) -> None:
    class Unbegun(TerminalEnvironment):
        program = "raise OSError('no')"

    with World.open(pool, Unbegun(), SETUP) as world, pytest.raises(InfrastructureError):
        world.call("run_command", {"command": "ls"})


def commands_verdict(pool: SessionPool, script: str, mode: str = "755", **more: Any) -> Verdict:
    """Of a script for two commands; each of them has to leave `out` with `done`."""
    one = {"command": ["sh", "a.sh"], "leaves": [{"path": "out", "text": "done"}], **more}
    spec = FilesSpec.model_validate({"declared": ["a.sh"], "commands": [one, one], "seconds": 30.0})
    return FilesVerifier(pool).verify(spec, json.dumps({"a.sh": {"text": script, "mode": mode}}))


@pytest.mark.parametrize(
    "script", ["touch /work/1 /work/files2", "mkdir -p /work/1/a.sh", "chmod 000 . ..", "setsid sleep 60 & kill -9 -1"]
)
def test_what_a_command_leaves_reaches_no_other(pool: SessionPool, script: str) -> None:
    """What is left below the second command's folder, or stands in its way, would decide on the second one."""
    verdict = commands_verdict(pool, f"[ -e ../seen ] && exit; echo > ../seen; echo done > out; {script}; true")
    unreadable = "chmod" in script
    assert verdict.ground is (Ground.REFUTED if unreadable else Ground.TESTED), verdict.reason


class LosingPool:
    """A pool of which so many sandboxes end after a program that ran there."""

    def __init__(self, pool: SessionPool, losses: int) -> None:
        self.pool, self.losses = pool, losses

    def sandbox(self, limits: Limits, **more: Any) -> Any:
        sandbox = self.pool.sandbox(limits, **more)
        self.losses -= 1
        return LosingSandbox(sandbox) if self.losses >= 0 else sandbox


class LosingSandbox:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sandbox, name)

    def exec(self, *arguments: Any, **more: Any) -> ExecResult:
        ran = self.sandbox.exec(*arguments, **more)
        self.sandbox.run("import os; os._exit(1)")
        return ran


@pytest.mark.parametrize(("losses", "ground"), [(1, Ground.TESTED), (2, Ground.REFUTED)])
def test_a_sandbox_that_is_lost_after_a_command_again_is_the_submissions_doing(
    pool: SessionPool, losses: int, ground: Ground
) -> None:
    losing: Any = LosingPool(pool, losses)
    assert commands_verdict(losing, "echo done > out", "644").ground is ground


def test_a_submitted_file_that_cannot_be_written_is_replaced_by_the_one_of_the_spec(pool: SessionPool) -> None:
    instead = {"files": [{"path": "a.sh", "text": "echo done > out"}]}
    assert commands_verdict(pool, "exit 1", "444", **instead).passed


@pytest.mark.parametrize("count", [8, pytest.param(AT_ONCE, marks=pytest.mark.slow)])
def test_many_branches_of_one_terminal_never_meet(world: World, count: int) -> None:
    ran(world, "echo shared > b.txt")
    branches = [branch for _ in range(count // 8) for branch in world.fork(8)]
    try:
        calls = [
            one.start("run_command", {"command": f"echo {n} >> b.txt; ls | wc -l"}) for n, one in enumerate(branches)
        ]
        assert {call.result().text for call in calls} == {"2\n[exit code 0]"}
        assert [submitted(one)["b.txt"]["text"] for one in branches] == [f"shared\n{n}\n" for n in range(count)]
        assert submitted(world)["b.txt"]["text"] == "shared\n"
    finally:
        for one in branches:
            one.close()


def test_a_setup_that_leads_outside_is_refused() -> None:
    for path in ("../x", "/etc/x", "a/../../x", ".profile", "a//b"):
        with pytest.raises(CurriculumError):
            TERMINAL.files({"files": [], "declared": [path]})
