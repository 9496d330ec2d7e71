"""A daemon that is told to end is over within ten seconds, whatever its children do: by the graces that they have."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from daemon_kit import until
from test_daemon_worker import alive, attempts, serving

from appliance.daemon.coordination.threads import run_until
from appliance.daemon.processes import broker_process
from appliance.daemon.processes.wake_thread import STOP_SECONDS, WORK_SECONDS, close_together
from appliance.daemon.processes.worker_process import WorkerProcess
from appliance.records.cycles import CycleState


def test_the_graces_of_all_children_are_less_than_what_a_stop_may_take() -> None:
    given = inspect.signature(WorkerProcess).parameters["close_seconds"].default
    assert max(given, WORK_SECONDS) + broker_process.GRACE_SECONDS < STOP_SECONDS == 10


def test_children_are_ended_side_by_side_and_what_fails_is_raised_after_the_last() -> None:
    both = threading.Barrier(2, timeout=120)
    close_together(both.wait, both.wait)
    ended: list[str] = []

    def fail() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        close_together(fail, lambda: ended.append("the other"))
    assert ended == ["the other"]


def test_sigterm_ends_a_daemon_whose_worker_is_stubborn_and_nothing_of_it_is_left(start, data) -> None:
    daemon = start(serving(data, "stubborn"), lent=True)
    api = daemon.ready()
    cycle = api.start_cycle()
    until(lambda: attempts(data) == 1 and (data / "grandchild").exists() and (data / "grandchild").read_text())
    worker, grandchild = (int((data / name).read_text()) for name in ("attempt-0", "grandchild"))
    output = daemon.end(signal.SIGTERM)
    assert (daemon.process.returncode, "Traceback" in output) == (0, False), output
    until(lambda: not alive(worker) and not alive(grandchild))
    assert not daemon.socket.exists()
    api = start(serving(data, "finish"), lent=True).ready()
    assert "stopped" in [one.event.text for one in api.events() if one.event.kind == "daemon"]
    until(lambda: api.cycle(cycle.id).cycle.state is CycleState.DONE)


def test_the_command_that_makes_tasks_before_a_night_keeps_no_daemon_from_ending(tmp_path: Path) -> None:
    program = "import sys, time, pathlib; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
    began = tmp_path / "began"
    command = [sys.executable, "-c", program, str(began)]
    with (tmp_path / "errors").open("wb") as errors:
        assert run_until(command, os.environ, errors.fileno(), began.exists) == -signal.SIGTERM
        assert run_until([sys.executable, "-c", "exit(3)"], os.environ, errors.fileno(), lambda: False) == 3
        with pytest.raises(subprocess.TimeoutExpired):
            run_until(command, os.environ, errors.fileno(), lambda: False, seconds=0.3)
