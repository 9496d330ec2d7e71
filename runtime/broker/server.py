"""Handles the broker's messages: their meaning, and ownership.

Invariants: a connection reaches only its own sandboxes, and snapshots of its own user; missing and foreign objects are
indistinguishable. When a connection ends, so do its sandboxes, its requests, and its exclusive references. Everything
runs on the reactor's thread.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from pydantic import ValidationError

from runtime.backends.backend import Backend
from runtime.backends.sweep import SweepReport, sweep
from runtime.broker import messages as m
from runtime.broker import statistics
from runtime.broker.base_images import BaseImages, StartSource
from runtime.broker.boxes import Live
from runtime.broker.connection import ClientConnection, ClientPeer
from runtime.broker.snapshots import SnapshotService
from runtime.broker.store import Background, Store, StoredSnapshot
from runtime.broker.warm_pool import BoxRequest, WarmPool
from runtime.broker_api import SnapshotCopy
from runtime.errors import BadRequestError, BusyError, InfrastructureError, LimitError, RefusedError, SandboxError
from runtime.profile import BackendName, Cause, Profile
from runtime.reactor import Reactor
from runtime.sandbox import SnapshotId
from runtime.settings import BrokerSettings

log = logging.getLogger(__name__)
CONNECTIONS, OF_OTHERS, OF_ONE = 256, 192, 64
"""Most concurrent connections: in all, of all other users, and of one peer (another user, or one process)."""
FOR_THE_NEXT = 32
"""Last connections, reserved for processes of our own user without one."""
HELLO_SECONDS = 10.0
"""Time within which a connection must send its hello, in seconds."""
MOST_BOXES = 4_096
"""Most sandboxes of one connection, including ended ones whose end it has not requested."""


@dataclass(eq=False)
class Client:
    """Client of a broker: the sandboxes and waiting requests of one connection."""

    connection: ClientConnection
    boxes: dict[str, Live] = field(default_factory=dict)
    waiting: dict[int, BoxRequest] = field(default_factory=dict)


class Server:
    def __init__(
        self,
        settings: BrokerSettings,
        reactor: Reactor,
        backends: Mapping[BackendName, Backend],
        versions: Mapping[str, str],
        base_images: BaseImages,
        store: Store,
        background: Background,
        *,
        refused: Mapping[BackendName, SandboxError],
        alone: Callable[[], None],
    ) -> None:
        """Creates the broker's server without clients; from a reactor callback. `refused` has the errors of allowed but
        broken backends; `alone` is called whenever the last connection has ended."""
        self._settings, self._reactor = settings, reactor
        self._backends, self._versions, self._refused = backends, versions, refused
        self._base_images, self._store, self._background = base_images, store, background
        self._alone = alone
        self._warm_pool = WarmPool(settings, reactor, base_images, store)
        self._snapshots = SnapshotService(store, self._warm_pool, self._backend)
        self._clients: dict[int, Client] = {}
        self._numbers = self._leaving = 0

    def connect(self, connection: socket.socket) -> None:
        """Starts serving a client's connection, or turns it away with BusyError if there are too many. Closes it if no
        hello arrives in time."""
        if self._is_full(ClientPeer.of(connection)):
            self.turn_away(connection, BusyError("the broker has too many connections", hint="Close some."))
            return
        self._numbers += 1
        opened = ClientConnection(
            self._reactor, connection, self._numbers, received=self._received, closed=self._closed
        )
        self._clients[opened.number] = Client(opened)
        self._reactor.after(HELLO_SECONDS, lambda: None if opened.answered else opened.close("no hello"))

    def _is_full(self, peer: ClientPeer) -> bool:
        """True if another connection of that client process exceeds the limits. Other users leave room for ours, and a
        process for the next."""
        peers, own = [client.connection.peer for client in self._clients.values()], os.geteuid()
        of_process = sum(known.pid == peer.pid for known in peers)
        if len(peers) >= CONNECTIONS or of_process >= OF_ONE:
            return True
        if peer.uid == own:
            return of_process > 0 and len(peers) >= CONNECTIONS - FOR_THE_NEXT
        uids = [known.uid for known in peers]
        return uids.count(peer.uid) >= OF_ONE or len(uids) - uids.count(own) >= OF_OTHERS

    def turn_away(self, connection: socket.socket, why: SandboxError) -> None:
        """Sends a client the reason for refusing it and hangs up without reading input; with too many leaving clients,
        hangs up immediately."""
        if self._leaving >= CONNECTIONS:
            connection.close()
            return
        self._leaving += 1
        leaving = ClientConnection(
            self._reactor, connection, 0, received=lambda _connection, _data: None, closed=self._left
        )
        leaving.dismiss(m.RequestFailed.of(why, request=m.FIRST))

    def _left(self, _connection: ClientConnection) -> None:
        self._leaving -= 1

    def close(self) -> None:
        self._warm_pool.close()
        for client in list(self._clients.values()):
            client.connection.close()

    def _received(self, connection: ClientConnection, data: bytes) -> None:
        try:
            request = m.REQUEST.validate_json(data)
        except ValidationError as error:
            connection.close(f"invalid message: {error.errors(include_input=False, include_url=False)[:2]}")
            return
        client = self._clients[connection.number]
        if not connection.answered and not isinstance(request, m.ClientHello):
            connection.close("first message is not a hello")
            return
        try:
            answer = self._handle(client, request)
        except SandboxError as error:
            answer = m.RequestFailed.of(error, request=request.request)
        if answer is not None:
            connection.send(answer)

    def _handle(self, client: Client, request: m.Request) -> m.Answer | None:
        """Handles a client's request; returns its answer, or None if it comes later."""
        number, send = request.request, client.connection.send
        boxes = self._warm_pool.boxes
        match request:
            case m.ClientHello():
                return self._hello(client, request)
            case m.Launch():
                wanted, ask = request.wanted, partial(self._ask, client, request)
                if isinstance(wanted, SnapshotCopy):
                    self._with_source(client, number, wanted.snapshot, ask)
                else:
                    ask(self._base_images.source(self._backend(wanted), wanted))
                return None
            case m.Cancel():
                cancelled = client.waiting.pop(request.of, None)
                if cancelled is not None:
                    self._warm_pool.cancel(cancelled)
            case m.EndBox():
                live = self._own(client, request.box)
                del client.boxes[request.box]
                boxes.end(live, Cause.ASKED, lambda ended: send(m.BoxEnded(request=number, termination=ended)))
                return None
            case m.MeasureBox():
                usage = boxes.usage(self._own(client, request.box), waits=request.waits)
                return m.Measured(request=number, usage=usage)
            case m.GiveWay():
                boxes.give_way(self._own(client, request.box), request.others_first)
            case m.RestBox():
                boxes.rest(self._own(client, request.box), request.rests)
            case m.TakeSnapshot():
                self._snapshot(client, request)
                return None
            case m.Prepare(copies=0):
                self._snapshots.stop_preparing(request.snapshot, client.connection.number)
            case m.Prepare():
                self._prepare(client, request)
                return None
            case m.ForgetSnapshot():
                self._snapshots.forget(request.snapshot, client.connection)
            case m.List():
                return statistics.listing(number, *self._seen_by(client.connection.peer.uid))
            case m.Stats():
                values = statistics.figures(self._warm_pool, self._store, len(self._clients))
                return m.Figures(request=number, values=values)
            case m.Sweep():
                self._sweep(client, number)
                return None
            case _:
                assert_never(request)
        return m.Done(request=number)

    def _hello(self, client: Client, request: m.ClientHello) -> m.BrokerWelcome | None:
        if request.protocol != m.PROTOCOL:
            error = RefusedError(
                f"the broker speaks protocol {m.PROTOCOL}, not {request.protocol}",
                hint="Restart the older one: broker and client have different versions.",
            )
            client.connection.dismiss(m.RequestFailed.of(error, request=request.request))
            return None
        client.connection.answered = True
        return m.BrokerWelcome(
            request=request.request,
            protocol=m.PROTOCOL,
            pid=os.getpid(),
            backends=dict(self._versions),
            refused={name.value: str(error)[:500] for name, error in self._refused.items()},
        )

    def _backend(self, profile: Profile) -> Backend:
        if profile.program is not None and self._settings.program(profile.program) is None:
            raise RefusedError(
                f"the broker has no program {profile.program}", hint="Add it to the broker's settings and restart it."
            )
        if profile.program is None and not self._settings.guests:
            raise RefusedError("this broker runs programs only", hint="Use a broker whose settings allow guests.")
        backend = self._backends.get(profile.backend)
        if backend is None:
            raise self._refused.get(profile.backend) or RefusedError(
                f"{profile.backend} is not allowed here", hint="See the backends in the policy."
            )
        return backend

    def _ask(self, client: Client, request: m.Launch, source: StartSource) -> None:
        connection = client.connection

        def on_ready(live: Live | SandboxError) -> None:
            client.waiting.pop(request.request, None)
            if isinstance(live, SandboxError):
                connection.send(m.RequestFailed.of(live, request=request.request))
                return
            descriptors = self._warm_pool.boxes.hold(live, connection.number, connection.peer.pid, request.caller)
            client.boxes[live.id] = live
            connection.send(m.Launched(request=request.request, box=live.id, profile=live.profile), descriptors)

        if request.request in client.waiting:
            raise BadRequestError(f"request {request.request} is already waiting")
        if len(client.boxes) + len(client.waiting) >= MOST_BOXES:
            raise LimitError(f"this connection already has {MOST_BOXES} sandboxes", hint="End unneeded ones.")
        waiting = self._warm_pool.ask(
            source,
            caller=f"{connection.number}/{request.caller}",
            priority=request.priority,
            on_ready=on_ready,
            reseed=isinstance(request.wanted, SnapshotCopy) and request.wanted.reseed,
        )
        if not waiting.over:
            client.waiting[request.request] = waiting

    def _with_source(
        self, client: Client, request: int, snapshot: str, on_source: Callable[[StartSource], None]
    ) -> None:
        """Calls `on_source` with a snapshot's start source once it may be restored; an error becomes the answer."""
        connection = client.connection

        def found(source: StartSource | SandboxError) -> None:
            if not connection.open:
                return
            try:
                if isinstance(source, SandboxError):
                    raise source
                on_source(source)
            except SandboxError as error:
                connection.send(m.RequestFailed.of(error, request=request))

        self._snapshots.source(snapshot, connection, found)

    def _snapshot(self, client: Client, request: m.TakeSnapshot) -> None:
        connection = client.connection

        def stored(snapshot: StoredSnapshot | SandboxError) -> None:
            if not connection.open:
                self._snapshots.hung_up(connection.number)  # too late to be referenced
            elif isinstance(snapshot, SandboxError):
                connection.send(m.RequestFailed.of(snapshot, request=request.request))
            else:
                connection.send(m.SnapshotKept(request=request.request, snapshot=SnapshotId(snapshot.key)))

        live = self._own(client, request.box)
        self._snapshots.take(live, connection, label=request.label, durable=request.durable, done=stored)

    def _prepare(self, client: Client, request: m.Prepare) -> None:
        connection = client.connection

        def prepared(source: StartSource) -> None:
            self._snapshots.prepare(source, connection.number, request.copies)
            connection.send(m.Done(request=request.request))

        self._with_source(client, request.request, request.snapshot, prepared)

    def _seen_by(self, uid: int) -> tuple[list[Live], list[StoredSnapshot]]:
        """Returns the boxes and snapshots that a user may see. Our own user sees all; others see theirs and boxes
        without a holder."""
        alive = self._warm_pool.boxes.alive.values()
        if uid == os.geteuid():
            return list(alive), self._store.all()
        numbers = {number for number, client in self._clients.items() if client.connection.peer.uid == uid}
        return [live for live in alive if not live.holder or live.holder in numbers], self._store.seen_by(uid)

    def _sweep(self, client: Client, request: int) -> None:
        def swept(future: Future[SweepReport]) -> None:
            problem = future.exception()
            if problem is not None:
                error = (
                    problem if isinstance(problem, SandboxError) else InfrastructureError(f"sweep failed: {problem}")
                )
                client.connection.send(m.RequestFailed.of(error, request=request))
            else:
                client.connection.send(m.Swept(request=request, **future.result().model_dump()))

        def job() -> SweepReport:
            report = sweep(self._settings.state_dir)
            return report.model_copy(update={"folders": report.folders + self._store.sweep()})

        self._background(job, swept)

    def _own(self, client: Client, box: str) -> Live:
        live = client.boxes.get(box)
        if live is None:
            raise BadRequestError("this connection has no such sandbox")
        return live

    def _closed(self, connection: ClientConnection) -> None:
        client = self._clients.pop(connection.number)
        for request in client.waiting.values():
            self._warm_pool.cancel(request)
        for live in client.boxes.values():
            self._warm_pool.boxes.end(live, Cause.ASKED)
        self._snapshots.hung_up(connection.number)
        if not self._clients:
            self._alone()
