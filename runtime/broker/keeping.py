"""Snapshots on behalf of connections: taken of their sandboxes, restored, kept restored ahead, forgotten.

What always holds: a snapshot is restored only for the user who took it, only once its bytes are known to be what was
written, and only by the very programs that took it; what a connection wanted kept ready ends with the connection.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

from runtime.backends.backend import Backend
from runtime.broker.boxes import Live
from runtime.broker.starts import Source
from runtime.broker.store import Snapshot, Store
from runtime.broker.supply import Supply
from runtime.errors import BadRequestError, RefusedError, SandboxError
from runtime.profile import Profile


class Keeping:
    """Connections are known by number and user; what it is asked for raises the errors of `runtime.errors`."""

    def __init__(self, store: Store, supply: Supply, backend_of: Callable[[Profile], Backend]) -> None:
        self._store, self._supply, self._backend_of = store, supply, backend_of
        self._prepared: dict[str, dict[int, int]] = defaultdict(dict)
        """Copies by snapshot and connection."""

    def take(
        self,
        live: Live,
        holder: int,
        uid: int,
        *,
        label: str,
        durable: bool,
        done: Callable[[Snapshot | SandboxError], None],
    ) -> None:
        """Freezes it into the store; it goes on, and the snapshot is what it comes from now."""
        if live.freezing or live.cause is not None:
            raise BadRequestError("a snapshot of this sandbox is being taken, or it has ended")
        begun = time.monotonic()
        wanted = self._store.begin(
            live.profile,
            live.backend.image_parts(live.profile),
            parent=live.parent,
            uid=uid,
            label=label,
            durable=durable,
            expected=int(self._supply.boxes.usage(live).memory_mib * 2**20),
        )

        def frozen(problem: SandboxError | None) -> None:
            if problem is None:
                self._store.finish(wanted, holder, kept)
            else:
                self._store.abandon(wanted)
                done(problem)

        def kept(snapshot: Snapshot | SandboxError) -> None:
            if isinstance(snapshot, Snapshot):
                now = time.monotonic()
                self._supply.spans.add("snapshot", now - begun, now)
                self._supply.counts["snapshots_taken"] += 1
                live.parent = snapshot.key
            done(snapshot)

        self._supply.boxes.freeze(live, wanted.image, frozen)

    def source(self, key: str, holder: int, uid: int, done: Callable[[Source | SandboxError], None]) -> None:
        """Calls back with what a sandbox is restored from, once it may be; the snapshot stays until then."""
        snapshot = self._store.get(key, uid)
        profile = snapshot.manifest.profile
        backend = self._backend_of(profile)
        if backend.image_parts(profile) != snapshot.manifest.parts:
            raise RefusedError(
                f"snapshot {key[:12]} was taken with another version of the sandbox",
                hint="It can only be restored by the very programs that took it. Forget it and take another.",
            )
        self._store.refer(snapshot, holder)

        def checked(problem: SandboxError | None) -> None:
            done(Source(key, profile, backend, snapshot=snapshot) if problem is None else problem)
            self._store.release(snapshot, holder)

        self._store.check(snapshot, checked)

    def prepare(self, source: Source, holder: int, copies: int) -> None:
        """Keeps so many ready for this connection; as many as all want together."""
        self._prepared[source.key][holder] = copies
        self._supply.prepare(source, sum(self._prepared[source.key].values()))

    def stop_preparing(self, key: str, holder: int) -> None:
        wanted = self._prepared.get(key, {})
        if wanted.pop(holder, None) is not None:
            self._supply.prepare_fewer(key, sum(wanted.values()))
        if not wanted:
            self._prepared.pop(key, None)

    def forget(self, key: str, holder: int, uid: int) -> None:
        snapshot = self._store.get(key, uid)
        self.stop_preparing(key, holder)
        self._store.forget(snapshot, holder)

    def hung_up(self, holder: int) -> None:
        """This connection wants nothing any more."""
        for key in list(self._prepared):
            self.stop_preparing(key, holder)
        self._store.hung_up(holder)
