"""Real daemons on data folders of their own, with short paths: a Unix socket's must stay below 100 bytes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import guest_roots as building
import pytest
from daemon_kit import ASSAY, clean_environ, run
from forked_commands import ForkedCommand, lent_fork_server

from appliance.client import ApiClient, DaemonNotRunning
from appliance.daemon.processes.fork_server import ForkServer

sys.path.append(str(Path(__file__).parent / "governance"))  # tests of other folders take what is built there


FEW_READY = {"ASSAY_SANDBOX__READY": "1"}
"""A ready sandbox that nobody takes costs a quarter of a processor's second, and a hundredth of a processor."""


@pytest.fixture
def data() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="assay-t-"))
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)  # a broker that ends takes its socket away by itself
    shutil.rmtree(folder, ignore_errors=True)


def lend_root(roots: Path, data: Path, environ: dict[str, str]) -> None:
    """Where a daemon's broker would build its own."""
    if "ASSAY_SANDBOX__BROKER" in environ:
        return  # it has none
    folder = environ.get("ASSAY_SANDBOX__FOLDER")
    if folder is None:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
    building.lend(roots, Path(folder) if folder is not None else data / "run")


class Daemon:
    """`assay serve` as a process; `program` replaces it by Python source for what it has no flag for."""

    def __init__(
        self,
        data: Path,
        *,
        program: str = "",
        command: str = "serve",
        environ: dict[str, str] | None = None,
        before: Sequence[str] = (),
        fresh: bool = False,
        lent: bool = False,
    ) -> None:
        """`before` is a command that becomes this one; `fresh`, that no module was imported before it began; `lent`,
        that its first process that forks workers is a fork of it."""
        self.data = data
        environ = clean_environ(data) | FEW_READY | (environ or {})
        self.process: subprocess.Popen[bytes] | ForkedCommand
        if before or fresh:
            line = [sys.executable, "-c", program] if program else [*ASSAY, command]
            self.process = subprocess.Popen(
                [*before, *line],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        else:
            self.process = ForkedCommand((command,), environ, program=program, merged=True, lent=lent)

    @property
    def socket(self) -> Path:
        return self.data / "run" / "assay.sock"

    def ready(self, seconds: float = 150.0) -> ApiClient:
        """A client, once the daemon answers."""
        api = ApiClient(self.socket, timeout_seconds=120.0)
        deadline = time.monotonic() + seconds
        while True:
            try:
                api.status()
            except DaemonNotRunning:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"the daemon is not there: {self.end()}")
                time.sleep(0.05)
            else:
                return api

    def end(self, number: int = signal.SIGTERM) -> str:
        """Sends the signal, waits, and returns everything that the daemon printed."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.communicate(timeout=120)[0].decode()


@pytest.fixture
def start(data: Path, guest_roots: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Daemon]]:
    """Starts daemons on `data` that use the standing one's broker, or have a `broker` of their own: with a guest root
    at hand unless it is to be `bare`. What still runs at the end of the test is killed."""
    started: list[Daemon] = []

    def begin(
        program: str = "",
        *,
        command: str = "serve",
        before: Sequence[str] = (),
        broker: bool = False,
        bare: bool = False,
        fresh: bool = False,
        lent: bool = False,
        **environ: str,
    ) -> Daemon:
        if not (broker or bare or any(name.startswith("ASSAY_SANDBOX__") for name in environ)):
            standing = request.getfixturevalue("standing")
            environ["ASSAY_SANDBOX__BROKER"] = str(standing.data / "run" / "broker.sock")
        if not bare:
            lend_root(guest_roots, data, environ)
        made = {"program": program, "command": command, "environ": environ, "before": before}
        started.append(Daemon(data, **made, fresh=fresh, lent=lent))
        return started[-1]

    yield begin
    for daemon in started:
        daemon.end(signal.SIGKILL)


@pytest.fixture
def lent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores in this process have their workers forked from what is loaded already. A test whose subject is how workers
    are started begins with `monkeypatch.undo()`."""
    monkeypatch.setattr(ForkServer, "begun", lent_fork_server)


@pytest.fixture(scope="package")
def standing(guest_roots: Path) -> Iterator[Daemon]:
    """One daemon for all tests that only ask something of it; it has what earlier ones left, and never a cycle."""
    folder = Path(tempfile.mkdtemp(prefix="assay-t-"))
    data = folder / "data"
    lend_root(guest_roots, data, {})
    daemon = Daemon(data)
    daemon.ready()
    yield daemon
    output = daemon.end()
    shutil.rmtree(folder, ignore_errors=True)
    assert "Traceback" not in output


@pytest.fixture
def ask(standing: Daemon):
    """Runs one command at the standing daemon."""
    return partial(run, standing.data)


@pytest.fixture
def assay(data: Path):
    """Runs one command on the test's own data folder."""
    return partial(run, data)
