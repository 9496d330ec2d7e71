"""Sessions over several hosts: where they go, that they stay, and what a lost host takes with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_hosts import GATE, HANGS, LocalHost, LocalLink, host_settings

from runtime.cluster import ClusterSessions
from runtime.cluster import messages as m
from runtime.cluster.messages import Frame, FrameKind
from runtime.cluster.placement import Health
from runtime.errors import BadRequestError, BusyError, InfrastructureError, LimitError, RefusedError, SandboxError
from runtime.profile import PackageSet
from runtime.reactor import Reactor
from runtime.sandbox import Limits, Tier
from runtime.settings import ClusterSettings


class Cluster:
    """Hosts a and b, and a pool over them."""

    def __init__(self, folder: Path, lost_seconds: float = 120.0) -> None:
        self.settings = ClusterSettings(
            address="127.0.0.2:6379",
            token=folder / "token",
            connect_seconds=120,
            lost_seconds=lost_seconds,
            retry_seconds=0.1,
        )
        self.hosts = {name: LocalHost(host_settings(name, folder / name, shared_workers=1)) for name in ("a", "b")}
        self.link: LocalLink
        self.pool = ClusterSessions(self.settings, Limits(), link=self._link)

    def _link(self, settings: ClusterSettings, reactor: Reactor) -> LocalLink:
        self.link = LocalLink(settings, reactor)
        self.link.first = list(self.hosts.values())
        return self.link


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    GATE.clear()
    made = Cluster(tmp_path)
    yield made
    GATE.set()
    made.pool.close()


def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_sessions_spread_over_the_hosts_and_keep_their_names(cluster: Cluster) -> None:
    sessions = [cluster.pool.open() for _ in range(6)]
    assert [session.id.split("/")[0] for session in sessions] == ["a", "b"] * 3
    for number, session in enumerate(sessions):
        session.run(f"x = {number}")
    assert [session.run("print(x)").output for session in sessions] == [f"{number}\n" for number in range(6)]
    assert [len(host.pools[0].sessions) for host in cluster.hosts.values()] == [3, 3]
    assert sessions[0].usage.calls == 2


def test_calls_of_one_session_run_in_the_order_in_which_they_were_started(cluster: Cluster) -> None:
    session = cluster.pool.open()
    session.run("seen = []")
    futures = [session.start(f"seen.append({number}); print(len(seen))") for number in range(300)]
    assert [int(future.result(120).output) for future in futures] == list(range(1, 301))


def test_a_lost_host_ends_its_own_calls_and_no_others(cluster: Cluster) -> None:
    here, there = cluster.pool.open(), cluster.pool.open()
    there.run("kept = 7")
    hanging = [here.start(HANGS) for _ in range(3)]
    going = there.start(f"{HANGS}; print(kept)")
    cluster.link.lose("node-0")
    for future in hanging:
        with pytest.raises(InfrastructureError, match="host a of the cluster is lost: its actor died"):
            future.result(120)
    with pytest.raises(InfrastructureError, match="lost"):
        here.run("1")
    GATE.set()
    assert going.result(120).output == "7\n"
    assert [cluster.pool.open().id.split("/")[0] for _ in range(2)] == ["b", "b"]
    assert cluster.pool.hosts() == {"a": Health.LOST, "b": Health.READY}


def test_a_host_that_comes_back_is_used_again_and_begins_empty(cluster: Cluster) -> None:
    before = cluster.pool.open()
    cluster.link.lose("node-0")
    until(lambda: cluster.pool.hosts()["a"] is Health.LOST)
    cluster.link.join(cluster.hosts["a"])
    until(lambda: cluster.pool.hosts()["a"] is Health.READY)
    assert cluster.pool.open().id.startswith("a/")
    with pytest.raises(InfrastructureError):
        before.run("1")


def test_a_silent_host_is_lost_after_the_time_that_was_set(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, lost_seconds=5.0)
    session = cluster.pool.open()
    cluster.hosts["a"].silent = True
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match="silent"):
        session.run("1")
    assert 4.5 < time.monotonic() - began < 120
    assert cluster.link.dropped == ["node-0"]
    cluster.pool.close()


def test_a_host_that_comes_back_before_it_was_missed_takes_the_place_of_its_old_self(cluster: Cluster) -> None:
    session = cluster.pool.open()
    cluster.hosts["a"].silent = True
    again = LocalHost(cluster.hosts["a"].settings)
    waiting = session.start("1")
    cluster.link.join(again)
    with pytest.raises(InfrastructureError, match="it returned before"):
        waiting.result(120)
    assert cluster.pool.open().run("print(1)").output == "1\n"
    assert len(again.pools[0].sessions) == 1


def test_a_second_host_of_the_same_name_is_turned_away(cluster: Cluster) -> None:
    cluster.link.join(LocalHost(cluster.hosts["a"].settings), address="elsewhere")
    until(lambda: cluster.link.dropped == ["node-2"])
    assert cluster.pool.open().run("print(1)").output == "1\n"


def test_a_draining_host_keeps_its_sessions_and_gets_no_new_ones(cluster: Cluster) -> None:
    session = cluster.pool.open()
    session.run("x = 1")
    cluster.hosts["a"].settings.draining.touch()
    until(lambda: cluster.pool.hosts()["a"] is Health.DRAINING)
    assert {cluster.pool.open().id.split("/")[0] for _ in range(4)} == {"b"}
    assert session.run("print(x)").output == "1\n"
    session.close()
    until(lambda: cluster.pool.hosts()["a"] is Health.LOST)
    assert cluster.link.dropped == ["node-0"]


def test_a_driver_that_comes_while_a_host_leaves_goes_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "draining").touch()
    made = Cluster(tmp_path)
    assert made.pool.open().id.startswith("b/")
    made.pool.close()


def test_branches_live_where_their_trunk_lives_and_apart_from_it(cluster: Cluster) -> None:
    trunk = cluster.pool.open()
    trunk.run("x = [1]")
    branches = trunk.fork(3)
    trunk.run("x = [2]")
    assert [branch.run("print(x)").output for branch in branches] == ["[1]\n"] * 3
    assert {branch.id.split("/")[0] for branch in branches} == {"a"}
    assert [cluster.pool.open().id.split("/")[0] for _ in range(3)] == ["b", "b", "b"]


def test_a_branch_outlives_a_trunk_that_is_closed_while_it_is_made(cluster: Cluster) -> None:
    trunk = cluster.pool.open()
    trunk.run("x = 1")
    trunk.start(HANGS)
    making = trunk.start_fork(1)
    actor = cluster.hosts["a"]
    [there] = actor.pools[0].sessions
    until(lambda: there._thread._work_queue.qsize() == 1)
    trunk.close()
    until(lambda: there.closed)
    GATE.set()
    [branch] = making.result(120)
    assert branch.run("print(x)").output == "1\n"
    branch.close()
    assert [cluster.pool.open().id.split("/")[0] for _ in range(2)] == ["a", "b"], "its place is free"


def test_a_session_goes_back_to_before_a_call_on_its_host(cluster: Cluster) -> None:
    session = cluster.pool.open()
    session.run("x = 1")
    session.start("x = 2", keep=True).result(120)
    (branch,) = session.fork(1, undo=True)
    assert (branch.run("print(x)").output, session.run("print(x)").output) == ("1\n", "2\n")


def test_the_files_that_a_session_begins_with_reach_its_host_byte_for_byte(cluster: Cluster) -> None:
    content = bytes(range(256)) * 40
    with cluster.pool.open(files={"a.bin": content}) as session:
        assert session.tier is Tier.SANDBOX
        assert session.run("print(files['a.bin'].hex())").output == f"{content.hex()}\n"
    with pytest.raises(LimitError):
        cluster.pool.open(files={"a.bin": bytes(64 << 20)})


def test_a_host_whose_sandboxes_fill_up_gets_fewer_sessions(cluster: Cluster) -> None:
    session = cluster.pool.open()
    assert session.run("open('/dev/null').close()").tier is Tier.SANDBOX
    assert session.tier is Tier.SANDBOX
    assert [cluster.pool.open().id.split("/")[0] for _ in range(2)] == ["b", "a"]


def test_what_fails_while_a_session_is_opened_is_said_by_its_calls(cluster: Cluster) -> None:
    for host in cluster.hosts.values():
        host.pools[0].most = 0
    session = cluster.pool.open()
    for _ in range(2):
        with pytest.raises(BusyError, match="too many sessions wait") as caught:
            session.run("1")
    assert caught.value.hint == "come back later"


def test_text_that_is_no_text_passes_both_ways(cluster: Cluster) -> None:
    session = cluster.pool.open()
    assert session.run("print('\\x00\\x1b[2J\\ufffd\\U0001f600')  # \ud800").output == "\x00\x1b[2J\ufffd\U0001f600\n"


def test_a_session_that_is_closed_in_the_middle_of_a_call_answers_it(cluster: Cluster) -> None:
    session = cluster.pool.open()
    waiting = session.start(HANGS)
    session.close()
    until(lambda: [one.closed for one in cluster.hosts["a"].pools[0].sessions] == [True])
    GATE.set()
    with pytest.raises(BadRequestError):
        waiting.result(120)
    with pytest.raises(BadRequestError, match="closed"):
        session.run("1")
    assert cluster.pool.open().id.startswith("a/")


def test_closing_the_pool_ends_every_wait(cluster: Cluster) -> None:
    session = cluster.pool.open()
    waiting = session.start(HANGS)
    cluster.pool.close()
    with pytest.raises(BadRequestError):
        waiting.result(0)
    with pytest.raises(BadRequestError):
        cluster.pool.open()


def test_a_host_that_does_not_keep_to_the_protocol_is_given_up(cluster: Cluster) -> None:
    session = cluster.pool.open()
    waiting = session.start(HANGS)
    cluster.link.inject("node-0", b'[{"kind":"did","session":1}]')
    with pytest.raises(InfrastructureError, match="protocol"):
        waiting.result(120)
    assert cluster.pool.open().id.startswith("b/")


def test_a_host_that_says_twice_that_it_is_there_is_given_up_and_used_when_it_comes_back(cluster: Cluster) -> None:
    again = m.packet([m.HostWelcome(name="a", capacity={Tier.SHARED: 1000})])
    cluster.link.inject("node-0", again)
    until(lambda: cluster.link.dropped == ["node-0"])
    assert {cluster.pool.open().host for _ in range(4)} == {"b"}
    cluster.link.join(cluster.hosts["a"])
    until(lambda: cluster.pool.hosts()["a"] is Health.READY)
    assert {cluster.pool.open().host for _ in range(4)} == {"a"}


def test_a_host_that_turns_us_away_is_said_with_its_reason_and_once(tmp_path: Path) -> None:
    hosts = {name: LocalHost(host_settings(name, tmp_path / name, shared_workers=1)) for name in ("a", "b")}
    hosts["b"].refuses = "there is no runsc"
    links: list[LocalLink] = []

    def linked(settings: ClusterSettings, reactor: Reactor) -> LocalLink:
        links.append(LocalLink(settings, reactor))
        links[0].first = list(hosts.values())
        return links[0]

    said: list[str] = []
    settings = ClusterSettings(address="127.0.0.2:6379", token=tmp_path / "token", connect_seconds=120)
    with ClusterSessions(settings, Limits(), link=linked, said=said.append) as pool:
        assert {pool.open().host for _ in range(4)} == {"a"}
        links[0].join(hosts["b"])
        until(lambda: len(links[0].dropped) == 2)
        hosts["b"].refuses = "the broker does not start"
        links[0].join(hosts["b"])
        until(lambda: len(said) == 3)
    assert sorted(said) == [
        "host b of the cluster is not used: the broker does not start",
        "host b of the cluster is not used: there is no runsc",
        "sandboxes are on a",
    ]


def test_what_a_host_refuses_says_which_host_that_is(cluster: Cluster) -> None:
    session = cluster.pool.open(packages=PackageSet(digest="0" * 16))
    with pytest.raises(RefusedError, match=r"host a: no package set"):
        session.run("1")


def test_hosts_that_fail_when_they_are_spoken_to_are_the_reason_why_there_is_none(tmp_path: Path) -> None:
    class Failing(LocalLink):
        def start(self, received: Callable[[Frame], None], ended: Callable[[SandboxError | None], None]) -> None:
            super().start(received, ended)
            self._send_report(Frame(FrameKind.NODES, body=b"1"))
            self._send_report(Frame(FrameKind.UP, "node", b"10.0.0.2"))
            self._send_report(Frame(FrameKind.DOWN, "node", b"ray::SessionsHost.submit()"))

        def send(self, frame: Frame) -> None: ...

    settings = ClusterSettings(address="127.0.0.2:6379", token=tmp_path / "token", connect_seconds=120)
    with pytest.raises(InfrastructureError, match=r"10\.0\.0\.2 fails on contact") as failed:
        ClusterSessions(settings, Limits(), link=Failing)
    assert "same version" in failed.value.hint


def test_a_machine_that_loses_the_cluster_loses_every_host(cluster: Cluster) -> None:
    waiting = [cluster.pool.open().start(HANGS) for _ in range(2)]
    threading.Thread(target=lambda: cluster.link.ended(None)).start()
    for future in waiting:
        with pytest.raises(InfrastructureError, match="lost the cluster"):
            future.result(120)
    with pytest.raises(InfrastructureError, match="no host"):
        cluster.pool.open()


def test_figures_are_summed_over_hosts_and_outlive_them(cluster: Cluster) -> None:
    for _ in range(4):
        cluster.pool.open().run("1")
    until(lambda: cluster.pool.stats() == {"calls": 4.0, "sessions": 4.0, "hosts": 2.0})
    cluster.link.lose("node-0")  # and with it the sessions that it had, though not what they did
    until(lambda: cluster.pool.stats() == {"calls": 4.0, "sessions": 2.0, "hosts": 1.0})


def test_where_no_host_is_there_the_pool_says_so_in_time(tmp_path: Path) -> None:
    settings = ClusterSettings(address="127.0.0.2:6379", token=tmp_path / "token", connect_seconds=0.3)
    with pytest.raises(InfrastructureError, match=r"no host of the cluster at 127\.0\.0\.2:6379 answers"):
        ClusterSessions(settings, Limits(), link=LocalLink)
