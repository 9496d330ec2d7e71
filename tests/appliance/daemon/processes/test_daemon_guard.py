"""A broker that dies is started again with the words that it was first told; one whose daemon is gone ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_kit import until

from appliance.daemon.processes import broker_guard

BROKER = """
import os, signal, sys, time
folder, mode = sys.argv[1], sys.argv[2]
attempt = len(os.listdir(folder))
told = sys.stdin.read()
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(f"{folder}/{attempt}.new", "w") as file:
    file.write(f"{os.getpid()} {told}")
os.rename(f"{folder}/{attempt}.new", f"{folder}/{attempt}")
if mode == "cannot":
    sys.exit(2)
if mode == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(1000)
"""


class Guard:
    def __init__(self, folder: Path, mode: str) -> None:
        self.folder = folder
        program = [sys.executable, "-I", "-S", "-c", BROKER, str(folder), mode]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(broker_guard.__file__), *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def tell(self, packet: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(packet)
        self.process.stdin.flush()

    def hear(self) -> dict[str, float | None]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def broker(self, number: int) -> int:
        """The process number of the broker that was started as the `number`th."""
        until((self.folder / str(number)).exists)
        return int((self.folder / str(number)).read_text().split()[0])

    def hang_up(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=120)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[type[Guard]]:
    started: list[Guard] = []

    def begin(mode: str) -> Guard:
        started.append(Guard(tmp_path, mode))
        started[-1].tell(b'{"a": 1}\n')
        return started[-1]

    yield begin  # type: ignore[misc]
    for guard in started:
        guard.process.kill()
        with guard.process:
            guard.process.wait(timeout=120)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_it_ends_with_the_daemon_and_its_broker_before_it(start) -> None:
    guard = start("stays")
    broker = guard.broker(0)
    assert guard.hang_up() == 0
    assert gone(broker)


def capabilities(pid: int) -> set[str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split()[1] for line in lines if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapInh"))}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
def test_guard_and_broker_have_only_the_capabilities_that_sandboxes_take(start) -> None:
    guard = start("waits")
    kept = f"{sum(1 << number for number in broker_guard.KEPT.values()):016x}"
    broker = guard.broker(0)
    for pid in (guard.process.pid, broker):
        assert capabilities(pid) == {kept, "0" * 16}
        effective = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "CapEff" in line]
        assert effective == [f"CapEff:\t{kept}"]
    unit = (Path(__file__).parents[4] / "systemd" / "assay-broker.service").read_text()
    assert set(re.findall(r"CAP_\w+", unit)) == set(broker_guard.KEPT)


def test_a_broker_that_is_killed_comes_back_and_is_told_the_same(start, tmp_path) -> None:
    guard = start("stays")
    os.kill(guard.broker(0), signal.SIGKILL)
    end = guard.hear()
    assert (end["code"], end["retry_seconds"]) == (-signal.SIGKILL, 0.0)
    assert not gone(guard.broker(1))
    assert (tmp_path / "1").read_text().partition(" ")[2] == '{"a": 1}\n'


def test_what_the_daemon_says_later_changes_nothing(start, tmp_path) -> None:
    guard = start("stays")
    broker = guard.broker(0)
    guard.tell(b'{"runsc": "/tmp/mine"}\n' * 1000)
    time.sleep(0.2)
    assert not gone(broker)
    os.kill(broker, signal.SIGKILL)
    guard.hear()
    guard.tell(b'{"runsc": "/tmp/mine"}\n')
    guard.broker(1)
    assert "mine" not in (tmp_path / "1").read_text()


def test_pauses_grow_while_it_keeps_dying_and_hanging_up_in_one_ends_it_at_once(start, tmp_path) -> None:
    guard = start("dies")
    pauses = [guard.hear()["retry_seconds"] for _ in range(5)]
    assert pauses == [0.0, 1.0, 2.0, 4.0, 8.0]
    assert guard.hang_up() == 0
    assert not (tmp_path / "5").exists(), "it did not wait for the pause to end"


def test_a_broker_that_cannot_work_as_it_was_told_is_not_started_again(start, tmp_path) -> None:
    guard = start("cannot")
    assert guard.hear() == {"code": 2, "seconds": pytest.approx(0, abs=60), "retry_seconds": None}
    time.sleep(1.5)
    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    assert guard.process.poll() is None
    assert guard.hang_up() == 0


def test_a_broker_that_ignores_sigterm_is_killed_after_the_grace(start) -> None:
    guard = start("deaf")
    broker = guard.broker(0)
    started = time.monotonic()
    guard.hang_up()
    assert broker_guard.GRACE_SECONDS - 0.5 < time.monotonic() - started < broker_guard.GRACE_SECONDS + 40
    assert gone(broker)


def test_kill_9_of_the_guard_takes_the_broker_with_it(start) -> None:
    guard = start("stays")
    broker = guard.broker(0)
    guard.process.kill()
    until(lambda: gone(broker))


def test_nobody_to_tell_is_an_end_and_no_traceback(tmp_path) -> None:
    guard = Guard(tmp_path, "dies")
    assert guard.process.stdout is not None
    guard.process.stdout.close()
    guard.tell(b"{}\n")
    assert guard.process.stdin is not None
    assert guard.process.wait(timeout=120) == 0
    guard.process.stdin.close()


def test_it_ends_when_it_is_told_nothing(tmp_path) -> None:
    guard = Guard(tmp_path, "stays")
    assert guard.hang_up() == 0
    assert list(tmp_path.iterdir()) == []
