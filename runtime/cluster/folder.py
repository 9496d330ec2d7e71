"""Folder of a node: its lock, leftovers of a dead node, and requests to leave.

Invariants: one node per folder, by a lock that the kernel releases with its process; only files that nodes create are
removed.

Finds and kills all processes started by one process, by their common session (setsid).

Invariants: only this user's processes of that very session are killed: the kernel does not reuse a session id while one
of its processes lives, and a record of another boot or leader is ignored. Processes that opened their own session are
not included.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from runtime.backends.lease import process_status
from runtime.cluster.settings import DRAINING, IN_USE
from runtime.errors import InfrastructureError, RefusedError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
KILL_SECONDS = 60.0


class SessionProcess(NamedTuple):
    pid: int
    state: str
    session: int
    started: int
    """Start time, in clock ticks since boot."""


@dataclass(frozen=True)
class ProcessSession:
    leader: int
    started: int
    boot: str

    @classmethod
    def of(cls, leader: int) -> ProcessSession:
        """Returns the Unix process session led by a process. Raises ProcessLookupError if it is gone."""
        found = _process(leader)
        if found is None or found.session != leader:
            raise ProcessLookupError(f"process {leader} is not a session leader")
        return cls(leader, found.started, BOOT_ID.read_text().strip())

    def record(self, path: Path) -> None:
        path.write_text(f"{self.leader} {self.started} {self.boot}\n", encoding="ascii")

    @classmethod
    def kill_recorded(cls, path: Path) -> None:
        """Kills all processes of the Unix session recorded in a file. Raises InfrastructureError if it does not end."""
        try:
            leader, started, boot = path.read_text(encoding="ascii").split()
        except (FileNotFoundError, ValueError):  # never written completely: then nothing was started
            return
        cls(int(leader), int(started), boot).kill()

    def kill(self) -> None:
        if self.boot != BOOT_ID.read_text().strip():
            return
        leader = _process(self.leader)
        if leader is not None and (leader.started != self.started or leader.session != self.leader):
            return  # the pid was reused, so nothing of the session is left
        deadline = time.monotonic() + KILL_SECONDS
        while members := [process for process in self.members() if process.state not in "ZX"]:
            for process in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise InfrastructureError(
                    f"process {members[0].pid} of the cluster cannot be ended", hint="inspect it with ps"
                )
            time.sleep(0.02)

    def members(self) -> Iterator[SessionProcess]:
        """Yields this user's processes in the Unix session, alive or not yet reaped."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    if entry.stat().st_uid == os.geteuid() or os.geteuid() == 0:
                        found = _process(int(entry.name))
                        if found is not None and found.session == self.leader:
                            yield found


def _process(pid: int) -> SessionProcess | None:
    status = process_status(pid)
    return SessionProcess(pid, status[0], int(status[3]), int(status[19])) if status else None


STOP_SECONDS = 10.0 + KILL_SECONDS
"""Time within which a node ends after SIGTERM, in seconds."""
LOCK, PROCESSES, HOST, NODE, RAY, LOG = "lock", "processes", "host.json", "node.json", "r", "ray.log"


def take(folder: Path) -> int:
    """Takes the lock of a node's folder and returns its descriptor; the holder is the node. RefusedError if held."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RefusedError(
            f"this machine is already in a cluster, from {folder}", hint="run `assay cluster leave` first"
        ) from None
    os.truncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    return lock


def end(folder: Path) -> None:
    """Ends a node's running Ray processes and removes their files. The caller holds the folder's lock."""
    ProcessSession.kill_recorded(folder / PROCESSES)
    for name in (PROCESSES, IN_USE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / RAY, ignore_errors=True)


def clear(folder: Path) -> None:
    """Ends a node's Ray processes and removes all its files except the log. The caller holds the folder's lock."""
    end(folder)
    for name in (DRAINING, HOST, NODE):
        (folder / name).unlink(missing_ok=True)


def in_use(folder: Path) -> bool:
    """True if a driver has an actor on this node."""
    try:
        with (folder / IN_USE).open("rb") as file:
            return not _free(file)
    except FileNotFoundError:
        return False


def node_settings(folder: Path) -> bytes | None:
    """Returns the settings of the cluster node that runs in this folder; None without one."""
    try:
        with (folder / LOCK).open("rb") as lock:
            return None if _free(lock) else (folder / NODE).read_bytes()
    except FileNotFoundError:  # never, or not yet
        return None


def leave(folder: Path, seconds: float) -> bool:
    """Ends this folder's cluster node once its sessions have ended, at the latest after `seconds`; False if there is
    none. Raises InfrastructureError if it does not end."""
    try:
        lock = (folder / LOCK).open("rb")
    except FileNotFoundError:
        return False
    with lock:
        if _free(lock):
            return False
        (folder / DRAINING).touch()
        if not _until_free(lock, seconds):
            os.kill(int(lock.read()), signal.SIGTERM)
            if not _until_free(lock, STOP_SECONDS):
                raise InfrastructureError("this machine does not leave the cluster", hint="see its node's log")
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
