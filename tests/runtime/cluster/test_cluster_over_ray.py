"""Three hosts in one Ray cluster, with real sandboxes: what it lets in, and what happens when one of them dies.

Every test leaves three hosts behind for the next one.
"""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from ray_nodes import (
    LIMITS,
    PORT,
    Nodes,
    children,
    command,
    grpc_status,
    kill,
    listeners,
    pids,
    running,
    standing,
    until,
)

from runtime.cluster import ClusterSessions
from runtime.cluster.folder import clear
from runtime.cluster.placement import Health
from runtime.errors import BadRequestError, InfrastructureError, RefusedError
from runtime.sandbox import CallResult, CallStatus, Session, Tier
from runtime.settings import PORTS

METHODS = [
    "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
    "/ray.rpc.NodeManagerService/RequestWorkerLease",
    "/ray.rpc.ObjectManagerService/Push",
    "/ray.rpc.CoreWorkerService/PushTask",
]


@pytest.fixture(scope="module")
def nodes(root_dir: Path) -> Iterator[Nodes]:
    with standing(root_dir, others=2) as made:
        yield made


@pytest.fixture(scope="module")
def pool(nodes: Nodes) -> Iterator[ClusterSessions]:
    with ClusterSessions(nodes.driver(lost_seconds=20, retry_seconds=1), LIMITS) as sessions:
        yield sessions
    until(lambda: gateways(nodes) == [], 120, "the gateway has ended")


@pytest.fixture(autouse=True)
def three_hosts(nodes: Nodes, pool: ClusterSessions) -> None:
    """Each test begins with them: one whose processes ended by themselves comes back by itself, and one that a failed
    test left dead is begun again."""
    for number in range(3):
        if nodes.processes[number].poll() is not None:
            nodes.begin(number)
            nodes.wait(number)
    ready = [Health.READY] * 3
    until(lambda: nodes.recorded(3) and list(pool.hosts().values()) == ready, 120, "three hosts are there")


def gateways(nodes: Nodes) -> list[int]:
    return [pid for pid in pids() if "runtime.cluster.gateway" in command(pid) and str(nodes.token) in command(pid)]


def on(host: str, pool: ClusterSessions) -> Session:
    """A session there."""
    opened = [pool.open(caller="test")]
    while not opened[-1].id.startswith(f"{host}/"):
        assert len(opened) < 50, f"no session came to {host}"
        opened.append(pool.open(caller="test"))
    for other in opened[:-1]:
        other.close()
    return opened[-1]


def test_sessions_go_to_every_host_and_keep_their_state_there(pool: ClusterSessions) -> None:
    sessions = [pool.open() for _ in range(6)]
    assert sorted(session.id.split("/")[0] for session in sessions) == [f"host-{n}" for n in (0, 0, 1, 1, 2, 2)]
    first = [session.start(f"x = {number}; print(x)") for number, session in enumerate(sessions)]
    assert [future.result(240).output for future in first] == [f"{number}\n" for number in range(6)]
    assert [session.run("x += 10; print(x)").output for session in sessions] == [f"{n + 10}\n" for n in range(6)]
    assert sessions[0].usage.calls == 2
    for session in sessions:
        session.close()


def test_state_outlives_a_move_to_a_sandbox_of_its_own_on_the_same_host(pool: ClusterSessions) -> None:
    with pool.open() as session:
        session.run("x = 41")
        result = session.run("open('/tmp/a', 'w').write('1'); print(x + 1)")
        assert (result.output, result.tier, session.tier) == ("42\n", Tier.SANDBOX, Tier.SANDBOX)
        assert session.run("print(open('/tmp/a').read())").output == "1\n"
        refused = session.run("import socket; socket.create_connection(('127.0.0.1', 80))")
        assert refused.status is CallStatus.EXCEPTION


