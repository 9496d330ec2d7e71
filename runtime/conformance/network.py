"""Checks that nothing leaves through a socket: by guest reports, and by arrivals at host listeners.

Invariants: only this host, documentation ranges (RFC 5737, RFC 3849), the unused part of the link-local range (RFC
3927) and a reserved name (RFC 2606) are contacted, so a hole reaches nobody else. As nobody answers there, a connection
that is not refused immediately, and a resolver's "no such name", count as ways out.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.conformance.check import Figures, Subject, answered, check, require

ATTEMPTS = """import json, socket
def tried(name, attempt):
    try:
        attempt()
    except Exception as error:
        if isinstance(error, TimeoutError) and name in far:
            reached.append(name)
        else:
            refused[name] = type(error).__name__
    else:
        reached.append(name)
def stream(family, address):
    def attempt():
        with socket.socket(family) as sock:
            sock.settimeout(0.3)
            sock.connect(address)
    return attempt
def datagram(family, address):
    def attempt():
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0.3)
            sock.connect(address)
            sock.send(b'hello')
            sock.recv(16)
    return attempt
def question():
    try:
        socket.getaddrinfo('name.invalid', 80)
    except socket.gaierror as error:
        if error.errno != socket.EAI_NONAME:
            raise
refused, reached = {}, []
far = {'another network', 'another network by IPv6', 'link-local', 'DNS by hand'}
tried('IPv4 loopback', stream(socket.AF_INET, ('127.0.0.1', tcp4)))
tried('IPv4 address of the host', stream(socket.AF_INET, (address, tcp4)))
tried('IPv6 loopback', stream(socket.AF_INET6, ('::1', tcp6)))
tried('UDP loopback', datagram(socket.AF_INET, ('127.0.0.1', udp4)))
tried('another network', stream(socket.AF_INET, ('203.0.113.1', 443)))
tried('another network by IPv6', stream(socket.AF_INET6, ('2001:db8::1', 443)))
tried('link-local', stream(socket.AF_INET, ('169.254.0.1', 80)))
tried('DNS', question)
tried('DNS by hand', datagram(socket.AF_INET, ('198.51.100.1', 53)))
tried('abstract socket', stream(socket.AF_UNIX, '\\0' + abstract))
tried('named socket', stream(socket.AF_UNIX, named))
tried('vsock to the host', stream(getattr(socket, 'AF_VSOCK', 40), (2, vsock)))
for name, arguments in (
    ('raw socket', (socket.AF_INET, socket.SOCK_RAW, 1)),
    ('raw IPv6 socket', (socket.AF_INET6, socket.SOCK_RAW, 58)),
    ('packet socket', (17, socket.SOCK_RAW, 0x0300)),
):
    tried(name, lambda: socket.socket(*arguments))
print(json.dumps([reached, refused]))
"""
FORMS = 15


@dataclass
class Listeners:
    """Listening sockets on the host that a guest must not reach."""

    values: dict[str, object] = field(default_factory=dict)
    sockets: list[socket.socket] = field(default_factory=list)

    def visited(self) -> list[str]:
        """Returns the addresses of host sockets at which something arrived."""
        found = []
        for sock in self.sockets:
            with contextlib.suppress(BlockingIOError):
                if sock.type == socket.SOCK_DGRAM:
                    sock.recv(16)
                else:
                    sock.accept()[0].close()
                found.append(str(sock.getsockname()))
        return found


@contextlib.contextmanager
def listeners(subject: Subject) -> Iterator[Listeners]:
    """Opens one host listener of each kind in the block; a kind that the host lacks gets an unused address."""
    named = str(subject.scratch / "s")
    wanted: dict[str, tuple[int, int, tuple[str, int] | tuple[int, int] | str]] = {
        "tcp4": (socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0)),  # noqa: S104 - that is the point
        "tcp6": (socket.AF_INET6, socket.SOCK_STREAM, ("::", 0)),
        "udp4": (socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 0)),  # noqa: S104
        "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{subject.token}"),
        "named": (socket.AF_UNIX, socket.SOCK_STREAM, named),
        "vsock": (getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM, (0xFFFFFFFF, 0xFFFFFFFF)),
    }
    open_now = Listeners({"abstract": subject.token, "named": named, "address": _own_address()})
    with contextlib.ExitStack() as stack:
        for name, (family, kind, address) in wanted.items():
            try:
                sock = stack.enter_context(socket.socket(family, kind))
                sock.bind(address)
                if kind == socket.SOCK_STREAM:
                    sock.listen(8)
            except OSError:
                open_now.values.setdefault(name, 9)
                continue
            sock.setblocking(False)
            open_now.sockets.append(sock)
            if name not in open_now.values:
                open_now.values[name] = sock.getsockname()[1]
        yield open_now


def _own_address() -> str:
    """Returns a non-loopback address of this host if there is one; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("203.0.113.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(sock.getsockname()[0])


@check(
    "no network",
    "No code reaches anything by IPv4, IPv6, DNS, UDP, raw or packet sockets, abstract or named sockets or vsock.",
)
def no_network(subject: Subject) -> Figures:
    with listeners(subject) as here, subject.sandbox() as box:
        names = "\n".join(f"{name} = {value!r}" for name, value in here.values.items())
        answered(box.run(names))
        reached, refused = json.loads(answered(box.run(ATTEMPTS)))
        visited = here.visited()
    require(not reached, f"code in the sandbox reached: {', '.join(map(str, reached))}")
    require(not visited, f"something from the sandbox arrived at {', '.join(visited)}")
    require(len(refused) == FORMS, f"only {len(refused)} of {FORMS} forms of network were tried")
    return {"forms": float(len(refused)), "listeners": float(len(here.sockets))}


CHECKS = (no_network,)
