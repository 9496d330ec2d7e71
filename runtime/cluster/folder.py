"""Folder of a node: its lock, leftovers of a dead node, and requests to leave.

Invariants: one node per folder, by a lock that the kernel releases with its process; only files that nodes create are
removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from pathlib import Path
from typing import BinaryIO

from runtime.cluster.process_session import KILL_SECONDS, ProcessSession
from runtime.cluster.settings import DRAINING, IN_USE
from runtime.errors import InfrastructureError, RefusedError

STOP_SECONDS = 10.0 + KILL_SECONDS
"""Time within which a node ends after SIGTERM, in seconds."""
LOCK, PROCESSES, HOST, NODE, RAY, LOG = "lock", "processes", "host.json", "node.json", "r", "ray.log"


def take(folder: Path) -> int:
    """Takes the lock of a cluster node's folder and returns its descriptor; the holder is the node. Raises RefusedError
    if it is held."""
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
