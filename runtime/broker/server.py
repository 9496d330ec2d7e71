"""The broker: what each message means, and what belongs to whom.

What always holds: a connection is answered for its own sandboxes, and for snapshots of its own user, and for nothing
else; what does not exist and what is somebody else's are told apart by nothing. Once a connection has ended, so have
its sandboxes, its requests, and what only it referred to. Everything runs on the reactor's thread.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import assert_never

from pydantic import ValidationError

from runtime.backends.backend import Backend, Cause
from runtime.backends.sweep import SweepReport, sweep
from runtime.broker import account
from runtime.broker import messages as m
from runtime.broker.boxes import Live
from runtime.broker.connection import Connection
from runtime.broker.failures import failed
from runtime.broker.golden import Golden
from runtime.broker.keeping import Keeping
from runtime.broker.starts import Source
from runtime.broker.store import Background, Snapshot, Store
from runtime.broker.supply import Supply, Wish
from runtime.errors import BadRequestError, BusyError, InfrastructureError, LimitError, RefusedError, SandboxError
from runtime.launcher import Fate
from runtime.profile import BackendName, Profile
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

log = logging.getLogger(__name__)
CONNECTIONS = 256
BOXES_KEPT = 4_096
"""Sandboxes of one connection, ended ones included until it has asked how they ended."""


class Client:
    """What one connection has."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.boxes: dict[str, Live] = {}
        self.waiting: dict[int, Wish] = {}


