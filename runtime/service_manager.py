"""Messages between a service manager and this process: status by sd_notify(3), secrets, and sockets.

Invariants: without NOTIFY_SOCKET nothing is sent; a service manager that does not listen causes no failure. The
variables for status and sockets are removed from the environment, so no child speaks for this process or takes its
sockets. A secret is in a file visible only to this process ($CREDENTIALS_DIRECTORY, systemd.exec(5)), never in a unit;
an environment variable, for programs started by hand, takes precedence.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, MutableMapping
from pathlib import Path

NOTIFY, WATCHDOG, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
CREDENTIALS = "CREDENTIALS_DIRECTORY"
LISTEN, LISTEN_PID, LISTEN_NAMES = "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"
FIRST_DESCRIPTOR = 3
MOST_BYTES = 16 << 10


class ServiceManager:
    """Reports of this service to its service manager: the notification socket's `address`, and the watchdog timeout in
    `seconds`; None without a watchdog."""

    def __init__(self, address: str = "", seconds: float | None = None) -> None:
        self.address = address
        self.seconds = seconds

    @classmethod
    def adopt(cls, environ: MutableMapping[str, str] = os.environ) -> ServiceManager:
        """Creates the connection to the service manager from its environment variables, and removes these."""
        address = environ.pop(NOTIFY, "")
        micros, pid = environ.pop(WATCHDOG, ""), environ.pop(WATCHDOG_PID, "")
        mine = address and micros.isascii() and micros.isdigit() and int(micros) > 0 and pid in ("", str(os.getpid()))
        return cls(address, int(micros) / 1e6 if mine else None)

    def ready(self, status: str) -> None:
        """Reports to the service manager that the service works from now on."""
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def stopping(self) -> None:
        """Reports an orderly shutdown to the service manager."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def alive(self) -> None:
        """Tells the service manager that the service is alive, which restarts the watchdog timeout."""
        self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self.address:
            return
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out,
        ):
            out.sendto(text.encode(), address)


def _line(text: str) -> str:
    return text.replace("\n", " ")


def held_sockets(environ: MutableMapping[str, str] = os.environ) -> tuple[socket.socket, ...]:
    """Returns the listening sockets passed by a service manager: descriptors from 3 on (sd_listen_fds(3)).

    Empty if they are for another process. Raises OSError for a descriptor that is not a socket.
    """
    count, pid = environ.pop(LISTEN, ""), environ.pop(LISTEN_PID, "")
    environ.pop(LISTEN_NAMES, None)
    if pid != str(os.getpid()) or not (count.isascii() and count.isdigit()):
        return ()
    descriptors = range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + int(count))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return tuple(socket.socket(fileno=descriptor) for descriptor in descriptors)


def credential(name: str, variable: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns a secret from an environment variable, or else from the service manager's credential file; None if absent
    or empty. Raises OSError for an unreadable credential."""
    if given := environ.get(variable, "").strip():
        return given
    folder = environ.get(CREDENTIALS, "")
    if not folder:
        return None
    try:
        with (Path(folder) / name).open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace").strip() or None
    except FileNotFoundError:
        return None
