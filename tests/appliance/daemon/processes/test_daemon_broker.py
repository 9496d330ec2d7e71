"""The broker alone has rights; it comes before the core and goes after it, and comes back when it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from daemon_kit import as_everybody_may_read_it, until

from appliance.client import CycleState, JobState, SubmitJob
from runtime.broker import ask
from verifiers.answers.spec import AnswerSpec

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a broker for gVisor needs root")

CHILD = Path(__file__).parents[1] / "child_worker.py"
HANGS = (
    "from appliance.config.configuration import Settings\n"
    "from appliance.daemon.api.serve import serve\n"
    f"serve(Settings.load(), worker={[sys.executable, str(CHILD), 'hang']!r})\n"
)

DEAF_FOR_EVER = (
    "from functools import partial\n"
    "from appliance.daemon.coordination import core\n"
    "core.WorkerProcess = partial(core.WorkerProcess, close_seconds=600.0, grace_seconds=600.0)\n"
    f"{HANGS.replace(repr('hang'), repr('stubborn'))}"
)
"""Its worker does not hear that it is to end, and has ten minutes."""


@pytest.fixture
def start(start):
    """Daemons with brokers of their own."""
    return partial(start, broker=True)


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def has_nothing(pid: int) -> bool:
    found = status(pid)
    sets = [int(found[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
    return not any(sets) and found["NoNewPrivs"] == "1"


def with_rights(pids: set[int]) -> set[int]:
    """Those of them that have any; one that has ended meanwhile has none."""
    found = set()
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if not has_nothing(pid):
                found.add(pid)
    return found


def children(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def guard_of(daemon: int) -> psutil.Process:
    below = psutil.Process(daemon).children()
    (guard,) = [one for one in below if any(word.endswith("broker_guard.py") for word in one.cmdline())]
    return guard


@contextlib.contextmanager
def stopped(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        process.resume()


def socket_of(data: Path) -> Path:
    return data / "run" / "broker.sock"


def test_while_a_cycle_works_the_core_and_its_worker_can_do_nothing_and_the_broker_can(start, data) -> None:
    daemon = start(HANGS)
    api = daemon.ready()
    api.start_cycle()
    until(lambda: (data / "attempt-0").exists() and (data / "attempt-0").read_text())
    worker = int((data / "attempt-0").read_text())
    broker = broker_at(socket_of(data))
    assert has_nothing(daemon.process.pid)
    assert has_nothing(worker)
    assert int(status(broker)["CapEff"], 16) != 0
    privileged = with_rights({child.pid for child in children(daemon.process.pid)})
    guards = {child.pid for child in psutil.Process(daemon.process.pid).children() if child.pid in privileged}
    assert len(guards) == 1
    assert guards | {broker} <= privileged
    strangers = privileged - guards - {broker} - {child.pid for child in children(broker)}
    assert not with_rights(strangers)
    left = children(daemon.process.pid)
    assert "Traceback" not in daemon.end(signal.SIGTERM)
    assert psutil.wait_procs(left, timeout=120)[1] == []
    assert not socket_of(data).exists()


def test_a_broker_that_is_killed_is_an_event_and_comes_back(start, data) -> None:
    daemon = start(HANGS)
    api = daemon.ready()
    first = broker_at(socket_of(data))
    os.kill(first, signal.SIGKILL)
    until(lambda: any(event.event.kind == "broker" for event in api.events()))
    until(lambda: _answers(socket_of(data)) not in (0, first))
    (text,) = [event.event.text for event in api.events() if event.event.kind == "broker"]
    assert "killed by signal 9" in text
    assert text.endswith("starts again immediately")
    assert daemon.process.poll() is None
    assert api.start_cycle().state is CycleState.RUNNING


def test_jobs_that_come_while_the_broker_is_away_wait_for_it_and_say_so(start, data) -> None:
    daemon = start(HANGS.replace("'hang'", "'finish'"))
    api = daemon.ready()
    asked = [SubmitJob(question=str(n), spec=AnswerSpec(notation="digits", expected="6")) for n in range(3)]
    with stopped(guard_of(daemon.process.pid)):  # so that no other one is there before it was looked
        os.kill(broker_at(socket_of(data)), signal.SIGKILL)
        jobs = [api.submit(job).id for job in asked]
        until(lambda: api.status().worker.waits_for)
        assert "restarts by itself" in api.job(jobs[0]).job.reason
        assert {(job.state, job.reason[:7]) for job in api.jobs()} == {(JobState.QUEUED, "waits: ")}
    until(lambda: all(api.job(job).job.state is JobState.UNSOLVED for job in jobs))
    until(lambda: not api.status().worker.waits_for)


def broker_at(socket: Path) -> int:
    """The process number of the broker that listens there, however long it takes to say so."""
    return ask(socket, seconds=120.0).pid


def _answers(socket: Path) -> int:
    from runtime.errors import RefusedError

    try:
        return ask(socket).pid
    except RefusedError:
        return 0


def test_kill_9_of_the_daemon_ends_the_broker_too(start, data) -> None:
    daemon = start()
    daemon.ready()
    left = children(daemon.process.pid)
    assert len(left) >= 2
    daemon.end(signal.SIGKILL)
    assert psutil.wait_procs(left, timeout=120)[1] == []
    start().ready()


def test_without_its_guard_the_broker_cannot_come_back_and_the_daemon_ends_with_that_error(start, data) -> None:
    daemon = start()
    daemon.ready()
    guard_of(daemon.process.pid).kill()
    assert daemon.process.wait(timeout=120) == 5
    output = daemon.end()
    assert "cannot be started again" in output
    assert "Traceback" not in output


def test_no_worker_is_waited_for_whose_broker_cannot_come_back(start, data) -> None:
    daemon = start(DEAF_FOR_EVER)
    daemon.ready().start_cycle()
    until(lambda: (data / "grandchild").exists())
    guard_of(daemon.process.pid).kill()
    assert daemon.process.wait(timeout=200) != 0
    assert "cannot be started again" in daemon.end()


def test_a_broker_that_listens_already_is_used_and_left_running(start, data) -> None:
    first = start(HANGS)
    first.ready()
    broker = broker_at(socket_of(data))
    second_data = data.parent / "second"
    second = start(HANGS, ASSAY_DATA=str(second_data), ASSAY_SANDBOX__BROKER=str(socket_of(data)))
    second.data = second_data
    api = second.ready()
    until(lambda: not children(second.process.pid))
    assert api.start_cycle().state is CycleState.RUNNING
    second.end()
    assert broker_at(socket_of(data)) == broker


def test_a_configured_broker_that_is_not_there_is_said_and_nothing_is_started_instead(start, assay, data) -> None:
    daemon = start(ASSAY_SANDBOX__BROKER="/tmp/nobody-listens-here.sock")
    daemon.ready()
    until(lambda: not children(daemon.process.pid))
    refused = assay("cycle", "start")
    assert (refused.returncode, "no broker" in refused.stderr) == (5, True), refused.stderr
    assert "no cycle and no job can run" in daemon.end()


def test_a_broker_that_cannot_work_says_why_and_may_come_to_work_later(start, assay, data) -> None:
    folder = data.parent / "broker"
    folder.mkdir()
    (folder / "guest-roots").touch()  # where a folder has to be
    daemon = start(HANGS, ASSAY_SANDBOX__FOLDER=str(folder))
    api = daemon.ready()
    refused = assay("cycle", "start")
    assert (refused.returncode, "the broker does not start" in refused.stderr) == (5, True), refused.stderr
    assert "guest-roots" in refused.stderr
    (folder / "guest-roots").unlink()
    until(lambda: _answers(folder / "broker.sock"), seconds=150.0)
    assert api.start_cycle().state is CycleState.RUNNING
    texts = [event.event.text for event in api.events() if event.event.kind == "broker"]
    assert any("ended with status 1" in text and "guest-roots" in text for text in texts), texts
    assert "guest-roots" in (data / "logs" / "broker.log").read_text()


@pytest.fixture
def served_by_nobody(data: Path) -> dict[str, str]:
    """A configuration under which the daemon becomes the user `nobody`."""
    data.parent.chmod(0o711)
    return {"ASSAY_SERVICE__USER": "nobody", "ASSAY_SANDBOX__FOLDER": str(data.parent / "broker")}


def test_root_becomes_the_configured_user_and_its_broker_stays_out_of_reach(start, data, served_by_nobody) -> None:
    daemon = start(HANGS, before=as_everybody_may_read_it(), **served_by_nobody)
    api = daemon.ready()
    assert status(daemon.process.pid)["Uid"].split() == ["65534"] * 4
    assert has_nothing(daemon.process.pid)
    broker = data.parent / "broker" / "broker.sock"
    assert status(broker_at(broker))["Uid"].split() == ["0"] * 4
    assert {path.stat().st_uid for path in (data, *data.rglob("*"))} == {65534}
    assert (broker.parent.stat().st_uid, broker.parent.stat().st_mode & 0o022) == (0, 0)
    assert api.start_cycle().state is CycleState.RUNNING
    left = children(daemon.process.pid)
    assert "Traceback" not in daemon.end(signal.SIGTERM)
    assert psutil.wait_procs(left, timeout=120)[1] == []


def test_a_daemon_that_never_was_root_uses_the_broker_beside_it(start, data, served_by_nobody) -> None:
    socket = data.parent / "broker" / "broker.sock"
    broker = start(command="broker", **served_by_nobody)
    until(lambda: _answers(socket))
    assert broker_at(socket) == broker.process.pid
    data.mkdir()
    os.chown(data, 65534, 65534)
    unprivileged = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--bounding-set=-all",
        "--inh-caps=-all",
    ]
    daemon = start(
        HANGS, before=[*as_everybody_may_read_it(), *unprivileged], ASSAY_SANDBOX__BROKER=str(socket), XDG_STATE_HOME=""
    )
    api = daemon.ready()
    assert has_nothing(daemon.process.pid)
    until(lambda: not children(daemon.process.pid))
    assert api.start_cycle().state is CycleState.RUNNING
    assert "Traceback" not in daemon.end(signal.SIGTERM)
    left = children(broker.process.pid)
    assert "Traceback" not in broker.end(signal.SIGTERM)
    assert broker.process.returncode == 0
    assert psutil.wait_procs(left, timeout=120)[1] == []


def test_a_broker_s_folder_that_the_user_could_change_is_refused(assay, data, served_by_nobody) -> None:
    refused = assay("serve", **served_by_nobody | {"ASSAY_SANDBOX__FOLDER": str(data / "broker")})
    assert (refused.returncode, "Traceback" in refused.stderr) == (5, False)
    assert "is not safe" in refused.stderr
