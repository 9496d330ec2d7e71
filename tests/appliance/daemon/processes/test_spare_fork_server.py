"""What forks workers of a model has a spare, which takes its place at once and never outlives the core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from daemon_kit import until
from test_daemon_worker import core

from appliance.daemon.processes import fork_server
from appliance.daemon.processes.fork_server import ForkServer
from appliance.records.cycles import CycleState

HOLDER = """
import sys, time
from appliance.daemon.processes.fork_server import ForkServer
first = ForkServer.begun(0)
spare = first.spare()
print(first.pid, spare.pid, flush=True)
time.sleep(1000)
"""

TAKES_A_SPARE = """
import ctypes, sys
from appliance.daemon.processes.fork_server import ForkServer
SET, GET = 36, 37  # PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER
libc = ctypes.CDLL(None)
def adopts():
    value = ctypes.c_int()
    libc.prctl(GET, ctypes.byref(value), 0, 0, 0)
    return value.value
libc.prctl(SET, int(sys.argv[1]), 0, 0, 0)
server = ForkServer.begun(0)
before, send = adopts(), server.send
meanwhile = []
server.send = lambda *arguments: (meanwhile.append(adopts()), send(*arguments))
spare = server.spare()
print(before, *meanwhile, adopts())
spare.end()
server.end()
"""
"""Says whether this process is what orphans are given to: before it takes a spare, meanwhile, and after."""


@pytest.fixture
def server() -> Iterator[ForkServer]:
    made = ForkServer.begun(0)
    yield made
    made.end()


def is_there(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def request(program: str) -> dict[str, object]:
    return {"arguments": [sys.executable, "-I", "-c", program], "libraries": ["json.tool"]}


def told(server: ForkServer, program: str = "raise SystemExit(7)") -> int:
    """Has it fork a worker, and returns how that ended."""
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a descriptor is wanted
        server.send(request(program), [nowhere.fileno()] * 3)
        begun, ended = server.reply(), server.reply()
    assert begun is not None
    assert ended is not None
    server.line.send(b"done")
    return int(ended["code"])


def test_a_spare_is_a_child_of_the_core_that_outlives_the_one_it_was_forked_from(server: ForkServer) -> None:
    assert told(server) == 7
    spare = server.spare()
    assert spare is not None
    process = psutil.Process(spare.pid)
    assert (process.ppid(), process.name(), os.getpgid(spare.pid)) == (os.getpid(), "assay-spare", spare.pid)
    os.kill(server.pid, signal.SIGKILL)
    assert told(spare) == 7
    assert process.name() != "assay-spare"
    another = spare.spare()
    assert another is not None
    for one in (spare, another):
        one.end()
        assert not is_there(one.pid)


def test_a_worker_gives_way_within_its_session_and_its_session_gives_way_to_others() -> None:
    server = ForkServer.begun(5)
    program = (
        "import os; says = open('/proc/self/autogroup').read(); "
        "raise SystemExit(os.getpriority(os.PRIO_PROCESS, 0) if ' nice 5' in says or not says else 99)"
    )
    try:
        assert told(server, program) == 5
    finally:
        server.end()


def test_one_is_forked_beside_a_worker_that_works_and_has_no_descriptor_of_the_other(server: ForkServer) -> None:
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123
        server.send(request("import time; time.sleep(1000)"), [nowhere.fileno()] * 3)
    begun = server.reply()
    assert begun is not None
    spare = server.spare()
    assert spare is not None
    kept = [path.readlink() for path in Path(f"/proc/{spare.pid}/fd").iterdir()]
    assert len([one for one in kept if str(one).startswith("socket:")]) == 1
    os.kill(begun["pid"], signal.SIGKILL)
    assert server.reply() == {"code": -signal.SIGKILL}
    late = server.spare()
    assert late is not None
    late.end()
    spare.end()


def test_no_spare_is_waited_for_where_what_forks_it_is_stopped(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_server, "SPARE_SECONDS", 10_000.0)
    monkeypatch.setattr(fork_server, "LOOK_SECONDS", 0.05)
    assert told(server) == 7
    os.kill(server.pid, signal.SIGSTOP)
    assert server.spare() is None


@pytest.mark.parametrize("before", [0, 1], ids=["not adopting", "adopting"])
def test_orphans_are_the_core_s_only_while_it_takes_a_spare(before: int) -> None:
    program = [sys.executable, "-c", TAKES_A_SPARE, str(before)]
    told = subprocess.run(program, stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout
    assert told.split() == [str(before), "1", str(before)]


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_the_kernel_ends_both_with_the_core(stopped: bool) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    pids = [int(pid) for pid in holder.stdout.readline().split()]
    assert [psutil.Process(pid).ppid() for pid in pids] == [holder.pid] * 2
    if stopped:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    holder.kill()
    holder.communicate()
    until(lambda: not any(map(is_there, pids)))


def test_a_spare_that_nobody_waits_for_ends(server: ForkServer) -> None:
    spare = server.spare()
    assert spare is not None
    spare.line.close()
    until(lambda: not is_there(spare.pid))
    os.waitpid(spare.pid, 0)
    assert told(server) == 7


def test_what_forks_workers_is_killed_and_the_next_worker_comes_from_its_spare(data: Path) -> None:
    with core(data, "orphan-once") as running:
        process = running.supervisor.process
        spares: list[int] = []
        keep = process._look_after_spare

        def look() -> None:
            keep()
            if process._spare is not None:
                spares.append(process._spare.pid)

        process._look_after_spare = look  # type: ignore[method-assign]
        assert running.cycles.run(running.cycles.start("night").id).state is CycleState.DONE
        assert int((data / "parent").read_text()) == spares[0]
        assert spares[-1] != spares[0], "and it has a spare, too"
        os.kill(spares[-1], signal.SIGKILL)
        assert running.cycles.run(running.cycles.start("night").id).state is CycleState.DONE
        assert int((data / "parent").read_text()) == spares[0]
        assert is_there(spares[-1])
    assert not any(map(is_there, spares))


def test_what_forks_workers_may_be_killed_while_it_loads_and_the_core_goes_on(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with core(data, "finish") as running:
        with monkeypatch.context() as patched:
            patched.setattr(fork_server, "FORKSERVER", ("/bin/sh", "-c", "kill -9 $$"))
            cycle = running.cycles.start("night")
            assert running.cycles.run(cycle.id).state is CycleState.SET_ASIDE
        assert "the fork server ends immediately" in running.supervisor.status.last_failure
        running.cycles.resume(cycle.id)
        assert running.cycles.run(cycle.id).state is CycleState.DONE
