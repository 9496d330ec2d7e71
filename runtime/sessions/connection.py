"""This process's connection to its broker, reopened when a sandbox is requested after the broker died.

Invariants: nothing here blocks the reactor; a request without a broker waits for exactly one connection attempt;
objects of a dead broker are never requested from the next. Called from the reactor only, except the constructor and
`close`.
"""

from __future__ import annotations

import logging
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from runtime.broker import BrokerClient, connect
from runtime.broker.client import start_private, wait_for_private
from runtime.broker_api import Handle, OnReady, SnapshotCopy, Termination, Ticket
from runtime.errors import BrokerLostError, InfrastructureError, RefusedError, SandboxError
from runtime.profile import BoxUsage, Cause, Profile
from runtime.reactor import Reactor
from runtime.sandbox import Priority, SnapshotId
from runtime.settings import RuntimeSettings

log = logging.getLogger(__name__)
START_SECONDS = 60.0
"""Timeout for a broker's hello, in seconds."""
AGAIN_SECONDS = 30.0
"""Time to wait for a dead shared broker, which its service may restart, in seconds. Waited once, not per request."""
REPLACED_SECONDS = 3.0
"""Time to wait for it if a private one may take its place, in seconds."""
PAUSE_SECONDS = 0.2
GONE_HINT = "See the broker's log or this terminal."
Use = Callable[[BrokerClient], Ticket | None]


@dataclass(eq=False)
class _Later:
    """Request made before there was a broker, to be sent later, and its ticket."""

    use: Use
    failed: Callable[[SandboxError], None]
    ticket: Ticket | None = None
    wanted: bool = True

    def cancel(self) -> None:
        self.wanted = False
        if self.ticket is not None:
            self.ticket.cancel()


