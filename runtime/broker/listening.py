"""Broker's listening socket in the file system, and its access control.

Invariants: one broker per path while it lives (a lock beside the socket ends with its holder); the kernel's peer
credentials (SO_PEERCRED, at the time of connecting) decide, not a name or a mode. The socket's mode keeps strangers out
where possible: 0600 for our own user, 0666 if others are allowed. Nothing is changed by name after its creation. A
socket passed by the service manager is used unchanged, and stays: clients that connect without a broker wait for the
next one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import selectors
import socket
import time
from collections.abc import Callable, Collection
from pathlib import Path

from runtime.broker.connection import ClientPeer
from runtime.errors import BadRequestError, InfrastructureError, RefusedError, SandboxError
from runtime.reactor import Reactor

log = logging.getLogger(__name__)
BACKLOG = 128
PATH_BYTES = 107
LOCK_SECONDS = 5.0
"""Wait for another broker's lock, in seconds: a process that a killed broker was starting holds it until its exec."""
LOCK_PAUSE_SECONDS = 0.05
MOST_LOGGED = 100
"""Most refused users logged, one line each; further ones are not logged."""


class BrokerListener:
    def __init__(
        self, reactor: Reactor, path: Path, allowed: Collection[int], held: socket.socket | None = None
    ) -> None:
        """Binds the broker's socket; `listen` starts it on the reactor. `held` is the service manager's socket at this
        path.

        Raises BadRequestError for an invalid path, InfrastructureError if another broker serves it, the folder is
        unusable, or `held` is a different socket.
        """
        if len(os.fsencode(path)) > PATH_BYTES:
            raise BadRequestError(f"{path} is too long for a socket", hint=f"Use at most {PATH_BYTES} bytes.")
        self._reactor, self._path = reactor, path
        self._allowed = frozenset(allowed) | {os.geteuid()}
        self._logged: set[int] = set()
        self._lock = _lock(path)
        self._stays = held is not None
        try:
            self._socket = _bound(path, for_others=len(self._allowed) > 1) if held is None else _taken(held, path)
            self._socket.setblocking(False)
        except (OSError, InfrastructureError) as error:
            os.close(self._lock)
            if isinstance(error, InfrastructureError):
                raise
            raise InfrastructureError(f"cannot create a socket at {path}: {error}") from error

    def listen(
        self, connected: Callable[[socket.socket], None], turned_away: Callable[[socket.socket, SandboxError], None]
    ) -> None:
        """Starts accepting clients on the broker's socket, from a reactor callback. `turned_away` gets connections of
        users without access."""
        self._connected, self._turned_away = connected, turned_away
        self._begin()

    def _begin(self) -> None:
        self._reactor.watch(self._socket.fileno(), selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """Closes the broker's socket, from a reactor callback. The lock file stays: else two brokers could hold one."""
        self._reactor.watch(self._socket.fileno(), 0, self._accept)
        self._socket.close()
        if not self._stays:
            self._path.unlink(missing_ok=True)
        os.close(self._lock)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return
        except OSError as error:  # no descriptors left, for the moment
            log.warning("a connection could not be accepted: %s", error)
            self._reactor.watch(self._socket.fileno(), 0, self._accept)
            self._reactor.after(0.2, self._begin)
            return
        peer = ClientPeer.of(connection)
        if peer.uid not in self._allowed:
            if peer.uid not in self._logged and len(self._logged) < MOST_LOGGED:
                self._logged.add(peer.uid)
                log.warning("process %d of user %d may not use this broker (logged once)", peer.pid, peer.uid)
            self._turned_away(
                connection,
                RefusedError(f"user {peer.uid} may not use this broker", hint="Start it with `--allow-uid UID`."),
            )
            return
        self._connected(connection)


def _bound(path: Path, *, for_others: bool) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mask = os.umask(0o111 if for_others else 0o177)
    try:
        path.unlink(missing_ok=True)
        made.bind(str(path))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    finally:
        os.umask(mask)
    return made


def _taken(held: socket.socket, path: Path) -> socket.socket:
    listens = held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if held.family != socket.AF_UNIX or held.type != socket.SOCK_SEQPACKET or not listens:
        raise InfrastructureError(
            "the service manager's socket has another type", hint="Use ListenSequentialPacket= in its unit."
        )
    if held.getsockname() != str(path):
        raise InfrastructureError(
            f"the service manager listens at {held.getsockname()!r}, but the broker is configured for {path}",
            hint="Use the same path in the socket's unit and in sandbox.broker.",
        )
    return held


def _lock(path: Path) -> int:
    name = path.with_name(path.name + ".lock")
    try:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise InfrastructureError(f"{name} cannot be created: {error}") from error
    until = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() < until:
                time.sleep(LOCK_PAUSE_SECONDS)
                continue
            os.close(lock)
            raise InfrastructureError(f"another broker serves {path}", hint="Stop it first, or use it.") from error
        return lock
