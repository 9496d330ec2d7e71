"""Whatever a client sends or does not read, the broker lives, serves the others, and stays small."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_kit import JAIL, BrokerProbe, Raw, Settings, call, child_broker, profile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.broker import ask, connect, listening, messages
from runtime.broker import messages as m
from runtime.broker.server import CONNECTIONS, FOR_THE_NEXT, OF_ONE
from runtime.broker_api import SnapshotCopy
from runtime.errors import BadRequestError, BusyError, InfrastructureError, RefusedError
from runtime.guest.wire import Op, ReplyKind
from runtime.sandbox import SnapshotId


class Open:
    """A broker that listens, for everybody of this user, with so few places that most of a crowd waits."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path) -> None:
        self.process, self.path = process, path

    def descriptors(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())


@pytest.fixture(scope="module")
def broker(make_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    path = tmp_path_factory.mktemp("b") / "sock"
    process = child_broker(make_settings(ready=0, boxes=8), path)
    yield Open(process, path)
    process.terminate()
    assert process.wait(120) == 0
    assert not path.exists()


NO_MESSAGES = [
    b"\x00",
    b"{}",
    b"[" * 60_000,
    b'{"kind": "launch", "request": 2}',
    b'{"kind": "stats", "request": -1}',
    b'{"kind": "stats", "request": 1, "more": 1}',
    b'{"kind": "end", "request": 1, "box": "' + b"x" * 300 + b'"}',
    b'{"kind": "launch", "request": 1, "wanted": {"snapshot": "../../../../etc/passwd"}}',
    b'{"kind": "welcome", "request": 1, "protocol": 1, "pid": 1, "backends": {}}',
    "\ud800".encode("utf-8", "surrogatepass"),
]


@pytest.mark.parametrize("data", NO_MESSAGES, ids=range(len(NO_MESSAGES)))
def test_what_is_no_message_ends_its_connection_and_nothing_else(broker: Open, data: bytes) -> None:
    other, odd = Raw(broker.path), Raw(broker.path)
    other.hello()
    odd.hello()
    odd.say(data)
    assert odd.hung_up()
    other.say(messages.pack(m.Stats(request=5)))
    assert isinstance(other.hear(), m.Figures)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=400))
def test_any_bytes_are_borne(broker: Open, data: bytes) -> None:
    odd = Raw(broker.path)
    odd.hello()
    odd.say(data)
    assert odd.hung_up()
    assert ask(broker.path).pid == broker.process.pid


def test_a_packet_too_long_and_descriptors_end_the_connection_and_none_stays(broker: Open) -> None:
    before = broker.descriptors()
    long = Raw(broker.path)
    long.hello()
    long.say(b'{"kind": "stats", "request": 1}' + b" " * m.PACKET_BYTES)
    assert long.hung_up()
    generous = Raw(broker.path)
    generous.hello()
    reading, writing = os.pipe()
    generous.say(messages.pack(m.Stats(request=2)), (reading, writing))
    assert generous.hung_up()
    many = Raw(broker.path)
    many.hello()
    socket.send_fds(many.socket, [b"{}"], [reading] * 200)
    assert many.hung_up()
    os.close(reading)
    os.close(writing)
    deadline = time.monotonic() + 120
    while broker.descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert broker.descriptors() <= before


def test_who_does_not_say_hello_or_speaks_another_protocol_is_not_served(broker: Open) -> None:
    mute = Raw(broker.path)
    mute.say(messages.pack(m.Stats(request=1)))
    assert mute.hung_up()
    other = Raw(broker.path)
    other.say(messages.pack(m.ClientHello(request=1, protocol=99)))
    for number in range(20):  # sent before it could know
        other.say(messages.pack(m.Stats(request=2 + number)))
    answer = other.hear()
    assert isinstance(answer, m.RequestFailed)
    assert answer.error == "refused"
    assert f"protocol {m.PROTOCOL}, not 99" in answer.message
    assert other.hung_up()


def test_a_connection_has_no_say_over_anothers_sandboxes(broker: Open) -> None:
    with BrokerProbe.at(broker.path) as owner, BrokerProbe.at(broker.path) as stranger:
        handle = owner.launch(JAIL)
        with pytest.raises(BadRequestError, match="no such sandbox"):
            stranger.usage(handle)
        stranger.end(handle)
        with pytest.raises(BadRequestError, match="no such sandbox"):
            stranger.snapshot(handle)
        assert call(handle, Op.PING).kind == ReplyKind.READY
        owner.end(handle)


