"""A socket that the service manager holds outlives brokers: who connects while there is none waits, and is told why."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_kit import Settings

from runtime.broker import ask
from runtime.broker import messages as m
from runtime.errors import SandboxError
from runtime.settings import BrokerSettings

WAITS = 120.0
AS_SYSTEMD = """import os, sys
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
        made.bind(str(tmp_path / "sock"))
        made.listen()
        yield made


def started(settings: BrokerSettings, held: socket.socket, path: Path) -> subprocess.Popen[bytes]:
    """A broker as systemd starts it: with the socket as descriptor 3, and told so."""
    command = [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--socket", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-c", AS_SYSTEMD, *command],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[3],
        preexec_fn=lambda: os.dup2(held.fileno(), 3),
        cwd="/",
    )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(settings.model_dump_json().encode())
    process.stdin = None  # or `communicate` would flush it
    return process


def asked(path: Path) -> tuple[threading.Thread, list[m.BrokerWelcome | SandboxError]]:
    """Connects at once, and waits for an answer in the background."""
    answers: list[m.BrokerWelcome | SandboxError] = []

    def wait() -> None:
        try:
            answers.append(ask(path, WAITS))
        except SandboxError as error:
            answers.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, answers


def test_who_asks_while_there_is_no_broker_is_answered_by_the_next(
    make_settings: Settings, held: socket.socket, tmp_path: Path
) -> None:
    path, settings = tmp_path / "sock", make_settings(ready=0)
    for end in (signal.SIGKILL, signal.SIGTERM):
        thread, answers = asked(path)
        process = started(settings, held, path)
        thread.join()
        assert [answer.pid for answer in answers if isinstance(answer, m.BrokerWelcome)] == [process.pid]
        assert ask(path, WAITS).pid == process.pid
        process.send_signal(end)
        process.communicate(timeout=WAITS)
        assert path.is_socket(), "it is not the broker's to remove"


def test_who_waits_for_a_broker_that_cannot_start_is_told_why(
    make_settings: Settings, held: socket.socket, tmp_path: Path
) -> None:
    waiting = [asked(tmp_path / "sock") for _ in range(2)]
    process = started(make_settings(runsc="/bin/false", nsjail="/bin/false"), held, tmp_path / "sock")
    _, said = process.communicate(timeout=WAITS)
    assert process.returncode == 1
    for thread, answers in waiting:
        thread.join()
        assert str(answers[0]).encode() in said


@pytest.mark.parametrize("what", ["another path", "another kind"])
def test_another_socket_than_the_one_that_is_configured_is_refused(
    make_settings: Settings, held: socket.socket, tmp_path: Path, what: str
) -> None:
    with socket.socket(socket.AF_UNIX) as stream:
        stream.bind(str(tmp_path / "stream"))
        stream.listen()
        other = what == "another path"
        process = started(
            make_settings(ready=0), held if other else stream, tmp_path / ("elsewhere" if other else "stream")
        )
        _, said = process.communicate(timeout=WAITS)
    assert process.returncode == 1
    assert (b"Use the same path in the socket's unit" if other else b"ListenSequentialPacket=") in said
    assert not (tmp_path / "elsewhere").exists()
