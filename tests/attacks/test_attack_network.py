"""Rows 55 and 56 of the catalogue: the way out through any socket. Real listeners of the host wait for a visitor."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from attack_kit import OK, House

from runtime.sandbox import Tier

REACHING = """import os, socket
reached = []
def attempt(what, action):
    try: reached.append((what, action()))
    except (OSError, AttributeError, ValueError, OverflowError): pass
def connect(family, address, kind=socket.SOCK_STREAM):
    def action():
        with socket.socket(family, kind) as ours:
            ours.settimeout(0.1)
            ours.connect(address)
            ours.send(b'visitor')
            return ours.recv(1) if kind == socket.SOCK_STREAM else address
    return action
"""
NAMES = """for name in ('localhost', 'example.com', 'metadata.google.internal', 'ip6-localhost'):
    attempt(name, lambda: socket.getaddrinfo(name, 80))
"""
ODD = """families = {'key': 15, 'netlink': 16, 'packet': 17, 'rds': 21, 'llc': 26, 'can': 29, 'tipc': 30,
    'bluetooth': 31, 'alg': 38, 'vsock': 40, 'qipcrtr': 42, 'smc': 43, 'xdp': 44, 'mctp': 45}
def use(family, kind):
    with socket.socket(family, kind) as ours:
        if family == 16:
            ours.bind((0, 0))
            ours.send(bytes.fromhex('140000001200010300000000000000000011000000'))
            return ours.recv(1 << 16).count(b'eth')
        if family == 40:
            ours.settimeout(0.1)
            ours.connect((2, 22))
        return family
for name, family in families.items():
    for kind in (1, 2, 3, 5): attempt(name, lambda: use(family, kind))
print([found for found in reached if found != ('netlink', 0)])
"""
RAW = """def raw(family, protocol):
    with socket.socket(family, socket.SOCK_RAW, protocol): return True
for protocol in (1, 6, 17, 58, 255):
    for family in (socket.AF_INET, socket.AF_INET6): attempt('raw', lambda: raw(family, protocol))
"""
FAR = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "169.254.169.254",
    "10.0.0.1",
    "172.17.0.1",
    "192.168.1.1",
    "1.1.1.1",
    "255.255.255.255",
)
FAR_6 = ("::1", "::", "fe80::1", "fd00:ec2::254", "2606:4700:4700::1111", "::ffff:127.0.0.1")
PORTS = (22, 53, 80, 443, 8000)
UNIX = (
    "/run/docker.sock", "/var/run/docker.sock", "/run/systemd/private", "/run/dbus/system_bus_socket",
    "\0/tmp/.X11-unix/X0", "/tmp/.X11-unix/X0", "/run/assay/broker",
)  # fmt: skip


class Listeners:
    """Sockets of the host that anybody who gets out would reach."""

    def __init__(self, folder: Path) -> None:
        self.name = f"attack-{os.getpid()}-{os.urandom(4).hex()}"
        self.path = str(folder / "s")
        self.sockets = [
            self._bound(socket.AF_INET, ("0.0.0.0", 0)),
            self._bound(socket.AF_UNIX, "\0" + self.name),
            self._bound(socket.AF_UNIX, self.path),
            self._bound(socket.AF_INET, ("0.0.0.0", 0), socket.SOCK_DGRAM),
        ]
        with contextlib.suppress(OSError):  # a machine without IPv6
            self.sockets.append(self._bound(socket.AF_INET6, ("::", 0)))
        self.tcp, self.udp = self.sockets[0].getsockname()[1], self.sockets[3].getsockname()[1]
        self.tcp6 = self.sockets[4].getsockname()[1] if len(self.sockets) > 4 else self.tcp

    def _bound(self, family: int, address: object, kind: int = socket.SOCK_STREAM) -> socket.socket:
        made = socket.socket(family, kind)
        made.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            made.listen()
        return made

    def visited(self) -> bool:
        with selectors.DefaultSelector() as selector:
            for listener in self.sockets:
                selector.register(listener, selectors.EVENT_READ)
            return bool(selector.select(0.05))

    def close(self) -> None:
        for listener in self.sockets:
            listener.close()


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    found = Listeners(tmp_path_factory.mktemp("sockets"))
    yield found
    found.close()


def test_the_listeners_are_there_for_those_who_may(listeners: Listeners) -> None:
    with socket.create_connection(("127.0.0.1", listeners.tcp)), socket.socket(socket.AF_UNIX) as ours:
        ours.connect("\0" + listeners.name)
        assert listeners.visited()
        listeners.sockets[0].accept()[0].close()
        listeners.sockets[1].accept()[0].close()
    assert not listeners.visited()


def test_no_address_of_the_internet_is_reached(house: House, listeners: Listeners) -> None:
    code = (
        REACHING
        + f"""for address in {FAR}:
    for port in ({listeners.tcp}, *{PORTS}): attempt((address, port), connect(socket.AF_INET, (address, port)))