def test_a_thousand_requests_at_once_are_all_answered(broker: Open) -> None:
    with BrokerProbe.at(broker.path) as probe:
        answers = [probe.begin(probe.client.stats) for _ in range(1_000)]
        assert all(isinstance(answer.result(120), m.Figures) for answer in answers)
        before = probe.stats()
        launches = [probe.begin_launch(JAIL, caller=str(number % 7)) for number in range(1_000)]
        probe.until(lambda figures: figures["waiting"] > 900)
        busy = probe.stats()
        assert busy["rss_mib"] < before["rss_mib"] + 16
    lost = [launch for launch in launches if isinstance(launch.result(120), InfrastructureError)]
    assert len(lost) > 500, "what still waited"
    with BrokerProbe.at(broker.path) as probe:
        probe.until(lambda figures: figures["boxes"] == 0 and figures["waiting"] == 0)


def test_a_client_that_reads_nothing_is_hung_up_on_and_costs_nothing(broker: Open) -> None:
    with BrokerProbe.at(broker.path) as probe:
        before = probe.stats()
        rude = Raw(broker.path)
        rude.hello()
        rude.socket.settimeout(20.0)
        question = messages.pack(m.Stats(request=3))
        with contextlib.suppress(OSError):  # until it is hung up on, or its own buffer is full of answers to nobody
            for _ in range(30_000):
                rude.socket.send(question)
        probe.until(lambda figures: figures["connections"] == 1)
        assert probe.stats()["rss_mib"] < before["rss_mib"] + 16


def test_a_client_that_is_killed_leaves_nothing(broker: Open) -> None:
    ready, tell = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            raw = Raw(broker.path)
            raw.hello()
            for number in range(6):
                raw.say(messages.pack(m.Launch(request=number + 2, wanted=JAIL)))
            assert isinstance(raw.hear(), m.Launched)
            os.write(tell, b"x")
            time.sleep(600)
        finally:
            os._exit(1)
    assert os.read(ready, 1) == b"x"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(ready)
    os.close(tell)
    with BrokerProbe.at(broker.path) as probe:
        probe.until(lambda figures: figures["boxes"] == 0 and figures["waiting"] == 0 and figures["connections"] == 1)


def test_connections_come_and_go_without_a_trace(broker: Open) -> None:
    ask(broker.path)
    before = broker.descriptors()
    for _ in range(100):
        connect(broker.path).close()
        ask(broker.path)
    crowd = [connect(broker.path) for _ in range(300)]
    for one in crowd:
        one.close()
    deadline = time.monotonic() + 120
    while broker.descriptors() > before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert broker.descriptors() <= before


def as_nobody(path: Path, silent: int = 0) -> bytes:
    """What another user hears from `ask` who has so many connections already."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setresgid(65_534, 65_534, 65_534)
            os.setresuid(65_534, 65_534, 65_534)
            held = [Raw(path) for _ in range(silent)]
            os.write(writing, f"pid {ask(path).pid}".encode() if len(held) == silent else b"")
        except (BusyError, RefusedError) as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


def crowd(path: Path, count: int) -> subprocess.Popen[str]:
    """A process of our own user that asks for so many connections, keeps those that it gets, and says how many."""
    code = f"""import socket, sys
path, kept = sys.argv[1], []
for number in range({count}):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.connect(path)
    one.send({messages.pack(m.ClientHello(request=1, protocol=m.PROTOCOL))!r})
    if b'"welcome"' in one.recv(1 << 16): kept.append(one)
