"""Two hosts with a network between them, each with an address of its own: network namespaces and a cable."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray_nodes import LIMITS, Nodes, listeners

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip") is None, reason="network namespaces need root and iproute2"
)
DRIVER = """
import json, subprocess, sys, time
from runtime.cluster import ClusterSessions
from runtime.settings import ClusterSettings
from runtime.errors import InfrastructureError
from runtime.sandbox import Limits

def until(holds, seconds):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)

settings, limits, cable = sys.argv[1:]
said = {}
with ClusterSessions(ClusterSettings.model_validate_json(settings), Limits.model_validate_json(limits)) as pool:
    here, there = sorted((pool.open() for _ in range(2)), key=lambda session: session.id)
    for session in (here, there):
        session.run("x = 7")
    said["hosts"] = [here.host, there.host]
    said["answers"] = [session.run("print(x)").output for session in (here, there)]
    subprocess.run(["ip", "link", "set", cable, "down"], check=True)
    began = time.monotonic()
    try:
        said["cut"] = there.run("print(x)").output
    except InfrastructureError as error:
        said["cut"] = type(error).__name__
    said["seconds"] = time.monotonic() - began
    said["here"] = here.run("print(x)").output
    said["next"] = pool.open().host
    subprocess.run(["ip", "link", "set", cable, "up"], check=True)
    until(lambda: pool.hosts()[there.host].value == "ready", 120)
    said["again"] = sorted({pool.open().host for _ in range(4)})
print(json.dumps(said))
"""


@pytest.fixture
def cable() -> Iterator[str]:
    """Namespaces a and b, 10.213.N.1 and 10.213.N.2; what their names have in common."""
    name = f"rc{os.getpid()}"
    net = f"10.213.{os.getpid() % 250}"
    try:
        for end in "ab":
            ip("netns", "add", f"{name}{end}")
            ip("-n", f"{name}{end}", "link", "set", "lo", "up")
        ip("link", "add", f"{name}a", "netns", f"{name}a", "type", "veth", "peer", f"{name}b", "netns", f"{name}b")
        for end, number in (("a", 1), ("b", 2)):
            ip("-n", f"{name}{end}", "addr", "add", f"{net}.{number}/24", "dev", f"{name}{end}")
            ip("-n", f"{name}{end}", "link", "set", f"{name}{end}", "up")
        yield name
    finally:
        for end in "ab":
            subprocess.run(["ip", "netns", "del", f"{name}{end}"], check=False)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, timeout=120)


@pytest.mark.slow  # `test_cluster_over_ray.py` loses and finds hosts on one network
def test_two_hosts_work_together_are_parted_and_find_each_other_again(root_dir: Path, cable: str) -> None:
    net = f"10.213.{os.getpid() % 250}"
    # `ip netns exec` would hide the control groups.
    inside = {end: ["nsenter", f"--net=/run/netns/{cable}{end}"] for end in "ab"}
    nodes = Nodes(root_dir, [f"{net}.1", f"{net}.2"], [inside["a"], inside["b"]])
    try:
        nodes.begin(0)
        nodes.wait(0)
        nodes.begin(1)
        nodes.wait(1)
        for number in range(2):
            found = listeners([member.pid for member in nodes.members(number)])
            assert {address for address, _ in found} == {nodes.addresses[number]}
        settings = nodes.driver(lost_seconds=15, retry_seconds=1).model_dump_json()
        driver = subprocess.run(
            [*inside["a"], sys.executable, "-I", "-c", DRIVER, settings, LIMITS.model_dump_json(), f"{cable}a"],
            capture_output=True,
            text=True,
            timeout=280,
        )
        assert driver.returncode == 0, driver.stderr
        report = json.loads(driver.stdout)
        assert report.pop("seconds") < 1200
        assert report == {
            "hosts": ["host-0", "host-1"],
            "answers": ["7\n", "7\n"],
            "cut": "HostLostError",
            "here": "7\n",
            "next": "host-0",
            "again": ["host-0", "host-1"],
        }
    finally:
        left = nodes.close()
    assert left == []