class Server:
    def __init__(
        self,
        settings: BrokerSettings,
        reactor: Reactor,
        backends: Mapping[BackendName, Backend],
        versions: Mapping[str, str],
        golden: Golden,
        store: Store,
        background: Background,
        *,
        refused: Mapping[BackendName, SandboxError] | None = None,
        alone: Callable[[], None] = lambda: None,
    ) -> None:
        """From a callback of the reactor. `refused`: why a backend that may be used does not work here; `alone` is
        called whenever the last connection has ended."""
        self._settings, self._reactor = settings, reactor
        self._backends, self._versions = dict(backends), dict(versions)
        self._refused = dict(refused or {})
        self._golden, self._store, self._background = golden, store, background
        self._alone = alone
        self._supply = Supply(settings, reactor, golden, store)
        self._keeping = Keeping(store, self._supply, self._backend)
        self._clients: dict[int, Client] = {}
        self._numbers = self._leaving = 0

    def connect(self, connection: socket.socket) -> None:
        """Serves it from now on."""
        if len(self._clients) >= CONNECTIONS:
            busy = BusyError(f"the broker has {CONNECTIONS} connections already", hint="Close some.")
            self.turn_away(connection, busy)
            return
        self._numbers += 1
        opened = Connection(self._reactor, connection, self._numbers, received=self._received, closed=self._closed)
        self._clients[opened.number] = Client(opened)

    def turn_away(self, connection: socket.socket, why: SandboxError) -> None:
        """Tells it why and hangs up; what it says is not even read. A crowd is hung up on without a word."""
        if self._leaving >= CONNECTIONS:
            connection.close()
            return
        self._leaving += 1
        leaving = Connection(self._reactor, connection, 0, received=lambda _connection, _data: None, closed=self._left)
        leaving.dismiss(failed(m.FIRST, why))

    def _left(self, _connection: Connection) -> None:
        self._leaving -= 1

    def close(self) -> None:
        self._supply.close()
        for client in list(self._clients.values()):
            client.connection.close()

    def _received(self, connection: Connection, data: bytes) -> None:
        try:
            request = m.REQUEST.validate_json(data)
        except ValidationError as error:
            connection.close(f"no message: {error.errors(include_input=False, include_url=False)[:2]}")
            return
        client = self._clients[connection.number]
        if not connection.greeted and not isinstance(request, m.Hello):
            connection.close("it did not say hello")
            return
        try:
            self._handle(client, request)
        except SandboxError as error:
            connection.send(failed(request.request, error))

    def _handle(self, client: Client, request: m.Request) -> None:
        send = client.connection.send
        match request:
            case m.Hello():
                self._hello(client, request)
            case m.Launch():
                kind = self._golden.kind(self._backend(request.profile), request.profile)
                self._ask(client, request, Source(kind.key, kind.profile, kind.backend, kind=kind))
            case m.Restore():
                self._with_source(client, request, lambda source: self._ask(client, request, source))
            case m.Cancel():
                wish = client.waiting.pop(request.of, None)
                if wish is not None:
                    self._supply.cancel(wish)
                send(m.Done(request=request.request))
            case m.End():
                live = self._own(client, request.box)
                del client.boxes[request.box]
                self._supply.boxes.end(live, Cause.ASKED, lambda fate: send(_ended(request.request, fate)))
            case m.Measure():
                usage = self._supply.boxes.usage(self._own(client, request.box), waits=request.waits)
                send(m.Measured(request=request.request, usage=usage))
            case m.GiveWay():
                self._supply.boxes.give_way(self._own(client, request.box), request.others_first)
                send(m.Done(request=request.request))
            case m.Snapshot():
                self._snapshot(client, request)
            case m.Prepare():
                self._prepare(client, request)
            case m.Forget():
                self._keeping.forget(request.snapshot, client.connection.number, client.connection.peer.uid)
                send(m.Done(request=request.request))
            case m.List():
                boxes, snapshots = self._seen_by(client.connection.peer.uid)
                send(account.listing(request.request, boxes, snapshots))
            case m.Stats():
                values = account.figures(self._supply, self._store, len(self._clients))
                send(m.Figures(request=request.request, values=values))
            case m.Sweep():
                self._sweep(client, request.request)
            case _:
                assert_never(request)

    def _hello(self, client: Client, request: m.Hello) -> None:
        if request.protocol != m.PROTOCOL:
            error = RefusedError(
                f"the broker speaks protocol {m.PROTOCOL}, not {request.protocol}",
                hint="Broker and client come from different versions: restart the older one.",
            )
            client.connection.dismiss(failed(request.request, error))
            return
        client.connection.greeted = True
        client.connection.send(
            m.Welcome(
                request=request.request,
                protocol=m.PROTOCOL,
                pid=os.getpid(),
                backends=self._versions,
                refused={name.value: str(error)[:500] for name, error in self._refused.items()},
            )
        )

    def _backend(self, profile: Profile) -> Backend:
        if profile.program is not None and self._settings.program(profile.program) is None:
            raise RefusedError(
                f"the broker has no program {profile.program}", hint="Its settings name the programs; start it again."
            )
        if profile.program is None and not self._settings.guests:
            raise RefusedError("this broker runs programs only", hint="Ask one whose settings allow guests.")
        backend = self._backends.get(profile.backend)
        if backend is None:
            raise self._refused.get(profile.backend) or RefusedError(
                f"{profile.backend} may not be used here",
                hint="The written policy says which backends may be used.",
            )
        return backend

    def _ask(self, client: Client, request: m.Launch | m.Restore, source: Source) -> None:
        connection = client.connection

        def given(live: Live | SandboxError) -> None:
            client.waiting.pop(request.request, None)
            if isinstance(live, SandboxError):
                connection.send(failed(request.request, live))
                return
            descriptors = self._supply.boxes.hold(live, connection.number, connection.peer.pid, request.caller)
            client.boxes[live.id] = live
            told = None if isinstance(request, m.Launch) else live.profile
            connection.send(m.Launched(request=request.request, box=live.id, profile=told), descriptors)

        if request.request in client.waiting:
            raise BadRequestError(f"request {request.request} waits already")
        if len(client.boxes) + len(client.waiting) >= BOXES_KEPT:
            raise LimitError(f"this connection has {BOXES_KEPT} sandboxes", hint="End those that are not needed.")
        wish = self._supply.ask(
            source,
            caller=f"{connection.number}/{request.caller}",
            priority=request.priority,
            given=given,
            reseed=isinstance(request, m.Restore) and request.reseed,
        )
        if not wish.over:
            client.waiting[request.request] = wish

    def _with_source(self, client: Client, request: m.Restore | m.Prepare, then: Callable[[Source], None]) -> None:
        """Goes on once the snapshot may be restored; what is wrong with it is the answer."""
        connection = client.connection

        def found(source: Source | SandboxError) -> None:
            if not connection.open:
                return
            try:
                if isinstance(source, SandboxError):
                    raise source
                then(source)
            except SandboxError as error:
                connection.send(failed(request.request, error))

        self._keeping.source(request.snapshot, connection.number, connection.peer.uid, found)

    def _snapshot(self, client: Client, request: m.Snapshot) -> None:
        connection, begun = client.connection, time.monotonic()

        def kept(snapshot: Snapshot | SandboxError) -> None:
            if not connection.open:
                self._keeping.hung_up(connection.number)  # it came too late to be referred to
            elif isinstance(snapshot, SandboxError):
                connection.send(failed(request.request, snapshot))
            else:
                seconds = round(time.monotonic() - begun, 6)
                size = snapshot.manifest.bytes
                connection.send(
                    m.SnapshotKept(request=request.request, snapshot=snapshot.key, bytes=size, seconds=seconds)
                )

        self._keeping.take(
            self._own(client, request.box),
            connection.number,
            connection.peer.uid,
            label=request.label,
            durable=request.durable,
            done=kept,
        )

    def _prepare(self, client: Client, request: m.Prepare) -> None:
        connection = client.connection

        def prepared(source: Source) -> None:
            self._keeping.prepare(source, connection.number, request.copies)
            connection.send(m.Done(request=request.request))

        if request.copies:
            self._with_source(client, request, prepared)
        else:
            self._keeping.stop_preparing(request.snapshot, connection.number)
            connection.send(m.Done(request=request.request))

    def _seen_by(self, uid: int) -> tuple[list[Live], list[Snapshot]]:
        """Our own user sees everything; others see their own, and sandboxes that nobody holds."""
        alive = self._supply.boxes.alive.values()
        if uid == os.geteuid():
            return list(alive), self._store.all()
        numbers = {number for number, client in self._clients.items() if client.connection.peer.uid == uid}
        return [live for live in alive if not live.holder or live.holder in numbers], self._store.seen_by(uid)

    def _sweep(self, client: Client, request: int) -> None:
        def swept(future: Future[SweepReport]) -> None:
            problem = future.exception()
            if problem is not None:
                error = problem if isinstance(problem, SandboxError) else InfrastructureError(f"no sweep: {problem}")
                client.connection.send(failed(request, error))
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

    def _closed(self, connection: Connection) -> None:
        client = self._clients.pop(connection.number)
        for wish in client.waiting.values():
            self._supply.cancel(wish)
        for live in client.boxes.values():
            self._supply.boxes.end(live, Cause.ASKED)
        self._keeping.hung_up(connection.number)
        if not self._clients:
            self._alone()


def _ended(request: int, fate: Fate) -> m.Ended:
    return m.Ended(request=request, cause=fate.cause, usage=fate.usage)
