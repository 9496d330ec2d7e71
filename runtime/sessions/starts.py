"""Creates the pool's workers from sandboxes of the broker, and ends them when the broker ends.

Invariants: every live worker is known here, and each is notified once that its broker is gone. Called from the reactor
only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache, partial

from runtime.broker_api import BrokerApi, Handle, SnapshotCopy, Termination, Ticket
from runtime.errors import InfrastructureError, SandboxError
from runtime.profile import Mode, PackageSet, Profile
from runtime.reactor import Reactor
from runtime.sandbox import Limits, Priority
from runtime.sessions.outcomes import LossCause
from runtime.sessions.profiles import profile
from runtime.sessions.worker import SHARED_WIDTH, Worker
from runtime.settings import RuntimeSettings

PROFILES = 256
Started = Callable[[Worker | SandboxError], None]


class SessionStarts:
    def __init__(
        self, reactor: Reactor, launcher: BrokerApi, settings: RuntimeSettings, *, ended: Callable[[Worker], None]
    ) -> None:
        self._reactor, self._launcher, self._settings, self._ended = reactor, launcher, settings, ended
        self._width = {"shared": SHARED_WIDTH, "process": max(2, os.cpu_count() or 1), "sandbox": 1}
        self._alive: set[Worker] = set()
        self._lost: set[Worker] = set()
        """Killed workers that are not yet known to be gone."""
        self._closed = False
        self._profile = lru_cache(PROFILES)(partial(profile, settings=settings))
        """Cached: its code is cold when somebody waits for a sandbox."""
        self.started = self.killed = 0

    def profile(
        self,
        mode: Mode,
        preload: tuple[str, ...] = (),
        limits: Limits | None = None,
        *,
        userland: bool = False,
        packages: PackageSet | None = None,
    ) -> Profile:
        """Returns the resource profile for a fresh sandbox of this pool; from any thread."""
        return self._profile(mode, preload, limits or self._settings.limits, userland=userland, packages=packages)

    def launch(
        self,
        wanted: Profile | SnapshotCopy,
        *,
        on_ready: Started,
        caller: str = "",
        priority: Priority,
        reply_bytes: int = 0,
    ) -> Ticket:
        return self._launcher.launch(
            wanted, caller=caller, priority=priority, on_ready=self._worker(on_ready, reply_bytes)
        )

    def broker_died(self) -> None:
        for worker in [*self._alive, *self._lost]:
            worker.lose(LossCause.BROKER)

    def close(self, done: Callable[[], None]) -> None:
        """Ends every sandbox of the pool; calls back when nothing runs in any of them."""
        self._closed = True
        for worker in list(self._alive):
            worker.lose(LossCause.DIED)
        left = set(self._lost)

        def gone(worker: Worker, _termination: Termination) -> None:
            left.discard(worker)
            if not left:
                done()

        for worker in list(left):
            worker.when_ended(partial(gone, worker))
        if not left:
            done()

    def _worker(self, on_ready: Started, reply_bytes: int) -> Callable[[Handle | SandboxError], None]:
        def handed_over(handle: Handle | SandboxError) -> None:
            if isinstance(handle, SandboxError):
                on_ready(handle)
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
                worker.lose(LossCause.DIED)
                on_ready(InfrastructureError("the pool of sessions was closed"))
            else:
                on_ready(worker)

        return handed_over

    def _has_ended(self, worker: Worker) -> None:
        self._alive.discard(worker)
        self._lost.add(worker)
        self.killed += 1
        worker.when_ended(lambda _termination: self._lost.discard(worker))
        self._ended(worker)
