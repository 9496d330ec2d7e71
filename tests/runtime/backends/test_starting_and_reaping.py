"""Programs start with nothing of ours but what they were given, and nothing of them stays when they have ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from box_kit import children

from runtime.backends.reaper import FAR, Reaper, spawn
from runtime.reactor import Reactor

REPOSITORY = Path(__file__).parents[3]
LOOK = """import json, os
print(json.dumps({"fds": sorted(int(n) for n in os.listdir("/proc/self/fd")), "environment": dict(os.environ),
    "session": os.getsid(0) == os.getpid(), "cwd": os.getcwd(),
    "far": [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if int(n) >= 300]}))"""


def said_by(argv: list[str], entrances: list[str] | None = None) -> tuple[bytes, int]:
    out, into = os.pipe2(os.O_CLOEXEC)
    process = spawn(argv, entrances=entrances or [], stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.DEVNULL)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        return pipe.read(), process.wait(timeout=120)


def test_a_program_gets_nothing_but_what_it_was_given() -> None:
    secret = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(secret, True)
    os.environ["ASSAY_TEST_SECRET"] = "x"
    try:
        output, code = said_by([sys.executable, "-I", "-S", "-c", LOOK])
    finally:
        os.close(secret)
        del os.environ["ASSAY_TEST_SECRET"]
    assert code == 0
    found = eval(output.replace(b"true", b"True"))
    assert [n for n in found["fds"] if n < FAR and n > 3] == []
    assert found["far"] == ["/dev/null"]
    assert set(found["environment"]) <= {"PATH", "PWD", "LC_CTYPE"}
    assert (found["session"], found["cwd"]) == (True, "/")


def test_a_program_blocks_no_signal_whatever_its_starter_does() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        output, _ = said_by(["/bin/grep", "SigBlk", "/proc/self/status"])
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert output.split() == [b"SigBlk:", b"0" * 16]


def test_a_program_that_cannot_enter_its_groups_does_not_start(tmp_path: Path) -> None:
    assert said_by(["/bin/echo", "x"], [str(tmp_path / "none" / "tasks")]) == (b"", 124)


def test_a_program_enters_every_group_before_it_begins(tmp_path: Path) -> None:
    entrances = [tmp_path / "a", tmp_path / "b"]
    assert said_by(["/bin/cat", *map(str, entrances)], list(map(str, entrances))) == (b"0\n0\n", 0)


def test_a_program_does_not_wait_in_membarrier() -> None:
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.syscall({'x86_64': 324, 'aarch64': 283}[__import__('os').uname().machine], 0, 0, 0),"
        " ctypes.get_errno())"
    )
    assert said_by([sys.executable, "-I", "-c", code])[0] == b"-1 38\n"
    here = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True).stdout
    assert here.startswith((b"-1 38", b"-1 1")) or int(here.split()[0]) >= 0


ORPHANED = """import os, subprocess, sys
from runtime.backends.reaper import spawn
gone = subprocess.Popen(["/bin/true"])
gone.wait()
os.getpid = lambda: gone.pid
process = spawn(["/bin/echo", "it began"], entrances=[], stdin=subprocess.DEVNULL, stdout=1, stderr=subprocess.DEVNULL)
print(process.wait(), flush=True)
"""


def test_a_program_does_not_begin_when_who_started_it_is_gone() -> None:
    answer = subprocess.run([sys.executable, "-c", ORPHANED], cwd=REPOSITORY, capture_output=True, check=True)
    assert answer.stdout == b"125\n"


@pytest.fixture
def reaping() -> Iterator[tuple[Reactor, Reaper]]:
    reactor = Reactor()
    yield reactor, Reaper(reactor)
    reactor.stop()


def ended(reaping: tuple[Reactor, Reaper], script: str) -> tuple[threading.Event, list[int]]:
    reactor, reaper = reaping
    starved: list[int] = []
    event = threading.Event()

    def exited(code: int) -> None:
        starved.append(code)
        event.set()

    reactor.call(lambda: reaper.start(["/bin/sh", "-c", script], entrances=[], exited=exited) and None)
    return event, starved


def eventually(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 120
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -signal.SIGKILL)])
def test_an_end_is_told_once_with_its_status(reaping: tuple[Reactor, Reaper], script: str, code: int) -> None:
    event, starved = ended(reaping, script)
    assert event.wait(120)
    time.sleep(0.05)
    assert starved == [code]


def test_orphans_are_adopted_and_do_not_stay_as_zombies(reaping: tuple[Reactor, Reaper], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "end")
    end = os.open(tmp_path / "end", os.O_RDWR)
    before = children().keys()
    event, starved = ended(reaping, f"for n in 1 2 3 4 5; do (read line < {tmp_path}/end &) ; done; exit 0")
    assert event.wait(120)
    assert starved == [0]
    assert eventually(lambda: len(children().keys() - before) == 5)
    os.write(end, b"\n" * 5)
    assert eventually(lambda: children().keys() <= before)
    os.close(end)


def test_children_that_somebody_else_waits_for_are_left_to_him(reaping: tuple[Reactor, Reaper]) -> None:
    mine = subprocess.Popen(["/bin/sh", "-c", "exit 3"])
    event, _ = ended(reaping, "(sleep 0.1 &); exit 0")
    assert event.wait(120)
    time.sleep(1.2)
    assert mine.wait(timeout=120) == 3


def test_a_child_that_nobody_waits_for_keeps_no_orphan_from_being_adopted(reaping: tuple[Reactor, Reaper]) -> None:
    mine = subprocess.Popen(["/bin/sh", "-c", "exit 3"])
    time.sleep(0.1)
    before = children().keys()
    event, _ = ended(reaping, "(sleep 0.1 &); (sleep 0.2 &); exit 0")
    assert event.wait(120)
    time.sleep(0.3)
    assert eventually(lambda: children().keys() <= before)
    assert mine.wait(timeout=120) == 3


def test_close_ends_what_still_runs_and_says_so(reaping: tuple[Reactor, Reaper]) -> None:
    reactor, reaper = reaping
    event, starved = ended(reaping, "trap '' TERM; sleep 60")
    reactor.call(reaper.close)
    assert event.wait(120)
    assert starved == [-signal.SIGKILL]


def test_a_program_that_cannot_be_started_is_an_error_at_once(reaping: tuple[Reactor, Reaper]) -> None:
    event, starved = ended(reaping, "exec /nowhere")
    assert event.wait(120)
    assert starved == [127]
