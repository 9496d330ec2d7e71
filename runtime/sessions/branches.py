"""What a session begins with: nothing, another one's history, or a snapshot of another one's sandbox.

What always holds: a snapshot that was taken for a fork is forgotten as soon as every session that begins there has
begun, or has ended before it did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from runtime.errors import SandboxError
from runtime.launcher import Kept
from runtime.sandbox import SnapshotId, Tier
from runtime.sessions.endings import Past


class Origin:
    """A snapshot, for as many sessions as still have to begin there."""

    def __init__(self, snapshot: SnapshotId, sessions: int, forget: Callable[[SnapshotId], None]) -> None:
        self.snapshot = snapshot
        self._sessions, self._forget = sessions, forget

    def share(self, sessions: int) -> None:
        """That many more."""
        self._sessions += sessions

    def release(self) -> None:
        """One fewer."""
        self._sessions -= 1
        if self._sessions == 0:
            self._forget(self.snapshot)


class Seed(NamedTuple):
    tier: Tier
    preload: tuple[str, ...] = ()
    history: tuple[Past, ...] = ()
    origin: Origin | None = None

    def times(self, n: int) -> list[Seed]:
        """For so many sessions, which all begin like this."""
        if self.origin is not None:
            self.origin.share(n)
        return [self] * n

    def at(self, kept: Kept | SandboxError, n: int, forget: Callable[[SnapshotId], None]) -> list[Seed] | SandboxError:
        """For `n` sessions that begin at a snapshot, if there is one."""
        if isinstance(kept, SandboxError):
            return kept
        origin = Origin(kept.id, n, forget)
        return [self._replace(origin=origin)] * n
