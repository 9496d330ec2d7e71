"""The check of the network takes a way that is open for one: where anything may go out, it says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import own_network
import pytest

from runtime.conformance.network import ATTEMPTS

NOBODY_HERE = "tcp4 = tcp6 = udp4 = 1\naddress = '127.0.0.1'\nabstract, named, vsock = 'none', '/none', 9\n"


@pytest.mark.skipif(not own_network.CAN_BE_MADE, reason="a network of its own needs root and iproute2")
def test_whoever_has_a_network_reaches_other_networks() -> None:
    with own_network.network() as name:
        for family, near in (("-4", own_network.NEAR), ("-6", own_network.NEAR_6)):
            own_network.ip("-n", name, family, "route", "add", "default", "via", near)
        ran = subprocess.run(
            ["ip", "netns", "exec", name, sys.executable, "-c", NOBODY_HERE + ATTEMPTS],
            env={
                **os.environ,
                "RES_OPTIONS": "timeout:1 attempts:1",
            },  # resolv.conf(5): the usual ten seconds for nobody
            capture_output=True,
            check=True,
            timeout=60,
        )
    reached, refused = json.loads(ran.stdout)
    assert {"another network", "another network by IPv6", "link-local", "DNS by hand"} <= set(reached)
    assert refused["IPv4 loopback"] == "ConnectionRefusedError"