def test_a_sandbox_with_its_snapshots_stays_on_its_host(pool: ClusterSessions) -> None:
    with pool.sandbox() as box:
        box.write("/work/a", b"\x00\xff")
        assert (box.read("/work/a"), [entry.path for entry in box.list()]) == (b"\x00\xff", ["/work/a"])
        snapshot = box.snapshot()
        box.write("/work/a", b"")
        assert box.exec(["/usr/bin/python3", "-c", "print(6 * 7)"]).stdout == b"42\n"
        (branch,) = box.fork(snapshot, 1)
        box.restore(snapshot)
        assert [one.read("/work/a") for one in (box, branch)] == [b"\x00\xff"] * 2
        branch.close()
        with pool.sandbox(snapshot=snapshot) as third:
            assert (third.read("/work/a"), third.usage.calls) == (b"\x00\xff", 0)
        pool.forget(snapshot)
        with pytest.raises(BadRequestError, match="no known host of the cluster"):
            pool.sandbox(snapshot=snapshot)
        with pytest.raises(RefusedError):
            box.download("/work", Path("/nowhere"))


def test_nothing_listens_but_on_the_hosts_own_address_and_in_the_given_range(
    nodes: Nodes, pool: ClusterSessions
) -> None:
    for number in range(3):
        members = [member.pid for member in nodes.members(number)]
        found = listeners([*members, *gateways(nodes)] if number == 0 else members)
        assert {address for address, _ in found} == {nodes.addresses[number]}
        assert len(found) >= 4
        assert {port for _, port in found} <= set(range(PORT, PORT + PORTS))


def test_every_service_refuses_who_has_no_token_or_a_wrong_one(nodes: Nodes, pool: ClusterSessions) -> None:
    members = [member.pid for member in nodes.members(0)]
    spoken = 0
    for address, port in listeners([*members, *gateways(nodes)]):
        connection = http.client.HTTPConnection(address, port, timeout=120)
        try:
            connection.request("GET", "/api/jobs/")
            assert connection.getresponse().status == 401
            continue
        except (http.client.BadStatusLine, ConnectionResetError):
            pass  # it speaks gRPC
        finally:
            connection.close()
        statuses = [grpc_status(address, port, method, given) for method in METHODS for given in (None, "0" * 64)]
        assert all("InvalidAuthToken" in status or "12" in status[:6] for status in statuses)
        assert any("InvalidAuthToken" in status for status in statuses)
        spoken += 1
    assert spoken >= 4
    # Only this question is harmless from one who is let in.
    assert "InvalidAuthToken" not in grpc_status(nodes.addresses[0], PORT, METHODS[0], nodes.token.read_text())


