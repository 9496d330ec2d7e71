"""This machine's part of a cluster: Ray's processes, started and ended as one.

What always holds: nothing of Ray's listens anywhere but on the given address and on loopback; every connection needs
the token; no dashboard, no client server, no usage reports; one node for each folder. However it ends, with a word or
with kill -9, at the next start in the same folder no process of the last one is left and its files are gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from pydantic import BaseModel, ConfigDict, Field

from runtime.cluster import listening, token
from runtime.cluster.process_session import KILL_SECONDS, ProcessSession
from runtime.cluster.settings import HOST_VARIABLE, LOOPBACK, PORTS, Address, HostSettings, Interface
from runtime.errors import InfrastructureError, RefusedError
from runtime.settings import RuntimeSettings

SOCKET_PATH_BYTES = 107
SESSION_PATH_BYTES = 64
"""What Ray puts behind its folder's name, in the path of its longest socket."""
START_SECONDS = 60.0
TERM_SECONDS = 5.0
WORKER_PORTS = 16
"""The port after the last of Ray's own, counted from the first; what is left is for its worker processes."""


class NodeSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    head: bool
    """The first host, which the others join."""
    address: Address
    """ADDRESS:PORT of the head; of this machine when it is the head."""
    interface: Interface = LOOPBACK
    token: Path
    folder: Path
    """Belongs to this node alone. Its path must be short: Ray makes sockets in it."""
    name: str = ""
    """Of this host in the cluster; its address if empty."""
    runtime: RuntimeSettings
    object_store_mib: int = Field(80, ge=75)
    """Of /dev/shm; nothing large is kept there."""

    @property
    def first_port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def host(self) -> HostSettings:
        return HostSettings(name=self.name or self.interface, folder=self.folder, runtime=self.runtime)


