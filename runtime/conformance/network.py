"""The check that nothing gets out through a socket: what the guest says, and what the host's own listeners hear."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

from runtime.conformance.check import Check, Figures, Subject, answered, require

ATTEMPTS = """import json, socket
def tried(name, attempt):
    try:
        attempt()
    except Exception as error:
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
    socket.getaddrinfo('example.com', 80)
refused, reached = {}, []
tried('IPv4 loopback', stream(socket.AF_INET, ('127.0.0.1', tcp4)))
tried('IPv4 address of the host', stream(socket.AF_INET, (address, tcp4)))
tried('IPv6 loopback', stream(socket.AF_INET6, ('::1', tcp6)))
tried('UDP loopback', datagram(socket.AF_INET, ('127.0.0.1', udp4)))
tried('the Internet', stream(socket.AF_INET, ('1.1.1.1', 443)))
tried('the Internet by IPv6', stream(socket.AF_INET6, ('2606:4700:4700::1111', 443)))
tried('metadata', stream(socket.AF_INET, ('169.254.169.254', 80)))
tried('DNS', question)
tried('DNS by hand', datagram(socket.AF_INET, ('8.8.8.8', 53)))
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
    """Sockets of the host that a guest must not reach."""

    places: dict[str, object] = field(default_factory=dict)
    sockets: list[socket.socket] = field(default_factory=list)

    def heard(self) -> list[str]:
        """The names of those that something arrived at."""
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
    """One of each kind that this host has; a kind that it lacks leads to a place where nobody listens."""
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
        for name, (family, kind, place) in wanted.items():
            try:
                sock = stack.enter_context(socket.socket(family, kind))
                sock.bind(place)
                if kind == socket.SOCK_STREAM:
                    sock.listen(8)
            except OSError:
                open_now.places.setdefault(name, 9)
                continue
            sock.setblocking(False)
            open_now.sockets.append(sock)
            if name not in open_now.places:
                open_now.places[name] = sock.getsockname()[1]
        yield open_now


def _own_address() -> str:
    """An address of this host other than loopback, where it has one; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(sock.getsockname()[0])


def no_network(subject: Subject) -> Figures:
    with listeners(subject) as here, subject.sandbox() as box:
        names = "\n".join(f"{name} = {value!r}" for name, value in here.places.items())
        answered(box.run(names))
        reached, refused = json.loads(answered(box.run(ATTEMPTS)))
        heard = here.heard()
    require(not reached, f"code in the sandbox reached: {', '.join(map(str, reached))}")
    require(not heard, f"the host heard from the sandbox at {', '.join(heard)}")
    require(len(refused) == FORMS, f"only {len(refused)} of {FORMS} forms of network were tried")
    return {"forms": float(len(refused)), "listeners": float(len(here.sockets))}


CHECKS = (
    Check(
        "no network",
        "No code reaches anything by IPv4, IPv6, DNS, UDP, raw or packet sockets, abstract or named sockets or vsock.",
        no_network,
    ),
)
