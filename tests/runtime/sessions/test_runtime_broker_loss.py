"""A broker that dies takes its sandboxes with it: that is said, never hidden, and new sessions work again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runtime.errors import InfrastructureError, RefusedError
from runtime.sandbox import CallStatus, Limits, Tier
from runtime.sessions import Sessions, connection
from runtime.sessions.outcomes import LossCause
from runtime.settings import BrokerSettings, RuntimeSettings

PURE_SPIN = "n = 0\nwhile True: n += 1"
LIMITS = Limits(call_seconds=240.0)
"""Far away: what ends a call here is the broker's end."""


def kill_broker_of(pool: Sessions) -> None:
    process = pool._connection._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)


def until_known(pool: Sessions) -> None:
    deadline = time.monotonic() + 120
    while pool._connection._client is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def own_pool(root_dir: Path, tmp_path: Path) -> Sessions:
    own = BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=1)
    return Sessions(RuntimeSettings(own=own, limits=LIMITS, shared_workers=1))


@pytest.mark.parametrize("tier", Tier)
def test_calls_under_way_and_later_ones_fail_and_a_new_session_works(own_pool: Sessions, tier: Tier) -> None:
    with own_pool as pool:
        idle, busy = pool.open(tier=tier), pool.open(tier=tier)
        idle.run("x = 1")
        busy.run("x = 1")
        call = busy.start(PURE_SPIN)
        time.sleep(0.2)
        kill_broker_of(pool)
        for session in (busy, idle):
            with pytest.raises(InfrastructureError):
                (call if session is busy else session.start("print(x)")).result(timeout=120)
            with pytest.raises(InfrastructureError):
                session.run("print(1)")
        with pool.open(tier=tier) as session:
            assert session.run("print(2)").output == "2\n"


def test_a_session_on_its_way_to_another_place_fails_for_good_as_well(own_pool: Sessions) -> None:
    with own_pool as pool, pool.open() as session:
        session.run("x = 1")
        process = pool._connection._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)  # it gives no process any more, but is not known to be gone
        call = session.start("import time\nprint(x)")
        time.sleep(0.2)
        kill_broker_of(pool)
        with pytest.raises(InfrastructureError):
            call.result(timeout=120)
        with pytest.raises(InfrastructureError, match="state with it"):
            session.run("print(x)")


def test_a_sandbox_of_its_own_is_gone_and_another_can_be_had(own_pool: Sessions) -> None:
    with own_pool as pool:
        sandbox = pool.sandbox()
        sandbox.run("x = 1")
        snapshot = sandbox.snapshot()
        kill_broker_of(pool)
        until_known(pool)
        for attempt in (lambda: sandbox.run("1"), lambda: sandbox.read("/work/a"), sandbox.snapshot):
            with pytest.raises(InfrastructureError):
                attempt()
        with pytest.raises(Exception, match=snapshot[:8]):
            sandbox.restore(snapshot)
        sandbox.close()
        with pool.sandbox() as another:
            assert another.run("print(2)").output == "2\n"


def test_brokers_may_die_again_and_again(own_pool: Sessions) -> None:
    with own_pool as pool:
        for n in range(3):
            with pool.open() as session:
                assert session.run(f"print({n})").output == f"{n}\n"
            kill_broker_of(pool)
            until_known(pool)


def shared_broker(tmp_path: Path, root_dir: Path, path: Path) -> subprocess.Popen[bytes]:
    settings = tmp_path / "settings.json"
    settings.write_text(BrokerSettings(state_dir=tmp_path / "state", root_dir=root_dir, ready=1).model_dump_json())
    command = [sys.executable, "-m", "runtime.broker", "--settings", str(settings), "--socket", str(path)]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[3], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.02)
    return process


def users_of(path: Path, tmp_path: Path, root_dir: Path, monkeypatch: pytest.MonkeyPatch) -> RuntimeSettings:
    """Settings for those who use the broker there, and wait for long where it has died."""
    monkeypatch.setattr(connection, "AGAIN_SECONDS", 120.0)
    own = BrokerSettings(state_dir=tmp_path / "none", root_dir=root_dir)
    return RuntimeSettings(broker=path, own=own, limits=LIMITS, shared_workers=1)


