"""The broker: what each message means, and what belongs to whom.

What always holds: a connection is answered for its own sandboxes and snapshots and for nothing else; once it has ended,
so have its sandboxes and requests. Everything runs on the reactor's thread.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Mapping
from typing import assert_never

from pydantic import ValidationError

from runtime.backends.backend import Backend, Cause
from runtime.broker import messages as m
from runtime.broker.boxes import Live
from runtime.broker.connection import Connection
from runtime.broker.failures import failed
from runtime.broker.queue import Place
from runtime.broker.supply import Source, Supply
from runtime.errors import BadRequestError, RefusedError, SandboxError
from runtime.launcher import Fate
from runtime.profile import BackendName
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

log = logging.getLogger(__name__)


class Client:
    """What one connection has."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.boxes: dict[str, Live] = {}
        self.waiting: dict[int, Place[str]] = {}


class Server:
    def __init__(
        self,
        settings: BrokerSettings,
        reactor: Reactor,
        backends: Mapping[BackendName, Backend],
        versions: Mapping[str, str],
        *,
        alone: Callable[[], None] = lambda: None,
    ) -> None:
        """From a callback of the reactor. `alone` is called whenever the last connection has ended."""
        self._settings, self._reactor = settings, reactor
        self._backends, self._versions = dict(backends), dict(versions)
        self._alone = alone
        self._supply = Supply(settings, reactor)
        self._clients: dict[int, Client] = {}
        self._numbers = 0

    def connect(self, connection: socket.socket) -> None:
        self._numbers += 1
        opened = Connection(self._reactor, connection, self._numbers, received=self._received, closed=self._closed)
        self._clients[opened.number] = Client(opened)

    def close(self) -> None:
        for client in list(self._clients.values()):
            client.connection.close()
        self._supply.close()

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
        match request:
            case m.Hello():
                self._hello(client, request)
            case m.Launch():
                source = self._source(request)
                self._ask(client, request, source)
            case m.Cancel():
                place = client.waiting.pop(request.of, None)
                if place is not None:
                    self._supply.cancel(place)
                client.connection.send(m.Done(request=request.request))
            case m.End():
                live = self._own(client, request.box)
                del client.boxes[request.box]

                def ended(fate: Fate) -> None:
                    client.connection.send(m.Ended(request=request.request, cause=fate.cause, usage=fate.usage))

                self._supply.boxes.end(live, Cause.ASKED, ended)
            case m.Measure():
                usage = self._supply.boxes.usage(self._own(client, request.box))
                client.connection.send(m.Measured(request=request.request, usage=usage))
            case m.Restore() | m.Snapshot() | m.Prepare() | m.Forget() | m.List() | m.Stats() | m.Sweep():
                raise RefusedError(f"{request.kind} comes later")
            case _:
                assert_never(request)

    def _hello(self, client: Client, request: m.Hello) -> None:
        if request.protocol != m.PROTOCOL:
            error = RefusedError(
                f"the broker speaks protocol {m.PROTOCOL}, not {request.protocol}",
                hint="Broker and client come from different versions: restart the older one.",
            )
            client.connection.send(failed(request.request, error))
            client.connection.close("another protocol")
            return
        client.connection.greeted = True
        client.connection.send(
            m.Welcome(request=request.request, protocol=m.PROTOCOL, pid=os.getpid(), backends=self._versions)
        )

    def _source(self, request: m.Launch) -> Source:
        profile = request.profile
        backend = self._backends.get(profile.backend)
        if backend is None:
            raise RefusedError(
                f"{profile.backend} may not be used here, or does not work",
                hint="The written policy says which backends may be used; `doctor` says which work.",
            )
        return Source(profile.model_dump_json(), profile, backend)

    def _ask(self, client: Client, request: m.Launch, source: Source) -> None:
        connection = client.connection

        def given(live: Live | SandboxError) -> None:
            client.waiting.pop(request.request, None)
            if isinstance(live, SandboxError):
                connection.send(failed(request.request, live))
                return
            descriptors = self._supply.boxes.hold(live, connection.number, connection.peer.pid, request.caller)
            client.boxes[live.id] = live
            connection.send(m.Launched(request=request.request, box=live.id, profile=live.profile), descriptors)

        if request.request in client.waiting:
            raise BadRequestError(f"request {request.request} waits already")
        caller = f"{connection.number}/{request.caller}"
        place = self._supply.ask(source, caller=caller, priority=request.priority, given=given)
        client.waiting[request.request] = place

    def _own(self, client: Client, box: str) -> Live:
        live = client.boxes.get(box)
        if live is None:
            raise BadRequestError("this connection has no such sandbox")
        return live

    def _closed(self, connection: Connection) -> None:
        client = self._clients.pop(connection.number)
        for place in client.waiting.values():
            self._supply.cancel(place)
        for live in client.boxes.values():
            self._supply.boxes.end(live, Cause.ASKED)
        if not self._clients:
            self._alone()