for address in {FAR_6}:
    for port in ({listeners.tcp6}, 22): attempt((address, port), connect(socket.AF_INET6, (address, port)))
print(reached)"""
    )
    with house.beside_a_neighbour(), house.sandbox(call_seconds=5.0) as box:
        assert house.call(box, code).output == "[]\n"
    assert not listeners.visited()


def test_no_packet_gets_out(house: House, listeners: Listeners) -> None:
    """A send to nowhere may succeed; nothing arrives, and nothing comes back."""
    code = (
        REACHING
        + f"""def send(family, address):
    def action():
        with socket.socket(family, socket.SOCK_DGRAM) as ours:
            ours.settimeout(0.05)
            ours.sendto(b'visitor', address)
            return ours.recv(1)
    return action
for address in {FAR}:
    for port in ({listeners.udp}, 53): attempt(address, send(socket.AF_INET, (address, port)))
for address in {FAR_6}: attempt(address, send(socket.AF_INET6, (address, 53)))
{RAW}{NAMES}print([found for found in reached if found[0] != 'localhost'])"""
    )
    with house.sandbox(call_seconds=5.0) as box:
        assert house.call(box, code).output == "[]\n"
    assert not listeners.visited()


def test_no_unix_socket_of_the_host_is_reached(house: House, listeners: Listeners) -> None:
    names = ("\0" + listeners.name, listeners.path, *UNIX)
    code = (
        REACHING
        + f"""for name in {names}:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        attempt(name, connect(socket.AF_UNIX, name, kind))
print(reached)"""
    )
    with house.sandbox() as box:
        assert house.call(box, code).output == "[]\n"
    assert not listeners.visited()


def test_two_sandboxes_cannot_meet(house: House) -> None:
    serve = """import socket, threading
for family, address in ((socket.AF_UNIX, '\\0meet'), (socket.AF_INET, ('0.0.0.0', 7777))):
    try:
        ours = socket.socket(family); ours.bind(address); ours.listen()
        threading.Thread(target=ours.accept, daemon=True).start()
    except OSError: pass
"""
    visit = (
        REACHING
        + """attempt('unix', connect(socket.AF_UNIX, '\\0meet'))
attempt('tcp', connect(socket.AF_INET, ('127.0.0.1', 7777)))
print(reached)"""
    )
    with house.sandbox() as one, house.sandbox() as other:
        assert house.call(one, serve).status is OK
        assert house.call(other, visit).output == "[]\n"


def test_no_odd_family_leads_out(house: House) -> None:
    with house.sandbox(call_seconds=3.0) as box:
        result = house.call(box, REACHING + ODD)
        assert (result.status, result.output) == (OK, "[]\n")


def test_the_process_tier_has_no_socket_at_all(house: House, listeners: Listeners) -> None:
    with house.pool.open(tier=Tier.PROCESS) as session:
        result = session.run(f"import socket\nsocket.create_connection(('127.0.0.1', {listeners.tcp}), 0.2)")
        assert result.status is not OK
    assert not listeners.visited()
