"""Snapshot service of the broker: takes, restores, prepares and forgets snapshots for connections.

Invariants: a snapshot is restored only for the user who took it, only after its bytes have been verified, and only by
the exact programs that took it; prepared copies end with their connection, and with the snapshot.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

from runtime.backends.backend import Backend
from runtime.broker.base_images import StartSource
from runtime.broker.boxes import Live
from runtime.broker.connection import ClientConnection
from runtime.broker.content import SnapshotManifest
from runtime.broker.store import Store, StoredSnapshot
from runtime.broker.warm_pool import WarmPool
from runtime.errors import BadRequestError, RefusedError, SandboxError
from runtime.profile import Profile


class SnapshotService:
    """Takes, restores and prepares snapshots for all clients. Methods raise the errors of `runtime.errors`."""

    def __init__(self, store: Store, warm_pool: WarmPool, backend_of: Callable[[Profile], Backend]) -> None:
        self._store, self._warm_pool, self._backend_of = store, warm_pool, backend_of
        self._prepared: dict[str, dict[int, int]] = defaultdict(dict)
        """Prepared copies by snapshot and connection."""
        removed = store.removed

        def gone(key: str) -> None:
            self._prepared.pop(key, None)
            removed(key)

        store.removed = gone

    def take(
        self,
        live: Live,
        holder: ClientConnection,
        *,
        label: str,
        durable: bool,
        done: Callable[[StoredSnapshot | SandboxError], None],
    ) -> None:
        """Freezes a box into the snapshot store; the box continues, with the snapshot as its parent."""
        if live.freezing or live.cause is not None:
            raise BadRequestError("a snapshot of this sandbox is being taken, or it has ended")
        begun = time.monotonic()
        parts = live.backend.image_parts(live.profile)
        described = SnapshotManifest(
            parts=parts, profile=live.profile, parent=live.parent, files=(), uid=holder.peer.uid, label=label
        )
        expected = int(self._warm_pool.boxes.usage(live).memory_mib * 2**20)
        wanted = self._store.begin(described, durable=durable, expected=expected)

        def frozen(problem: SandboxError | None) -> None:
            if problem is None:
                self._store.finish(wanted, holder.number, stored)
            else:
                self._store.abandon(wanted)
                done(problem)

        def stored(snapshot: StoredSnapshot | SandboxError) -> None:
            if isinstance(snapshot, StoredSnapshot):
                now = time.monotonic()
                self._warm_pool.spans.add("snapshot", now - begun, now)
                self._warm_pool.counts["snapshots_taken"] += 1
                live.parent = snapshot.key
            done(snapshot)

        self._warm_pool.boxes.freeze(live, wanted.image, frozen)

    def source(self, key: str, holder: ClientConnection, done: Callable[[StartSource | SandboxError], None]) -> None:
        """Calls back with the start source of a snapshot, once verified; the snapshot stays until then."""
        snapshot = self._store.get(key, holder.peer.uid, holder.number)
        profile, parts = snapshot.manifest.profile, snapshot.manifest.parts
        backend = self._backend_of(profile)
        if backend.image_parts(profile) != parts:
            raise RefusedError(
                f"snapshot {key[:12]} was taken with other sandbox programs",
                hint="Forget it and take another: only the exact same programs can restore it.",
            )
        self._store.refer(snapshot, holder.number)

        def checked(problem: SandboxError | None) -> None:
            done(StartSource(key, profile, backend, parts, snapshot) if problem is None else problem)
            self._store.release(snapshot, holder.number)

        self._store.check(snapshot, checked)

    def prepare(self, source: StartSource, holder: int, copies: int) -> None:
        """Keeps `copies` sandboxes of a snapshot ready for this connection; demands of all connections add up."""
        self._prepared[source.key][holder] = copies
        self._warm_pool.prepare(source.key, sum(self._prepared[source.key].values()), source)

    def stop_preparing(self, key: str, holder: int) -> None:
        wanted = self._prepared.get(key, {})
        if wanted.pop(holder, None) is not None:
            self._warm_pool.prepare(key, sum(wanted.values()))
        if not wanted:
            self._prepared.pop(key, None)

    def forget(self, key: str, holder: ClientConnection) -> None:
        snapshot = self._store.get(key, holder.peer.uid, holder.number)
        self.stop_preparing(key, holder.number)
        self._store.forget(snapshot, holder.number)

    def hung_up(self, holder: int) -> None:
        """Drops a closed connection's snapshot references and prepared copies."""
        for key in list(self._prepared):
            self.stop_preparing(key, holder)
        self._store.hung_up(holder)
