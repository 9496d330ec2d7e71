"""Serves the gateway on this machine's loopback address.

Invariants: nothing listens on another address; connections without a timely request are closed, also after an answer,
and so are connections that do not read their answer; there are never more than `MOST_CONNECTIONS`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from appliance.inference.engine import ModelError
from appliance.inference.http.server import http_config

MOST_CONNECTIONS = 256
HEAD_SECONDS = 10.0
"""Time limit for a request head, after connecting and after each answer, in seconds."""
TAKE_SECONDS = 20.0
"""Time limit for reading some of the pending output, in seconds."""


class TimedProtocol(H11Protocol):
    """HTTP/1.1 with time limits for sending requests and reading answers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self._lost = self._ending = False
        self._untaken: asyncio.TimerHandle | None = None
        self._make_room()
        self.loop.call_later(HEAD_SECONDS, self._close_if_silent, self.cycle)
        self.loop.call_later(HEAD_SECONDS, self._end_if_closing)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Pauses writing, and drops the connection unless its client reads within `TAKE_SECONDS`, for errors too."""
        self._untaken = self.loop.call_later(TAKE_SECONDS, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

    def _taken(self) -> None:
        if self._untaken is not None:
            self._untaken.cancel()

    def _make_room(self) -> None:
        """Above the limit, drops the connection that has been silent for longest, so that strangers keep nobody out."""
        if len(self.connections) < MOST_CONNECTIONS:
            return
        silent = [one for one in self.connections if isinstance(one, TimedProtocol) and one.cycle is None]
        oldest = min(silent, key=lambda one: one.since)  # this one at least
        self.connections.discard(oldest)
        oldest.transport.abort()

    def _end_if_closing(self) -> None:
        """Aborts a closing connection whose peer does not read the rest, which may never happen."""
        if self._lost:
            return
        if self._ending:
            self.transport.abort()
            return
        self._ending = self.transport.is_closing()
        self.loop.call_later(HEAD_SECONDS, self._end_if_closing)

    def on_response_complete(self) -> None:
        # One byte ends uvicorn's keep-alive timeout, and the head may then never end.
        self.loop.call_later(HEAD_SECONDS, self._close_if_silent, self.cycle)
        super().on_response_complete()

    def _close_if_silent(self, answered: object) -> None:
        """Closes the connection unless a request came since `answered`, the newest one then; None before the first."""
        if self.cycle is answered and not self.transport.is_closing():
            self.transport.close()


class GatewayUvicorn(uvicorn.Server):
    """Uvicorn server that leaves signals to its owner."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def loopback_socket(address: str, port: int) -> socket.socket:
    """Returns a TCP socket bound to this address that does not listen yet. Raises ModelError if the port is taken."""
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((address, port))
    except OSError as error:
        made.close()
        raise ModelError(
            f"cannot listen on {address} port {port}: {error.strerror}", hint="set gateway.port to another one"
        ) from error
    return made


class GatewayServer:
    """Context manager that serves the gateway's application on a socket, in its own thread."""

    def __init__(self, app: ASGIApp, sock: socket.socket) -> None:
        self._socket = sock
        self._server = GatewayUvicorn(
            http_config(app, http=TimedProtocol, limit_concurrency=MOST_CONNECTIONS, timeout_keep_alive=30)
        )
        run = self._server.run
        self._thread = threading.Thread(target=run, kwargs={"sockets": [sock]}, name="gateway", daemon=True)

    def __enter__(self) -> GatewayServer:
        self._socket.listen(128)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
