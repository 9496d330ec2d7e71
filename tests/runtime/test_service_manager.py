"""A service manager is told what is true, and nobody else speaks for the process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
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


def held(environ: dict[str, str], *pairs: socket.socket) -> list[str]:
    """What a process that was given these from descriptor 3 on finds: their names; what is left for its children."""
    code = (
        "import os\nfrom runtime.service_manager import held_sockets\n"
        "for name, value in os.environ.items():\n"
        "    if value == 'mine': os.environ[name] = str(os.getpid())\n"
        "for one in held_sockets(): print(one.getsockname(), os.get_inheritable(one.fileno()))\n"
        "print(sorted(name for name in os.environ if name.startswith('LISTEN')))\n"
    )

    def place() -> None:
        for number, one in enumerate(pairs):
            os.dup2(one.fileno(), 3 + number)

    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environ,
        cwd=Path(__file__).parents[2],
        pass_fds=range(3, 3 + len(pairs)),
        preexec_fn=place,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ran.stdout.splitlines()


def test_sockets_that_it_holds_are_taken_and_no_child_gets_them(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        one.bind(str(tmp_path / "one"))
        two.bind(str(tmp_path / "two"))
        environ = {"LISTEN_PID": "mine", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "a:b"}
        assert held(environ, one, two) == [f"{tmp_path}/one False", f"{tmp_path}/two False", "[]"]


@pytest.mark.parametrize(
    "environ",
    [{}, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}, {"LISTEN_FDS": "1"}, {"LISTEN_PID": "mine", "LISTEN_FDS": "x"}],
)
def test_sockets_for_another_process_are_none_of_its_own(environ: dict[str, str]) -> None:
    assert held(environ) == ["[]"]