def test_a_driver_and_a_host_with_a_wrong_token_do_not_get_in(nodes: Nodes, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    wrong.chmod(0o600)
    host = nodes.begin(3, token=wrong)
    settings = nodes.driver(connect_seconds=240).model_copy(update={"token": wrong})
    with pytest.raises(RefusedError, match="does not accept the token"):
        ClusterSessions(settings, LIMITS)
    with pytest.raises(RefusedError, match="token"):
        ClusterSessions(settings.model_copy(update={"token": tmp_path / "none"}), LIMITS)
    out, err = host.communicate(timeout=240)
    assert (host.returncode, out) == (1, b"")
    assert b"Ray did not start" in err
    del nodes.processes[3]


def test_c10_a_host_that_is_killed_takes_its_own_calls_and_no_others(nodes: Nodes, pool: ClusterSessions) -> None:
    doomed, going = on("host-1", pool), [on("host-0", pool), on("host-2", pool)]
    for session in (doomed, *going):
        session.run("x = 0")
    hanging: list[Future[CallResult]] = [doomed.start("while True: x += 1")]
    hanging += [doomed.start("x") for _ in range(5)]
    ticks = [session.start("x += 1") for session in going for _ in range(200)]
    before = nodes.session(1)
    [raylet] = nodes.members(1, "raylet/raylet")
    brokers = [pid for pid in children({member.pid for member in nodes.members(1)}) if "runtime.broker" in command(pid)]
    assert len(brokers) == 1
    kill(raylet)
    kill(brokers[0])
    for future in hanging:
        with pytest.raises(InfrastructureError):
            future.result(240)
    assert {future.result(240).status for future in ticks} == {CallStatus.OK}
    assert [session.run("print(x)").output for session in going] == ["200\n", "200\n"]
    until(lambda: pool.hosts()["host-1"] is Health.LOST, 240, "the host is known to be lost")
    fresh = [pool.open() for _ in range(4)]
    assert "host-1" not in {session.id.split("/")[0] for session in fresh}
    assert {session.run("print(1)").output for session in fresh} == {"1\n"}
    killed = set(nodes.folder.glob("n1/s/*"))
    nodes.hear(1, "Ray ended by itself and is restarted", "ready")
    until(lambda: pool.hosts()["host-1"] is Health.READY, 240, "the host is back")
    with on("host-1", pool) as session:
        assert session.run("print(1)").output == "1\n"
    assert [member for member in before.members() if member.state not in "ZX"] == []
    assert killed.isdisjoint(nodes.folder.glob("n1/s/*"))
    with pytest.raises(InfrastructureError, match="lost"):
        doomed.run("x")
    for session in (doomed, *going, *fresh):
        session.close()


def test_a_gateway_that_is_killed_takes_every_call_and_is_started_again(nodes: Nodes, pool: ClusterSessions) -> None:
    sessions = [pool.open() for _ in range(3)]
    waiting = [session.start("while True: pass") for session in sessions]
    [gateway] = gateways(nodes)
    kill(gateway)
    for future in waiting:
        with pytest.raises(InfrastructureError, match="this machine has lost the cluster"):
            future.result(240)
    until(lambda: set(pool.hosts().values()) == {Health.READY}, 240, "all hosts are back")
    with pool.open() as session:
        assert session.run("print(1)").output == "1\n"


def test_a_driver_that_is_killed_leaves_nothing_on_any_host(nodes: Nodes, pool: ClusterSessions) -> None:
    before = set(nodes.folder.glob("n?/s/*"))
    program = """
import sys, time
from runtime.cluster import ClusterSessions
from runtime.settings import ClusterSettings
from runtime.sandbox import Limits
pool = ClusterSessions(*map(lambda kind, text: kind.model_validate_json(text), (ClusterSettings, Limits), sys.argv[1:]))
for session in [pool.open() for _ in range(3)]:
    session.run("open('/tmp/a', 'w').close()")
print("ready", flush=True)
time.sleep(600)
"""
    arguments = nodes.driver().model_dump_json(), LIMITS.model_dump_json()
    driver = subprocess.Popen([sys.executable, "-I", "-c", program, *arguments], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"ready\n"
    own = set(nodes.folder.glob("n?/s/*")) - before
    assert sorted(path.parts[-3] for path in own) == ["n0", "n1", "n2"]
    assert all(running(path) for path in own)
    driver.kill()
    driver.communicate()
    until(lambda: len(gateways(nodes)) == 1, 240, "its gateway has ended")
    for path in own:
        until(lambda path=path: not path.exists() and not running(path), 240, f"nothing is left of {path}")


def test_a_node_that_was_killed_leaves_nothing_for_the_next_one(nodes: Nodes, pool: ClusterSessions) -> None:
    before = nodes.session(1)
    waiting = on("host-1", pool).start("while True: pass")
    nodes.processes[1].kill()
    nodes.processes[1].communicate()
    with pytest.raises(InfrastructureError):
        waiting.result(240)
    clear(nodes.folder / "n1")
    assert [member for member in before.members() if member.state not in "ZX"] == []
    assert list(nodes.folder.glob("n1/r")) == []
    nodes.begin(1)
    nodes.wait(1)
    until(lambda: pool.hosts()["host-1"] is Health.READY, 240, "the host is back")


def test_a_host_that_leaves_keeps_its_sessions_until_they_are_closed(nodes: Nodes, pool: ClusterSessions) -> None:
    session = on("host-2", pool)
    session.run("x = 5")
    (nodes.folder / "n2" / "draining").touch()
    until(lambda: pool.hosts()["host-2"] is Health.DRAINING, 240, "the host drains")
    others = [pool.open() for _ in range(4)]
    assert "host-2" not in {other.id.split("/")[0] for other in others}
    for other in others:
        other.close()
    assert session.run("print(x)").output == "5\n"
    assert nodes.processes[2].poll() is None
    session.close()
    assert nodes.processes[2].wait(240) == 0
    nodes.begin(2)
    nodes.wait(2)
    until(lambda: pool.hosts()["host-2"] is Health.READY, 240, "the host is back")
