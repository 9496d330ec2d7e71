"""Finds and kills all processes started by one process, by their common session (setsid).

Invariants: only this user's processes of that very session are killed: the kernel does not reuse a session id while one
of its processes lives, and a record of another boot or leader is ignored. Processes that opened their own session are
not included.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runtime.backends.lease import process_status
from runtime.errors import InfrastructureError

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
