"""Serves the gateway on this machine's loopback address, and authenticates requests before their body is read.

Invariants: nothing listens on another address; connections without a timely request are closed, also after an answer,
and so are connections that do not read their answer; there are never more than `MOST_CONNECTIONS`.

A request must name the loopback address as its host, which defeats DNS rebinding; browser requests, which have an
`Origin`, are refused; so are requests without a valid token. Revoking a token takes effect with the next request.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from appliance.gateway.replies import GatewayError
from appliance.gateway.tokens import GatewayToken, GatewayTokenError, read_tokens, token_file, token_of
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


NAMES = ("127.0.0.1", "localhost", "[::1]")
UNKNOWN = (
    "the token is missing, wrong or revoked: make one with `assay gateway token new NAME`, and give it as the api_key"
)


class KnownTokens:
    """Gateway tokens from the token file, reloaded when it changes."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._seen: tuple[int, int] | None = None
        self._known: tuple[GatewayToken, ...] = ()

    def __call__(self) -> tuple[GatewayToken, ...]:
        """Returns the gateway's tokens as the token file has them now. Raises GatewayError for an unreadable file."""
        try:
            found = token_file(self._data).stat()
            seen = (found.st_mtime_ns, found.st_ino)
            if seen != self._seen:
                self._known, self._seen = read_tokens(self._data), seen
        except FileNotFoundError:
            self._known, self._seen = (), None
        except (OSError, GatewayTokenError) as error:
            self._known, self._seen = (), None
            raise GatewayError(503, f"the tokens cannot be read: {error}") from error
        return self._known


class GatewayDoor:
    """ASGI middleware that refuses requests without a valid gateway token; `scope["token"]` is then the token."""

    def __init__(self, app: ASGIApp, tokens: Callable[[], tuple[GatewayToken, ...]], port: int) -> None:
        self._app, self._tokens = app, tokens
        self._hosts = {f"{name}:{port}" for name in NAMES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            token = self._let_in(Headers(scope=scope))
        except GatewayError as error:
            await error.response(scope["path"])(scope, receive, send)
            return
        await self._app({**scope, "token": token}, receive, send)

    def _let_in(self, headers: Headers) -> GatewayToken:
        """Returns the gateway token of a request. Raises GatewayError for a wrong host, a browser, or a missing or
        invalid token."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise GatewayError(403, "this gateway answers only on its loopback address", code="wrong_host")
        if "origin" in headers or headers.get("sec-fetch-site", "none") != "none":
            raise GatewayError(403, "this gateway does not answer browser pages", code="wrong_origin")
        sent = headers.getlist("authorization")
        scheme, _, secret = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
        if not sent and len(keys := headers.getlist("x-api-key")) == 1:  # as Anthropic's clients send it
            scheme, secret = "bearer", keys[0]
        found = token_of(secret.strip(), self._tokens()) if scheme.lower() == "bearer" else None
        if found is None:
            raise GatewayError(401, UNKNOWN, code="invalid_api_key")
        return found
