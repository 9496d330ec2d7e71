"""Sends single requests to the control API over its Unix socket.

Invariants: each request has its own connection, so nothing needs closing; answers are validated before use. Requests
raise DaemonNotRunning or DaemonSilent without an answer, and ApiError with the daemon's message, hint and exit code on
refusal.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError

from appliance.client.failures import ApiError, DaemonNotRunning, DaemonSilent, DaemonUnreachable
from appliance.system.lock_owner import LockOwner, owner_of
from policies.errors import Refusal
from runtime.model import FrozenModel

T = TypeVar("T")


class Failure(FrozenModel):
    """Body of every error answer of the control API."""

    message: str
    hint: str
    exit_code: int
    refusal: Refusal | None = None
    """Reason why a signed statement has no effect; None for other errors."""


class ApiConnection:
    """Transport of all control API calls."""

    def __init__(self, socket_path: Path, *, timeout_seconds: float = 60.0) -> None:
        """Creates a client. A request without an answer for `timeout_seconds` raises DaemonSilent; generous, because
        its expiry says nothing about the daemon."""
        self._socket_path = socket_path
        self._timeout_seconds = timeout_seconds

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        known = headers or ({"content-type": "application/json"} if body is not None else {})
        target = f"{path}?{urlencode(query)}" if query else path
        with closing(_UnixConnection(self._socket_path, self._timeout_seconds)) as connection:
            try:
                connection.connect()
            except (TimeoutError, BlockingIOError) as error:
                raise self._silent() from error
            except PermissionError as error:
                raise DaemonUnreachable(self._socket_path) from error
            except OSError as error:
                raise DaemonNotRunning(self._socket_path, self._owner()) from error
            try:
                with suppress(BrokenPipeError):  # a refusal may come before all of the body was read
                    connection.request(method, target, body=body, headers={**known, "connection": "close"})
                answer = connection.getresponse()
                content = answer.read()
            except TimeoutError as error:
                raise self._silent() from error
            except (OSError, HTTPException) as error:
                raise ApiError(
                    f"the daemon closed the connection: {type(error).__name__}", hint="see its log, and try again"
                ) from error
        if 200 <= answer.status < 300:
            return content
        raise _failure(answer.status, content)

    def _owner(self) -> LockOwner | None:
        return owner_of(self._socket_path.with_name("lock"))

    def _silent(self) -> DaemonSilent:
        return DaemonSilent(self._socket_path, self._timeout_seconds, self._owner())

    def read(self, content: bytes, shape: type[T]) -> T:
        try:
            return TypeAdapter(shape).validate_json(content)
        except ValidationError as error:
            raise ApiError(
                f"unexpected answer from the daemon ({error.error_count()} differences)",
                hint="the daemon has another version: restart `assay serve` after an upgrade",
            ) from error


class _UnixConnection(HTTPConnection):
    def __init__(self, path: Path, timeout_seconds: float) -> None:
        super().__init__("assay", timeout=timeout_seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _failure(status: int, content: bytes) -> ApiError:
    try:
        failure = Failure.model_validate_json(content)
    except ValidationError:
        return ApiError(f"the daemon answered {status}: {content[:200]!r}", hint="see the daemon's log")
    return ApiError(failure.message, hint=failure.hint, exit_code=failure.exit_code, refusal=failure.refusal)
