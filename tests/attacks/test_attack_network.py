"""Rows 55 and 56 of the catalogue: the way out through any socket.

Real listeners wait for a visitor: of this host, and of hosts in a network that the test makes itself.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import own_network
import pytest
from attack_kit import OK, AttackBench
from own_network import BEYOND, BEYOND_6, NEAR, NEAR_6, NEXT, NEXT_6, Listeners

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
NAMES = """for name in ('localhost', 'name.invalid', 'metadata.test', 'ip6-localhost'):
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
NOBODY = "169.254.0.1"
"""Link-local, from the part of the range that stays unused (RFC 3927): where a cloud's metadata would be, nobody is."""
FAR = ("127.0.0.1", "127.8.8.8", "0.0.0.0", NEAR, NEXT, BEYOND, NOBODY, "255.255.255.255")
FAR_6 = ("::1", "::", "fe80::1", NEAR_6, NEXT_6, BEYOND_6, "::ffff:127.0.0.1")
PORTS = (22, 53, 80, 443, 8000)
UNIX = (
    "/run/docker.sock", "/var/run/docker.sock", "/run/systemd/private", "/run/dbus/system_bus_socket",
    "\0/tmp/.X11-unix/X0", "/tmp/.X11-unix/X0", "/run/assay/broker",
)  # fmt: skip


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    with contextlib.ExitStack() as stack:
        namespace = stack.enter_context(own_network.network()) if own_network.CAN_BE_MADE else None
        found = Listeners(tmp_path_factory.mktemp("sockets"), namespace)
        stack.callback(found.close)
        yield found


def streams(listeners: Listeners) -> str:
    return (
        REACHING
        + f"""for address in {FAR}:
    for port in ({listeners.tcp}, *{PORTS}): attempt((address, port), connect(socket.AF_INET, (address, port)))
for address in {FAR_6}:
    for port in ({listeners.tcp}, 22): attempt((address, port), connect(socket.AF_INET6, (address, port)))
"""
    )


def packets(listeners: Listeners) -> str:
    return (
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
for address in {FAR_6}: attempt(address, send(socket.AF_INET6, (address, {listeners.udp})))
"""
    )


def test_whoever_may_go_out_is_seen_by_the_listeners(listeners: Listeners) -> None:
    """The same attacks from outside of any sandbox; else the silence of the listeners would prove nothing."""
    ways = (len(listeners.sockets) - 2) // 2
    for attack in (streams(listeners), packets(listeners)):
        subprocess.run([sys.executable, "-c", attack], timeout=120, check=True)
        assert listeners.visits(1.0) == ways
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect("\0" + listeners.name)
        assert listeners.visits() == 1
    assert not listeners.visits()


def test_no_address_of_another_network_is_reached(bench: AttackBench, listeners: Listeners) -> None:
    with bench.beside_a_neighbour(), bench.sandbox(call_seconds=60.0) as box:
        assert bench.call(box, streams(listeners) + "print(reached)").output == "[]\n"
    assert not listeners.visits()


def test_no_packet_gets_out(bench: AttackBench, listeners: Listeners) -> None:
    """A send to nowhere may succeed; nothing arrives, and nothing comes back."""
    code = f"{packets(listeners)}{RAW}{NAMES}print([found for found in reached if found[0] != 'localhost'])"
    with bench.sandbox(call_seconds=60.0) as box:
        assert bench.call(box, code).output == "[]\n"
    assert not listeners.visits()


def test_no_unix_socket_of_the_host_is_reached(bench: AttackBench, listeners: Listeners) -> None:
    names = ("\0" + listeners.name, listeners.path, *UNIX)
    code = (
        REACHING
        + f"""for name in {names}:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        attempt(name, connect(socket.AF_UNIX, name, kind))
print(reached)"""
    )
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "[]\n"
    assert not listeners.visits()


def test_two_sandboxes_cannot_meet(bench: AttackBench) -> None:
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
    with bench.sandbox() as one, bench.sandbox() as other:
        assert bench.call(one, serve).status is OK
        assert bench.call(other, visit).output == "[]\n"


def test_no_odd_family_leads_out(bench: AttackBench) -> None:
    with bench.sandbox(call_seconds=60.0) as box:
        result = bench.call(box, REACHING + ODD)
        assert (result.status, result.output) == (OK, "[]\n")


def test_the_process_tier_has_no_socket_at_all(bench: AttackBench, listeners: Listeners) -> None:
    with bench.pool.open(tier=Tier.PROCESS) as session:
        result = session.run(f"import socket\nsocket.create_connection(('127.0.0.1', {listeners.tcp}), 0.2)")
        assert result.status is not OK
    assert not listeners.visits()
