"""Says what a session begins with: nothing, another one's history, or a snapshot of another one's sandbox.

What always holds: a snapshot that was taken for a fork is forgotten as soon as every session that begins there has
begun, or has ended before it did, and nobody keeps it to go back to.
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
    """Holds a snapshot for as many sessions as still have to begin there."""

    def __init__(self, snapshot: SnapshotId, sessions: int, forget: Callable[[SnapshotId], None]) -> None:
        self.snapshot = snapshot
        self._sessions, self._forget = sessions, forget

    def share(self, sessions: int) -> None:
        """Adds that many more."""
        self._sessions += sessions

    def release(self) -> None:
        """Takes one away."""
        self._sessions -= 1
        if self._sessions == 0:
            self._forget(self.snapshot)


class NewFile(NamedTuple):
    name: str
    data: bytes


def new_files(files: Mapping[str, bytes], work_mib: int) -> tuple[NewFile, ...]:
    """Puts them in the order of their names. Raises BadRequestError for a name that is none, LimitError for too
    much."""
    for name in files:
        checked_path(f"/work/{name}")
        if "/" in name:
            raise BadRequestError(f"{name[:80]!r} is no plain name of a file in /work")
    pages = sum(-(-len(data) // PAGE_BYTES) for data in files.values())
    if pages * PAGE_BYTES >= work_mib << 20:
        raise LimitError(
            f"the files of {pages * PAGE_BYTES >> 20} MiB leave no room in /work, which has {work_mib} MiB",
            hint="Give fewer or smaller files, or raise work_mib in the settings of sandboxes.",
        )
    return tuple(NewFile(name, bytes(files[name])) for name in sorted(files))


class Seed(NamedTuple):
    tier: Tier
    preload: tuple[str, ...] = ()
    history: tuple[Past, ...] = ()
    origin: Origin | None = None
    files: tuple[NewFile, ...] = ()
    """What /work begins with in a sandbox that is fresh."""
    chance: bytes = b""
    """What its random numbers come from after the history; empty: as every session begins."""

    def times(self, n: int) -> list[Seed]:
        """Gives it to so many sessions, which all begin like this but for their random numbers; where they begin at a
        snapshot, whoever restores it sees to these."""
        if self.origin is not None:
            self.origin.share(n)
            return [self] * n
        return [self._replace(chance=os.urandom(CHANCE_BYTES)) for _ in range(n)]

    def release(self) -> None:
        """Takes one away that begins here."""
        if self.origin is not None:
            self.origin.release()

    def at(
        self, taken: SnapshotId | SandboxError, n: int, forget: Callable[[SnapshotId], None]
    ) -> list[Seed] | SandboxError:
        """Makes those of `n` sessions that begin at a snapshot, if there is one."""
        if isinstance(taken, SandboxError):
            return taken
        origin = Origin(taken, n, forget)
        return [self._replace(origin=origin)] * n


class Before:
    """Keeps the moment before a call. What always holds: of one moment at most, and a snapshot that it
    rests on is held until it is given up."""

    def __init__(self) -> None:
        self._taken: Seed | SandboxError | None = None

    def keep(self, taken: Seed | SandboxError) -> None:
        """Gives a seed with a share of its origin, or why there is none."""
        self.give_up()
        self._taken = taken

    def give_up(self) -> None:
        taken, self._taken = self._taken, None
        if isinstance(taken, Seed):
            taken.release()

    def seeds(self, n: int) -> list[Seed] | SandboxError:
        """Gives those of `n` sessions that begin then."""
        if isinstance(self._taken, Seed):
            return self._taken.times(n)
        return self._taken or BadRequestError("nothing was kept of this session before a call")
