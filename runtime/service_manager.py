"""What a service manager and a process that it started say to each other: news, by sd_notify(3), secrets, and sockets.

What always holds: where nobody asked (no NOTIFY_SOCKET) nothing is sent; a service manager that does not listen ends
nothing. The variables of news and of sockets are taken out of the environment, so that no child speaks for this process
or takes what it was given. A secret lies in a file that only its own process sees ($CREDENTIALS_DIRECTORY,
systemd.exec(5)), and in no unit; a variable, which whoever starts a program by hand sets, comes first.
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
    """Who waits for news at that `address`, and after how many `seconds` without a sign of life it ends this process;
    None where it does not."""

    def __init__(self, address: str = "", seconds: float | None = None) -> None:
        self.address = address
        self.seconds = seconds

    @classmethod
    def adopt(cls, environ: MutableMapping[str, str] = os.environ) -> ServiceManager:
        """As the environment says, from which it is taken."""
        address = environ.pop(NOTIFY, "")
        micros, pid = environ.pop(WATCHDOG, ""), environ.pop(WATCHDOG_PID, "")
        mine = address and micros.isascii() and micros.isdigit() and int(micros) > 0 and pid in ("", str(os.getpid()))
        return cls(address, int(micros) / 1e6 if mine else None)

    def ready(self, status: str) -> None:
        """What was asked for works from now on."""
        self._send(f"READY=1\nSTATUS={_line(status)}")

    def stopping(self) -> None:
        """The end has begun, and is no failure."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def alive(self) -> None:
        """Begins the time anew after which this process counts as hanging."""
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
    """The sockets that a service manager listens with before this process and after it, and gave to it: descriptors
    from 3 on (sd_listen_fds(3)). None where they are for another process. Raises OSError for what is no socket."""
    count, pid = environ.pop(LISTEN, ""), environ.pop(LISTEN_PID, "")
    environ.pop(LISTEN_NAMES, None)
    if pid != str(os.getpid()) or not (count.isascii() and count.isdigit()):
        return ()
    descriptors = range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + int(count))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return tuple(socket.socket(fileno=descriptor) for descriptor in descriptors)


def credential(name: str, variable: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The secret in the variable, otherwise in the credential of that name; None where neither is there, or it is
    empty. Raises OSError for a credential that is there and cannot be read."""
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
