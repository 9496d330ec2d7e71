"""Starting point of a session: nothing, another session's history, or a snapshot of its sandbox.

Invariants: a snapshot taken for a fork is forgotten as soon as every session that starts there has started, or ended
before, and no undo point keeps it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from runtime.errors import BadRequestError, LimitError, SandboxError
from runtime.sandbox import SnapshotId, Tier
from runtime.sessions.files import checked_path
from runtime.sessions.outcomes import Past

PAGE_BYTES = 4_096
CHANCE_BYTES = 32


class Origin:
    """Snapshot kept for a number of sessions that still have to start from it."""

    def __init__(self, snapshot: SnapshotId, sessions: int, forget: Callable[[SnapshotId], None]) -> None:
        self.snapshot = snapshot
        self._sessions, self._forget = sessions, forget

    def share(self, sessions: int) -> None:
        """Adds further sessions that have to start from the snapshot."""
        self._sessions += sessions

    def release(self) -> None:
        """Removes one session; forgets the snapshot when none is left to start from it."""
        self._sessions -= 1
        if self._sessions == 0:
            self._forget(self.snapshot)


class NewFile(NamedTuple):
    name: str
    data: bytes


def new_files(files: Mapping[str, bytes], work_mib: int) -> tuple[NewFile, ...]:
    """Returns a session's files, sorted. Raises BadRequestError for an invalid name, LimitError for too much data."""
    for name in files:
        checked_path(f"/work/{name}")
        if "/" in name:
            raise BadRequestError(f"{name[:80]!r} is not a plain file name in /work")
    pages = sum(-(-len(data) // PAGE_BYTES) for data in files.values())
    if pages * PAGE_BYTES >= work_mib << 20:
        raise LimitError(
            f"{pages * PAGE_BYTES >> 20} MiB of files do not fit into /work, which has {work_mib} MiB",
            hint="Give fewer or smaller files, or raise sandbox.work_mib.",
        )
    return tuple(NewFile(name, bytes(files[name])) for name in sorted(files))


class Seed(NamedTuple):
    tier: Tier
    preload: tuple[str, ...] = ()
    history: tuple[Past, ...] = ()
    origin: Origin | None = None
    files: tuple[NewFile, ...] = ()
    """Initial content of /work in a fresh sandbox."""
    chance: bytes = b""
    """Random seed after the history; empty means the default of every session."""

    def times(self, n: int) -> list[Seed]:
        """Returns starting points for `n` sessions with other random numbers; snapshots are reseeded on restore."""
        if self.origin is not None:
            self.origin.share(n)
            return [self] * n
        return [self._replace(chance=os.urandom(CHANCE_BYTES)) for _ in range(n)]

    def release(self) -> None:
        """Gives up this starting point: its snapshot, if any, is needed by one session less."""
        if self.origin is not None:
            self.origin.release()

    def at(
        self, taken: SnapshotId | SandboxError, n: int, forget: Callable[[SnapshotId], None]
    ) -> list[Seed] | SandboxError:
        """Returns `n` copies of this starting point placed at a snapshot, for `n` sessions. If taking the snapshot
        failed, returns that error."""
        if isinstance(taken, SandboxError):
            return taken
        origin = Origin(taken, n, forget)
        return [self._replace(origin=origin)] * n


class Before:
    """Undo point: state of a session before a call. At most one is kept, with its snapshot, until it is dropped."""

    def __init__(self) -> None:
        self._taken: Seed | SandboxError | None = None

    def keep(self, taken: Seed | SandboxError) -> None:
        """Replaces the undo point by a starting point with a share of its snapshot, or by the error instead."""
        self.give_up()
        self._taken = taken

    def give_up(self) -> None:
        taken, self._taken = self._taken, None
        if isinstance(taken, Seed):
            taken.release()

    def seeds(self, n: int) -> list[Seed] | SandboxError:
        """Returns starting points for `n` sessions at the undo point, or the error that prevented one."""
        if isinstance(self._taken, Seed):
            return self._taken.times(n)
        return self._taken or BadRequestError("no state was kept before a call of this session")
