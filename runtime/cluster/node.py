"""This machine's node in a cluster: Ray's processes, started and ended as one.

Invariants: Ray listens only on the given address and loopback; every connection needs the token; no dashboard, no
client server, no usage reports; one node per folder. Ray processes that end unexpectedly are restarted. However a node
ended, even by kill -9, at the next start in the same folder its processes are killed and its files removed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from runtime.cluster import folder, listening
from runtime.cluster.folder import ProcessSession
from runtime.cluster.settings import HOST_VARIABLE, QUICK, HostSettings, make_token, ray_environment
from runtime.errors import InfrastructureError, RefusedError
from runtime.extra_packages import install_command
from runtime.model import FrozenModel
from runtime.settings import LOOPBACK, PORTS, Address, Interface, RuntimeSettings, require_one_network
from runtime.shutdown import Shutdown

SOCKET_PATH_BYTES = 107
SESSION_PATH_BYTES = 64
"""Bytes that Ray adds to its folder's path for its longest socket."""
START_SECONDS = 180.0
TERM_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Shortest and longest delay before a restart, in seconds."""
READY = "ready"
WORKER_PORTS = 16
"""Number of ports reserved for Ray's own services; the remaining ports are for its workers."""


class NodeSettings(FrozenModel):
    head: bool
    """True for the first host, which the others join."""
    address: Address
    """ADDRESS:PORT of the head; this machine's own if it is the head."""
    interface: Interface = LOOPBACK
    token: Path
    folder: Path
    """Folder used by this node alone. Its path must be short, because Ray creates sockets in it."""
    name: str = ""
    """Name of this host in the cluster; empty means its address."""
    runtime: RuntimeSettings
    object_store_mib: int = Field(80, ge=75)
    """Size in /dev/shm, in MiB; nothing large is stored there."""

    @model_validator(mode="after")
    def _one_network(self) -> Self:
        require_one_network(self.address, self.interface)
        return self

    @property
    def first_port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def host(self) -> HostSettings:
        return HostSettings(name=self.name or self.interface, folder=self.folder, runtime=self.runtime)


@contextlib.contextmanager
def _in_cluster(settings: NodeSettings, stop: Shutdown) -> Iterator[subprocess.Popen[bytes]]:
    """Runs Ray's processes for the block, in a folder whose lock the caller holds.

    The block starts once this machine is in the cluster, or a stop was requested; its end kills every process and
    removes Ray's files. Sessions here are lost without warning. Raises RefusedError without the token or if sockets
    cannot be confined to one address, InfrastructureError if Ray does not start.
    """
    state_folder = settings.folder
    environ = ray_environment(
        os.environ,
        settings.token,
        **{HOST_VARIABLE: str(state_folder / folder.HOST)},
        RAY_health_check_period_ms="1000",
        RAY_health_check_initial_delay_ms="1000",
        RAY_kill_child_processes_on_worker_exit="false",  # an actor's private broker ends with it, in order
        **({} if settings.head else QUICK),
    )
    (state_folder / folder.HOST).write_text(settings.host.model_dump_json(), encoding="utf-8")
    with (state_folder / folder.LOG).open("wb") as output:
        listener = listening.start(
            [sys.executable, "-I", "-m", "ray.scripts.scripts", "start", *_arguments(settings)],
            ip_address(settings.interface),
            environ=environ,
            folder=state_folder,
            output=output,
        )
    try:
        ProcessSession.of(listener.process.pid).record(state_folder / folder.PROCESSES)
        _wait_until_ready(listener.process, state_folder / folder.LOG, stop)
        yield listener.process
    finally:
        listener.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            listener.process.wait(TERM_SECONDS)
        folder.end(state_folder)
        listener.kill()


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path, stop: Shutdown) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and not stop.wait(0.05):
        if b"Ray runtime started" in log.read_bytes():
            return
        if process.poll() is not None:
            break
    if stop.is_set():
        return
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    raise InfrastructureError(
        f"Ray did not start: {lines[-1].strip()[:300] if lines else 'no output'}",
        hint=f"see {log}; check the head's address, the token, and that its ports are free",
    )


def _serve(settings: NodeSettings, process: subprocess.Popen[bytes], stop: Shutdown) -> bool:
    """Watches a cluster node until stopped or drained (True), or until Ray ends by itself (False)."""
    while not stop.wait(0.5):
        if process.poll() is not None:
            return False
        if settings.host.draining.exists() and not folder.in_use(settings.folder):
            break
    return True


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
        f"--temp-dir={settings.folder / folder.RAY}",
    ]


def run_node(settings: NodeSettings, stop: Shutdown, notify: Callable[[str], None]) -> None:
    """Keeps this machine in the cluster until stopped or drained; restarts Ray when it ends by itself. `notify` gets
    READY each time the machine has joined, and otherwise the reason. Raises the errors of `_in_cluster` if the first
    start fails, and RefusedError at any time."""
    _check(settings)
    lock = folder.take(settings.folder)
    try:
        folder.clear(settings.folder)
        if settings.head:
            make_token(settings.token)
        (settings.folder / folder.NODE).write_text(settings.model_dump_json(), encoding="utf-8")
        _live(settings, stop, notify)
    finally:
        folder.clear(settings.folder)
        os.close(lock)


def _live(settings: NodeSettings, stop: Shutdown, notify: Callable[[str], None]) -> None:
    pause, ever = FIRST_PAUSE, False
    while not stop.is_set() and not settings.host.draining.exists():
        try:
            with _in_cluster(settings, stop) as process:
                ever, pause = True, FIRST_PAUSE
                notify(READY)
                if _serve(settings, process, stop):
                    return
                notify("Ray ended by itself and is restarted")
        except InfrastructureError as error:
            if not ever:
                raise
            notify(str(error))
        stop.wait(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def _check(settings: NodeSettings) -> None:
    if importlib.util.find_spec("ray") is None:
        raise RefusedError("Ray is not installed", hint=f"{install_command('ray')}, the same version on every host")
    if settings.head and settings.address.rpartition(":")[0] != settings.interface:
        raise RefusedError(
            f"the head's address {settings.address} is not on this machine's interface {settings.interface}",
            hint="set the first host's interface to its own address",
        )
    longest = SOCKET_PATH_BYTES - SESSION_PATH_BYTES - len("/r")
    if len(os.fsencode(settings.folder)) > longest:
        raise RefusedError(
            f"{settings.folder}: path too long for Ray's sockets",
            hint=f"choose a folder with a path of at most {longest} bytes",
        )