print(len(kept), flush=True)
sys.stdin.read()
"""
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_no_process_of_our_own_user_can_take_all_places(make_settings: Settings, tmp_path: Path) -> None:
    """Silent or not: a peer is a process, and the last places are for those that have none."""
    process = child_broker(make_settings(ready=0), tmp_path / "b")
    crowds: list[subprocess.Popen[str]] = []
    try:
        got = []
        for count in (CONNECTIONS, OF_ONE, OF_ONE, OF_ONE):
            crowds.append(one := crowd(tmp_path / "b", count))
            assert one.stdout is not None
            got.append(int(one.stdout.readline()))
        assert got[0] == OF_ONE
        assert sum(got) <= CONNECTIONS - FOR_THE_NEXT + len(crowds)
        assert ask(tmp_path / "b").pid == process.pid
    finally:
        for one in (*crowds, process):
            one.kill()
            one.wait(120)


def test_who_says_nothing_is_hung_up_on(broker: Open) -> None:
    silent, known = Raw(broker.path), Raw(broker.path)
    known.hello()
    assert silent.hung_up()
    known.say(messages.pack(m.Stats(request=5)))
    assert isinstance(known.hear(), m.Figures)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpus": 1e308}, {"memory_mib": 1 << 40}, {"pids": 1 << 40}, {"tmp_mib": 1 << 40}, {"output_bytes": 1 << 80},
        {"slice_seconds": 1e300}, {"open_files": 1 << 40}, {"ahead": 1 << 30}, {"life_seconds": 1e300},
        {"preload": ["math"] * 100},
    ],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_what_no_machine_has_is_no_request(broker: Open, wrong: dict[str, object]) -> None:
    odd = Raw(broker.path)
    odd.hello()
    wanted = json.loads(JAIL.model_dump_json()) | wrong
    odd.say(json.dumps({"kind": "launch", "request": 2, "wanted": wanted}).encode())
    assert odd.hung_up()
    assert ask(broker.path).pid == broker.process.pid


def test_other_users_come_in_only_when_they_are_named(broker: Open, make_settings: Settings) -> None:
    folder = Path("/run") / f"assay-test-{os.getpid()}-{threading.get_ident()}"  # every user may look for a name there
    folder.mkdir(mode=0o711)
    try:
        closed, open_ = folder / "closed", folder / "open"
        first = child_broker(make_settings(), closed)
        second = child_broker(make_settings(), open_, "--allow-uid", "65534")
        third = child_broker(make_settings(), folder / "third", "--allow-uid", "12345")
        assert b"does not admit this user" in as_nobody(closed)
        assert as_nobody(open_) == f"pid {second.pid}".encode()
        assert as_nobody(folder / "third") == b"user 65534 may not use this broker"
        assert as_nobody(open_, OF_ONE - 1) == f"pid {second.pid}".encode()
        assert b"too many connections" in as_nobody(open_, OF_ONE)
        assert [path.stat().st_mode & 0o777 for path in (closed, open_)] == [0o600, 0o666]
        for process in (first, second, third):
            process.terminate()
            assert process.wait(120) == 0
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_users_do_not_see_each_others_sandboxes_and_snapshots(make_settings: Settings) -> None:
    folder = Path("/run") / f"assay-users-{os.getpid()}-{threading.get_ident()}"
    folder.mkdir(mode=0o711)
    process = child_broker(make_settings(ready=0), folder / "b", "--allow-uid", "65534")
    try:
        with BrokerProbe.at(folder / "b") as root:
            taken = root.snapshot(root.launch(profile()))
            reading, writing = os.pipe()
            pid = os.fork()
            if not pid:
                try:
                    os.setgroups([])
                    os.setresgid(65_534, 65_534, 65_534)
                    os.setresuid(65_534, 65_534, 65_534)
                    raw = Raw(folder / "b")
                    raw.hello()
                    raw.say(messages.pack(m.List(request=2)))
                    listing = raw.hear()
                    texts = [listing.model_dump_json()]
                    for asked in (
                        m.Launch(request=3, wanted=SnapshotCopy(snapshot=taken)),
                        m.ForgetSnapshot(request=4, snapshot=taken),
                        m.Prepare(request=5, snapshot=taken, copies=1),
                        m.Launch(request=6, wanted=SnapshotCopy(snapshot=SnapshotId("0" * 64))),
                    ):
                        raw.say(messages.pack(asked))
                        texts.append(raw.hear().model_dump_json().replace(taken[:12], "0" * 12))
                    os.write(writing, json.dumps(texts).encode())
                finally:
                    os._exit(0)
            os.waitpid(pid, 0)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                listing, *refusals = [json.loads(line) for line in json.loads(pipe.read())]
            assert (listing["boxes"], listing["snapshots"]) == ([], [])
            assert {refusal["message"] for refusal in refusals} == {"unknown snapshot " + "0" * 12}
            assert len(root.listing().snapshots) == 1
    finally:
        process.terminate()
        assert process.wait(120) == 0
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_where_no_broker_is_that_is_said(tmp_path: Path, broker: Open) -> None:
    with pytest.raises(RefusedError, match="does not exist"):
        connect(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match="no broker answers"):
        connect(tmp_path / "file")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        begun = time.monotonic()
        with pytest.raises(BusyError, match=r"too busy: the broker .* did not answer"):
            ask(tmp_path / "silent", seconds=0.2)
        assert time.monotonic() - begun < 120
    with pytest.raises(RefusedError, match="no broker answers"):
        connect(tmp_path / "silent")


def test_the_lock_of_a_broker_that_was_killed_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that it was just starting has it until it begins its program."""
    monkeypatch.setattr(listening, "LOCK_SECONDS", 120.0)
    held = (tmp_path / "sock.lock").open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    threading.Timer(0.3, held.close).start()
    os.close(listening._lock(tmp_path / "sock"))


def test_a_second_broker_for_one_path_is_refused_and_a_stale_socket_is_not(
    broker: Open, make_settings: Settings, tmp_path: Path
) -> None:
    second = child_broker(make_settings(), broker.path)
    assert second.wait(120) == 1
    assert second.stderr is not None
    assert b"another broker serves" in second.stderr.read()
    assert ask(broker.path).pid == broker.process.pid
    path = tmp_path / "sock"
    first = child_broker(make_settings(), path)
    first.kill()
    first.wait()
    assert path.exists()
    again = child_broker(make_settings(), path)
    assert ask(path).pid == again.pid
    again.terminate()
    assert again.wait(120) == 0