class BrokerConnection:
    """Connection to a broker, and after its end to the next one; implements `runtime.broker_api.BrokerApi`."""

    def __init__(self, reactor: Reactor, settings: RuntimeSettings, died: Callable[[], None]) -> None:
        """Creates the connection without connecting to a broker yet. `died` is called each time a broker has gone,
        after every wait was answered."""
        self._reactor, self._settings, self._died = reactor, settings, died
        self._client: BrokerClient | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._connecting = self._closed = False
        self._shared = settings.broker
        """Socket of the shared broker; None once a private one serves."""
        self._in_vain = False
        """True once a dead shared broker was awaited in vain."""
        self._later: list[_Later] = []
        self._owners: dict[Handle, BrokerClient] = {}
        self._opener: threading.Thread | None = None
        self.backends: dict[str, str] = {}
        """Backend versions by name, from the last broker."""

    def open(self) -> None:
        """Waits for the first broker, on the caller's thread. Raises RefusedError if sandboxes are unavailable,
        InfrastructureError if the broker does not answer."""
        first: Future[SandboxError | None] = Future()

        def begin() -> None:
            self._when_connected(lambda _client: first.set_result(None), first.set_result)

        self._reactor.call(begin)
        try:
            problem = first.result(timeout=START_SECONDS)
        except TimeoutError:
            problem = InfrastructureError("the broker does not answer", hint=GONE_HINT)
        if problem is not None:
            self.close()
            raise problem

    # as of BrokerApi

    def launch(self, wanted: Profile | SnapshotCopy, *, caller: str, priority: Priority, on_ready: OnReady) -> Ticket:
        return self._when_connected(
            lambda client: client.launch(
                wanted, caller=caller, priority=priority, on_ready=partial(self._take, client, on_ready)
            ),
            on_ready,
        )

    def prepare(self, snapshot: SnapshotId, copies: int, done: Callable[[SandboxError | None], None]) -> None:
        self._when_connected(lambda client: client.prepare(snapshot, copies, done), done)

    def forget(self, snapshot: SnapshotId, done: Callable[[SandboxError | None], None]) -> None:
        self._when_connected(lambda client: client.forget(snapshot, done), done)

    def snapshot(
        self, handle: Handle, *, durable: bool, label: str, done: Callable[[SnapshotId | SandboxError], None]
    ) -> None:
        if (owner := self._owner(handle, done)) is not None:
            owner.snapshot(handle, durable=durable, label=label, done=done)

    def usage(self, handle: Handle, done: Callable[[BoxUsage | SandboxError], None], *, waits: bool = False) -> None:
        if (owner := self._owner(handle, done)) is not None:
            owner.usage(handle, done, waits=waits)

    def give_way(self, handle: Handle, others_first: bool, done: Callable[[SandboxError | None], None]) -> None:
        if (owner := self._owner(handle, done)) is not None:
            owner.give_way(handle, others_first, done)

    def rest(self, handle: Handle, rests: bool, done: Callable[[SandboxError | None], None]) -> None:
        if (owner := self._owner(handle, done)) is not None:
            owner.rest(handle, rests, done)

    def _owner(self, handle: Handle, failed: Callable[[SandboxError], None]) -> BrokerClient | None:
        """Returns the connection to the broker of this sandbox; reports an error and returns None if it is gone."""
        owner = self._owners.get(handle)
        if owner is None:
            failed(InfrastructureError(f"sandbox {handle.id} has ended"))
        return owner

    def end(self, handle: Handle, done: Callable[[Termination], None]) -> None:
        owner = self._owners.pop(handle, None)
        if owner is None:
            done(Termination(Cause.DIED, BoxUsage()))
            return

        def ended(termination: Termination) -> None:
            """Passes a sandbox's termination to the caller, but `died` only in a later reactor call. A lost broker's
            own end must become known first."""
            if termination.cause is Cause.DIED:
                self._reactor.call(lambda: done(termination))
            else:
                done(termination)

        owner.end(handle, ended)

    def close(self) -> None:
        """Closes the connection, from the caller's thread; a private broker has ended everything when this returns."""

        def end() -> None:
            self._closed = True
            if self._client is not None:
                self._client.close()

        self._reactor.result(end)
        if self._opener is not None:  # a broker that is being started must be ended, too
            self._opener.join()
            self._reactor.result(lambda: None)  # its result has been handled by then
        if self._process is not None:
            wait_for_private(self._process)

    # connecting

    def _when_connected(self, use: Use, failed: Callable[[SandboxError], None]) -> _Later:
        later = _Later(use, failed)
        if self._client is not None:
            later.ticket = use(self._client)
        elif self._closed:
            self._reactor.call(lambda: failed(InfrastructureError("the connection to the broker is closed")))
        else:
            self._later.append(later)
            if not self._connecting:
                self._connecting = True
                awaited = self.backends and self._shared is not None
                seconds = 0.0 if self._in_vain else REPLACED_SECONDS if self._settings.replaces else AGAIN_SECONDS
                self._begin(time.monotonic() + seconds if awaited else 0.0)
        return later

    def _begin(self, until: float) -> None:
        """Opens a connection to a broker on a separate thread, because it blocks. `until` is the deadline for a dead
        shared broker; 0 if none."""
        if self._closed:
            return
        self._opener = threading.Thread(target=self._open, args=(until,), name="broker-connection", daemon=True)
        self._opener.start()

    def _open(self, until: float) -> None:
        try:
            found = self._again(self._shared, until) if self._shared is not None else None
            if found is not None:
                ends, process = found, None
            else:
                if self._process is not None:
                    wait_for_private(self._process)
                ends, process = start_private(self._settings.own)
        except SandboxError as error:
            problem = error
            self._reactor.call(lambda: self._opened(problem, None, until))
            return
        self._reactor.call(lambda: self._opened(ends, process, until))

    def _again(self, path: Path, until: float) -> socket.socket | None:
        """Connects to the shared broker; None if it has stopped for good and the settings permit a private one in its
        place. Raises RefusedError, InfrastructureError."""
        try:
            return _await(path, until)
        except InfrastructureError as error:
            if not self._settings.replaces:
                raise
            backends = ", ".join(self._settings.own.backends)
            log.warning("%s; sandboxes now start under a broker of this process, with the same %s", error, backends)
            self._shared = None
            return None

    def _opened(
        self, ends: socket.socket | SandboxError, process: subprocess.Popen[bytes] | None, until: float
    ) -> None:
        if process is not None:
            self._process = process
        if isinstance(ends, SandboxError):
            self._connected(ends)
            return
        if self._closed:
            ends.close()
            return
        client = BrokerClient(self._reactor, ends, gone=lambda: self._has_died(client))
        client.stats(lambda _figures: self._greeted(client, until))  # answered after its hello

    def _greeted(self, client: BrokerClient, until: float) -> None:
        """Accepts a broker that said hello, or retries if a shared one died meanwhile.

        A killed broker's socket stays open as long as a process that it was starting holds it.
        """
        if isinstance(client.lost, BrokerLostError) and time.monotonic() < until:
            self._reactor.after(PAUSE_SECONDS, lambda: self._begin(until))
        else:
            self._connected(client.lost or client)

    def _connected(self, found: BrokerClient | SandboxError) -> None:
        self._connecting = False
        waiting, self._later = self._later, []
        self._in_vain = not isinstance(found, BrokerClient)
        if isinstance(found, BrokerClient):
            self._client, self.backends = found, dict(found.backends)
            if self._closed:
                found.close()
        for later in waiting:
            if not later.wanted:
                continue
            if isinstance(found, SandboxError):
                later.failed(found)
            else:
                later.ticket = later.use(found)

    def _has_died(self, client: BrokerClient) -> None:
        if client is not self._client:
            return
        log.warning("the broker is gone; the next request connects to another")
        self._client = None
        self._died()

    def _take(self, client: BrokerClient, on_ready: OnReady, handle: Handle | SandboxError) -> None:
        if isinstance(handle, Handle):
            self._owners[handle] = client
        on_ready(handle)


def _await(path: Path, until: float) -> socket.socket:
    """Connects to a shared broker, retrying until the deadline while nobody listens. Raises RefusedError, or
    InfrastructureError at the deadline."""
    while True:
        try:
            return connect(path)
        except RefusedError as error:
            if time.monotonic() >= until:
                if until:
                    raise InfrastructureError(f"the broker is gone: {error}", hint=error.hint) from error
                raise
        time.sleep(PAUSE_SECONDS)
