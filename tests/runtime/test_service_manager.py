"""A service manager is told what is true, and nobody else speaks for the process."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from runtime.service_manager import ServiceManager


@pytest.fixture
def listening(tmp_path: Path) -> socket.socket:
    """A service manager's socket."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(str(tmp_path / "notify"))
    sock.settimeout(120)
    yield sock
    sock.close()


def test_news_are_one_datagram_each_and_a_status_is_one_line(listening, tmp_path) -> None:
    environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "3000000", "PATH": "/bin"}
    manager = ServiceManager.adopt(environ)
    assert (manager.seconds, environ) == (3.0, {"PATH": "/bin"}), "no child speaks for this process"
    manager.ready("serving\nWATCHDOG_USEC=0")
    manager.alive()
    manager.stopping()
    assert listening.recv(999) == b"READY=1\nSTATUS=serving WATCHDOG_USEC=0"
    assert listening.recv(999) == b"WATCHDOG=1"
    assert listening.recv(999).startswith(b"STOPPING=1")


def test_an_abstract_socket_is_spoken_to_as_well() -> None:
    name = f"assay-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{name}")
        sock.settimeout(120)
        ServiceManager(f"@{name}").alive()
        assert sock.recv(999) == b"WATCHDOG=1"


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "0"},
        {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "soon"},
        {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "9", "WATCHDOG_PID": "1"},
    ],
)
def test_without_a_service_manager_nothing_happens(environ: dict[str, str]) -> None:
    manager = ServiceManager.adopt(environ)
    assert manager.seconds is None
    manager.ready("x")
    manager.alive()
