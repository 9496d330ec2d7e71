"""How a sandbox that the broker hands over becomes a worker of the pool; and what ends when the broker does.

What always holds: every worker that is alive is known here, and each is told once that its broker is gone. Called from
the reactor only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from runtime.errors import InfrastructureError, SandboxError
from runtime.launcher import Fate, Handle, Launcher, Ticket
from runtime.profile import Mode, Profile
from runtime.reactor import Reactor
from runtime.sandbox import Limits, Priority, SnapshotId
from runtime.sessions.endings import Lost
from runtime.sessions.profiles import profile
from runtime.sessions.worker import SHARED_WIDTH, Worker
from runtime.settings import RuntimeSettings

PROFILES = 256
Started = Callable[[Worker | SandboxError], None]


class Starts:
    def __init__(
        self, reactor: Reactor, launcher: Launcher, settings: RuntimeSettings, *, ended: Callable[[Worker], None]
    ) -> None:
        self._reactor, self._launcher, self._settings, self._ended = reactor, launcher, settings, ended
        self._width = {"shared": SHARED_WIDTH, "process": max(2, os.cpu_count() or 1), "sandbox": 1}
        self._alive: set[Worker] = set()
        self._lost: set[Worker] = set()
        """Killed, and not yet known to be gone."""
        self._closed = False
        self._profiles: dict[tuple[Mode, tuple[str, ...], Limits | None], Profile] = {}
        """Those worked out already: the code for it is cold when somebody waits for a sandbox."""
        self.started = self.killed = 0

    def launch(
        self,
        mode: Mode,
        *,
        given: Started,
        preload: tuple[str, ...] = (),
        limits: Limits | None = None,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
        reply_bytes: int = 0,
    ) -> Ticket:
        key = (mode, preload, limits)
        wanted = self._profiles.get(key)
        if wanted is None:
            if len(self._profiles) >= PROFILES:
                self._profiles.clear()
            wanted = self._profiles[key] = profile(mode, preload, limits or self._settings.limits, self._settings)
        return self._launcher.launch(wanted, caller=caller, priority=priority, given=self._worker(given, reply_bytes))

    def restore(
        self,
        snapshot: SnapshotId,
        *,
        reseed: bool,
        given: Started,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
        reply_bytes: int = 0,
    ) -> Ticket:
        return self._launcher.restore(
            snapshot, reseed=reseed, caller=caller, priority=priority, given=self._worker(given, reply_bytes)
        )

    def broker_died(self) -> None:
        for worker in [*self._alive, *self._lost]:
            worker.lose(Lost.BROKER)

    def close(self, done: Callable[[], None]) -> None:
        """Ends every sandbox; calls back when nothing runs in any of them."""
        self._closed = True
        for worker in list(self._alive):
            worker.lose(Lost.DIED)
        left = set(self._lost)

        def gone(worker: Worker, _fate: Fate) -> None:
            left.discard(worker)
            if not left:
                done()

        for worker in list(left):
            worker.when_ended(partial(gone, worker))
        if not left:
            done()

    def _worker(self, given: Started, reply_bytes: int) -> Callable[[Handle | SandboxError], None]:
        def handed_over(handle: Handle | SandboxError) -> None:
            if isinstance(handle, SandboxError):
                given(handle)
                return
            self.started += 1
            worker = Worker(
                self._reactor,
                self._launcher,
                handle,
                ended=self._has_ended,
                width=self._width[handle.profile.mode],
                reply_bytes=reply_bytes,
            )
            self._alive.add(worker)
            if self._closed:
                worker.lose(Lost.DIED)
                given(InfrastructureError("the pool of sessions was closed"))
            else:
                given(worker)

        return handed_over

    def _has_ended(self, worker: Worker) -> None:
        self._alive.discard(worker)
        self._lost.add(worker)
        self.killed += 1
        worker.when_ended(lambda _fate: self._lost.discard(worker))
        self._ended(worker)