def test_a_shared_broker_that_comes_back_is_used_again(
    root_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broker.sock"
    settings = users_of(path, tmp_path, root_dir, monkeypatch)
    with pytest.raises(RefusedError):
        Sessions(settings)
    process = shared_broker(tmp_path, root_dir, path)
    try:
        with Sessions(settings) as pool:
            session = pool.open()
            assert session.run("print(1)").output == "1\n"
            process.kill()
            process.wait()
            with pytest.raises(InfrastructureError):
                for _ in iter(lambda: session.run("print(1)"), None):  # its sandbox ends a moment after the broker
                    pass
            until_known(pool)  # and the pool knows of the broker a moment after the sandbox
            waiting = pool.open().start("print(3)")
            process = shared_broker(tmp_path, root_dir, path)
            assert waiting.result(timeout=120).status is CallStatus.OK
    finally:
        process.terminate()
        process.wait(timeout=120)


@pytest.mark.parametrize("replaces", [True, False])
def test_a_shared_broker_that_does_not_come_back_is_replaced_or_awaited_once(
    root_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, replaces: bool
) -> None:
    path = tmp_path / "broker.sock"
    settings = users_of(path, tmp_path, root_dir, monkeypatch).model_copy(update={"replaces": replaces})
    waits: list[float] = []
    whole = connection._await
    monkeypatch.setattr(connection, "_await", lambda at, until: waits.append(until - time.monotonic()) or whole(at, 1))
    process = shared_broker(tmp_path, root_dir, path)
    with Sessions(settings) as pool:
        assert pool.open().run("print(1)").output == "1\n"
        process.kill()
        process.wait()
        until_known(pool)
        path.unlink(missing_ok=True)
        for _ in range(2):
            if replaces:
                assert pool.open(tier=Tier.SANDBOX).run("print(2)").output == "2\n"
            else:
                with pytest.raises(InfrastructureError, match="the broker is gone"):
                    pool.open().run("print(2)")
    first, again, *later = waits
    assert (first < 0, again > 1) == (True, True)
    assert later == [] if replaces else all(wait <= 0 for wait in later)
    assert ("a broker of this process, with the same gvisor" in caplog.text) is replaces


def test_a_broker_that_dies_before_it_says_hello_is_waited_for_like_one_that_is_not_there(
    root_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket of one that was killed takes connections for as long as a process that it was starting has it."""
    path = tmp_path / "broker.sock"
    settings = users_of(path, tmp_path, root_dir, monkeypatch)
    process = shared_broker(tmp_path, root_dir, path)
    try:
        with Sessions(settings) as pool:
            process.kill()
            process.wait()
            until_known(pool)
            path.unlink()
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
                left.bind(str(path))
                left.listen()
                waiting = pool.open().start("print(3)")
                accepted, _ = left.accept()
                accepted.recv(1, socket.MSG_PEEK)  # its hello, which nobody reads
            accepted.close()
            process = shared_broker(tmp_path, root_dir, path)
            assert waiting.result(timeout=120).status is CallStatus.OK
    finally:
        process.terminate()
        process.wait(timeout=120)


def test_a_branch_whose_snapshot_went_with_the_broker_is_no_mistake_of_the_callers(own_pool: Sessions) -> None:
    with own_pool as pool, pool.open(tier=Tier.SANDBOX) as session:
        session.run("x = 1")
        session.start("x = 2", keep=True).result(timeout=120)
        kill_broker_of(pool)
        until_known(pool)
        [branch] = session.fork(1, undo=True)
        for _ in range(2):
            with pytest.raises(InfrastructureError, match="state with it"):
                branch.run("print(x)")
        branch.close()


def test_a_sandbox_whose_end_is_seen_before_that_of_its_broker_went_with_it(own_pool: Sessions) -> None:
    with own_pool as pool, pool.open(tier=Tier.SANDBOX) as session:
        session.run("x = 1")
        process = pool._connection._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)  # so that the end of its sandbox is seen first
        port = session._placement._port  # type: ignore[attr-defined]
        pool._reactor.result(lambda: port.worker.lose(LossCause.DIED))
        kill_broker_of(pool)
        until_known(pool)
        with pytest.raises(InfrastructureError, match="broker"):
            session.run("print(x)")


def test_nobody_says_what_a_sandbox_used_that_went_with_its_broker(own_pool: Sessions) -> None:
    with own_pool as pool, pool.open(tier=Tier.SANDBOX) as session, pool.sandbox() as sandbox:
        for holder in (session, sandbox):
            holder.run("sum(range(100_000))")
            assert holder.usage.cpu_seconds
        kill_broker_of(pool)
        until_known(pool)
        for holder in (session, sandbox):
            used = holder.usage
            assert (used.calls, used.cpu_seconds, used.peak_memory_mib) == (1, None, None)
