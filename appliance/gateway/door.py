"""Authenticates requests to the gateway before anything of their body is read.

Invariants: a request must name the loopback address as its host, which defeats DNS rebinding; browser requests, which
have an `Origin`, are refused; so are requests without a valid token. Revoking a token takes effect with the next
request.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from appliance.gateway.replies import GatewayError
from appliance.gateway.tokens import GatewayToken, GatewayTokenError, read_tokens, token_file, token_of

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
            await error.response(scope, receive, send)
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
        found = token_of(secret.strip(), self._tokens()) if scheme.lower() == "bearer" else None
        if found is None:
            raise GatewayError(401, UNKNOWN, code="invalid_api_key")
        return found
