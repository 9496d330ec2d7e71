"""A data folder has one owner at a time, and none after its owner's death."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.client.api_client import ApiClient
from appliance.client.failures import DaemonNotRunning, DaemonSilent
from appliance.ledger.ledger import LedgerError
from appliance.ledger.lock import DataLockedError, data_lock, require_unlocked
from appliance.system.lock_owner import DEMONSTRATION

OWNER = """
import sys
from pathlib import Path
from appliance.ledger.lock import data_lock
with data_lock(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
"""


def start_owner(data: Path) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "mine\n"
    return owner


def test_a_second_owner_is_refused_with_the_pid_of_the_first_and_what_to_do(tmp_path: Path) -> None:
    with start_owner(tmp_path) as owner:
        with pytest.raises(DataLockedError) as caught, data_lock(tmp_path):
            pass
        assert caught.value.pid == owner.pid
        assert str(owner.pid) in str(caught.value)
        assert "--data" in caught.value.hint
        owner.communicate()
    with data_lock(tmp_path) as lock:
        assert lock.read_text() == f"{os.getpid()}\n"


def test_a_look_names_the_owner_and_makes_nothing(tmp_path: Path) -> None:
    require_unlocked(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with start_owner(tmp_path) as owner:
        with pytest.raises(DataLockedError) as caught:
            require_unlocked(tmp_path)
        assert caught.value.pid == owner.pid
        owner.communicate()
    require_unlocked(tmp_path)


def test_what_lies_in_the_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "lock")
    require_unlocked(tmp_path)


def test_a_lock_of_a_killed_owner_is_free(tmp_path: Path) -> None:
    with start_owner(tmp_path) as owner:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert (tmp_path / "run" / "lock").read_text() == f"{owner.pid}\n"
        with data_lock(tmp_path):
            assert (tmp_path / "run" / "lock").read_text() == f"{os.getpid()}\n"


def test_a_demonstration_is_named_by_the_lock_and_by_whoever_asks_for_the_daemon(tmp_path: Path) -> None:
    with data_lock(tmp_path, DEMONSTRATION):
        with pytest.raises(DataLockedError, match=r"a demonstration .*pid") as locked, data_lock(tmp_path):
            pass
        with pytest.raises(DaemonNotRunning, match="a demonstration") as silent:
            ApiClient(tmp_path / "run" / "assay.sock").status()
    for caught in (locked, silent):
        assert "wait until it ends" in caught.value.hint
        assert "use it" not in caught.value.hint
        assert "start it" not in caught.value.hint
    with pytest.raises(DaemonNotRunning) as silent:
        ApiClient(tmp_path / "run" / "assay.sock").status()
    assert "start it with `assay serve`" in silent.value.hint


def test_a_daemon_that_starts_is_not_said_to_be_stopped(tmp_path: Path) -> None:
    with data_lock(tmp_path), pytest.raises(DaemonNotRunning, match=r"does not listen yet: .*starts or ends") as early:
        ApiClient(tmp_path / "run" / "assay.sock").status()
    assert early.value.exit_code == 6


def test_a_daemon_that_is_slow_is_said_to_be_slow_and_a_stopped_one_to_be_stopped(tmp_path: Path) -> None:
    place = tmp_path / "run" / "assay.sock"
    with start_owner(tmp_path) as owner, socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(place))
        silent.listen()
        with pytest.raises(DaemonSilent, match="too busy") as slow:
            ApiClient(place, timeout_seconds=0.2).status()
        owner.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
        with pytest.raises(DaemonSilent, match="the daemon is stopped") as stopped:
            ApiClient(place, timeout_seconds=0.2).status()
        owner.send_signal(signal.SIGCONT)
        owner.kill()
    assert (slow.value.exit_code, stopped.value.exit_code) == (6, 3)
    assert f"kill -CONT {owner.pid}" in stopped.value.hint


def test_within_one_process_it_is_exclusive_too(tmp_path: Path) -> None:
    with data_lock(tmp_path), pytest.raises(DataLockedError), data_lock(tmp_path):
        pass


def test_a_child_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    with data_lock(tmp_path):
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    with child, data_lock(tmp_path):
        child.communicate()


def test_two_folders_have_two_owners(tmp_path: Path) -> None:
    with data_lock(tmp_path / "a"), data_lock(tmp_path / "b"):
        assert (tmp_path / "a" / "run" / "lock").exists()


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be used") as caught, data_lock(tmp_path / "file"):
        pass
    assert "--data" in caught.value.hint