class Node:
    """Context manager. `serve` returns when the node has ended or was asked to."""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self._stop = threading.Event()
        self._listener: listening.Listener | None = None
        self._lock: int | None = None

    def start(self) -> None:
        """Returns when this machine is in the cluster.

        Raises RefusedError without the token or where a socket cannot be kept to one address, InfrastructureError when
        Ray does not start.
        """
        settings = self.settings
        self._check()
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._take_the_folder()
        try:
            clear(settings.folder)
            if settings.head:
                token.make(settings.token)
            environ = token.ray_environment(
                os.environ,
                settings.token,
                **{HOST_VARIABLE: str(settings.folder / "host.json")},
                RAY_health_check_period_ms="1000",
                RAY_health_check_initial_delay_ms="1000",
                **({} if settings.head else token.QUICK),
            )
            (settings.folder / "host.json").write_text(settings.host.model_dump_json(), encoding="utf-8")
            (settings.folder / "node.json").write_text(settings.model_dump_json(), encoding="utf-8")
            with (settings.folder / "ray.log").open("wb") as output:
                self._listener = listening.start(
                    [sys.executable, "-I", "-m", "ray.scripts.scripts", "start", *_arguments(settings)],
                    ip_address(settings.interface),
                    environ=environ,
                    folder=settings.folder,
                    output=output,
                )
            ProcessSession.of(self._listener.process.pid).record(settings.folder / "processes")
            self._wait_until_ready(self._listener.process)
        except BaseException:
            self.stop()
            raise

    def serve(self, idle: Callable[[], None] = lambda: None) -> int:
        """Until `ask_to_stop`, until the host was drained, or until Ray ends; Ray's exit status, 0 if it was asked."""
        assert self._listener is not None, "serve comes after start"
        process = self._listener.process
        while not self._stop.wait(0.5):
            idle()
            if process.poll() is not None:
                return process.returncode or 1
            if self.settings.host.draining.exists() and not in_use(self.settings.folder):
                break
        return 0

    def ask_to_stop(self) -> None:
        """From any thread or a signal handler."""
        self._stop.set()

    def stop(self) -> None:
        """Ends every process of the node and removes its files. Nobody is asked: sessions here are lost."""
        if self._listener is not None:
            process = self._listener.process
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                process.terminate()
                process.wait(TERM_SECONDS)
        if self._lock is not None:
            clear(self.settings.folder)
        if self._listener is not None:
            self._listener.process.wait()
            self._listener.close()
            self._listener = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _check(self) -> None:
        settings = self.settings
        if importlib.util.find_spec("ray") is None:
            raise RefusedError("Ray is not installed", hint="pip install 'assay[ray]', the same version on every host")
        if settings.head and settings.address.rpartition(":")[0].strip("[]") != settings.interface:
            raise RefusedError(
                f"the head's address {settings.address} is not on this machine's interface {settings.interface}",
                hint="give the first host its own address as interface",
            )
        longest = SOCKET_PATH_BYTES - SESSION_PATH_BYTES - len("/r")
        if len(os.fsencode(settings.folder)) > longest:
            raise RefusedError(
                f"the path of {settings.folder} is too long for Ray's sockets",
                hint=f"choose a folder whose path has at most {longest} bytes",
            )

    def _take_the_folder(self) -> None:
        lock = os.open(self.settings.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise RefusedError(
                f"this machine is in a cluster already, from {self.settings.folder}",
                hint="`assay cluster leave` takes it out",
            ) from None
        os.truncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        self._lock = lock

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        log = self.settings.folder / "ray.log"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            said = log.read_bytes()
            if b"Ray runtime started" in said:
                return
            if process.poll() is not None:
                break
            time.sleep(0.05)
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        raise InfrastructureError(
            f"Ray did not start: {lines[-1].strip()[:300] if lines else 'it said nothing'}",
            hint=f"its output is in {log}; the head's address and the token have to be right, and its ports free",
        )


def _arguments(settings: NodeSettings) -> list[str]:
    first = settings.first_port
    where = (
        ["--head", f"--port={first}", "--include-dashboard=false", "--no-monitor"]
        if settings.head
        else [f"--address={settings.address}"]
    )
    return [
        "--block",
        *where,
        f"--node-name={settings.host.name}",
        f"--node-ip-address={settings.interface}",
        f"--node-manager-port={first + 1}",
        f"--object-manager-port={first + 2}",
        f"--runtime-env-agent-port={first + 3}",
        f"--dashboard-agent-grpc-port={first + 4}",
        f"--dashboard-agent-listen-port={first + 5}",
        f"--metrics-export-port={first + 6}",
        f"--min-worker-port={first + WORKER_PORTS}",
        f"--max-worker-port={first + PORTS - 1}",
        "--disable-usage-stats",
        "--include-log-monitor=false",
        "--num-cpus=1",
        f"--object-store-memory={settings.object_store_mib << 20}",
        f"--temp-dir={settings.folder / 'r'}",
    ]


def clear(folder: Path) -> None:
    """Ends what a node left in this folder and removes its files. Its caller holds the folder's lock."""
    ProcessSession.kill_recorded(folder / "processes")
    for name in ("processes", "draining", "in-use", "host.json", "node.json"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "r", ignore_errors=True)


def in_use(folder: Path) -> bool:
    """Whether a driver has an actor here."""
    try:
        with (folder / "in-use").open("rb") as file:
            return not _free(file)
    except FileNotFoundError:
        return False


def running(folder: Path) -> NodeSettings | None:
    """What the node of this folder was told; None where there is none."""
    try:
        with (folder / "lock").open("rb") as lock:
            return None if _free(lock) else NodeSettings.model_validate_json((folder / "node.json").read_bytes())
    except FileNotFoundError:  # never, or not yet
        return None


def leave(folder: Path, seconds: float) -> bool:
    """Has the node of this folder end once its sessions have, at the latest after that many seconds; False when there
    is none. Raises InfrastructureError when it does not end."""
    try:
        lock = (folder / "lock").open("r+b")
    except FileNotFoundError:
        return False
    with lock:
        if _free(lock):
            return False
        (folder / "draining").touch()
        if not _until_free(lock, seconds):
            os.kill(int(lock.read()), signal.SIGTERM)
            if not _until_free(lock, TERM_SECONDS + KILL_SECONDS):
                raise InfrastructureError("this machine does not leave the cluster", hint="see its log")
    return True


def _until_free(lock: BinaryIO, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not _free(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _free(lock: BinaryIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    fcntl.flock(lock, fcntl.LOCK_UN)
    return True


def main() -> int:
    """Reads settings from standard input and is a node until a signal ends it."""
    node = Node(NodeSettings.model_validate_json(sys.stdin.buffer.read()))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: node.ask_to_stop())
    with node:
        print("ready", flush=True)
        return node.serve()


if __name__ == "__main__":
    raise SystemExit(main())
