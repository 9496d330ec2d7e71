"""The control API's socket: its location, its permissions, and leftovers of an earlier one.

Invariants: the socket has mode 0600 from the start; a request from any user but the daemon's and root is refused
unread. An existing socket is replaced only by the holder of the data folder's lock, and only if nobody listens on it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
from pathlib import Path

from uvicorn.protocols.http.h11_impl import H11Protocol

from appliance.client.connection import Failure
from appliance.daemon.contract import BrokenError, RequestError

MAX_PATH_BYTES = 100
"""Maximum length of the socket's path in bytes. The kernel allows 107; longer paths fail with obscure errors."""

STRANGER_SECONDS = 5

_UCRED = struct.Struct("3i")


def require_place(path: Path) -> bool:
    """Checks, without changes, that the control API can listen at `path`; True if a stale socket is there. Raises
    RequestError for an unsuitable path, BrokenError if it is in use."""
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        raise RequestError(
            f"the path of the control socket is longer than {MAX_PATH_BYTES} bytes: {path}",
            hint="set a shorter one with ASSAY_API__SOCKET, for example /run/assay/assay.sock, "
            "for the daemon and its clients",
        )
    return _is_left(path)


def listen(path: Path) -> socket.socket:
    """Returns a listening Unix socket at `path`, for this user only; a stale socket there is removed. Raises as
    `require_place` does."""
    if require_place(path):
        path.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        sock.bind(str(path))
        sock.listen(64)
    except OSError as error:
        sock.close()
        raise BrokenError(
            f"cannot listen on {path}: {error.strerror}",
            hint="make its folder writable for the user that runs the daemon, or set ASSAY_API__SOCKET",
        ) from error
    finally:
        os.umask(umask)
    return sock


def peer_user(sock: socket.socket) -> int:
    """Returns the user id of the process at the socket's other end, from the kernel."""
    _, user, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return int(user)


class OwnerOnlyProtocol(H11Protocol):
    """HTTP/1.1 for the daemon's own user and root; others get 403 and are disconnected."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._stranger = peer_user(transport.get_extra_info("socket")) not in (os.getuid(), 0)
        if self._stranger:
            self.transport = transport
            # Strangers may send one request and get the refusal, within a short time.
            self.loop.call_later(STRANGER_SECONDS, transport.close)
        else:
            super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._stranger:
            self.transport.write(_refusal())
            self.transport.close()
        else:
            super().data_received(data)

    def eof_received(self) -> None:
        if not self._stranger:
            super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stranger:
            super().connection_lost(exc)


def _refusal() -> bytes:
    failure = Failure(
        message="this daemon belongs to another user", hint="run the command as its user, or as root", exit_code=4
    )
    body = failure.model_dump_json().encode()
    head = f"HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body


def _is_left(path: Path) -> bool:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISSOCK(found.st_mode):
        raise RequestError(
            f"{path} exists and is not a socket", hint="move it away, or set ASSAY_API__SOCKET to another path"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError as error:
            raise BrokenError(f"{path} cannot be checked: {error}", hint="see who uses it: `ss -xlp`") from error
    raise BrokenError(
        f"another program listens on {path}",
        hint="it is a daemon of another data folder: set ASSAY_API__SOCKET to another path for one of them",
    )
