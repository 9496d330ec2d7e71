"""Every status has code that causes it, in every tier where it can occur; and what was used is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import InfrastructureError, LimitError, RefusedError
from runtime.profile import BackendName
from runtime.sandbox import CallStatus, Limits, Tier
from runtime.sessions import Sessions
from runtime.sessions.session import LiveSession
from runtime.sessions.worker import Worker
from runtime.settings import BrokerSettings, RuntimeSettings

SMALL = Limits(
    call_seconds=120.0,
    memory_mib=256,
    pids=16,
    output_bytes=4_096,
    tmp_mib=4,
    work_mib=4,
    open_files=64,
    entries=50,
    calls=6,
    snapshots=1,
    cpu_seconds=100.0,
    life_seconds=600.0,
)
SPIN = "while True: pass"
STOPPED = {
    CallStatus.TIMEOUT: "import time\ntime.sleep(600)",
    CallStatus.MEMORY: "x = []\nwhile True: x.append(bytearray(1 << 20))",
    CallStatus.OUTPUT: "while True: print('y' * 100)",
    CallStatus.DIED: "import os; os._exit(0)",
    CallStatus.CPU: SPIN,
}
REFUSED = {
    CallStatus.PIDS: "import os\nfor _ in range(500):\n    if os.fork() == 0:\n        import time; time.sleep(60)",
    CallStatus.DISK: "file = open('/work/full', 'wb')\nwhile True: file.write(bytes(1 << 16))",
    CallStatus.FILES: "kept = []\nwhile True: kept.append(open('/dev/null'))",
    CallStatus.MEMORY: "x = bytearray(1 << 40)",
    CallStatus.EXCEPTION: "1 / 0",
}


@pytest.fixture(scope="module")
def pool_of_small(root_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sessions]:
    own = BrokerSettings(state_dir=tmp_path_factory.mktemp("state"), root_dir=root_dir, ready=1)
    with Sessions(RuntimeSettings(own=own, limits=SMALL, shared_workers=1, process_boxes=1)) as sessions:
        yield sessions


PRINTED = "print('said')\nprint('and', 'more')\n"
HANGS = {
    "computes": "while True: pass",
    "sleeps": "import time\ntime.sleep(600)",
    "holds on": "import os\nwhile True:\n    try:\n        os.getpid()\n    except BaseException: pass",
}


@pytest.mark.parametrize(
    ("tier", "hang", "patience"),
    [
        (Tier.SHARED, "computes", 1.0),
        (Tier.PROCESS, "computes", 1.0),
        (Tier.SANDBOX, "computes", 1.0),
        (Tier.SANDBOX, "sleeps", 60.0),
        (Tier.SANDBOX, "holds on", 60.0),
    ],
)
def test_what_a_call_had_printed_before_it_was_stopped_is_told(
    pool: Sessions, tier: Tier, hang: str, patience: float
) -> None:
    with pool.open(tier=tier) as session:
        ended = session.start(PRINTED + HANGS[hang], seconds=2.0, patience=patience).result()
        assert (ended.status, ended.output) == (CallStatus.TIMEOUT, "said\nand more\n")
        assert session.run("print(6 * 7)").output == "42\n"


@pytest.mark.parametrize("tier", Tier)
def test_what_was_printed_before_the_interpreter_ended_is_told(pool: Sessions, tier: Tier) -> None:
    with pool.open(tier=tier) as session:
        ended = session.run(f"{PRINTED}import os; os._exit(3)")
        assert (ended.status, ended.output) == (CallStatus.DIED, "said\nand more\n")


def until_lost(worker: Worker) -> None:
    deadline = time.monotonic() + 120
    while worker.state == "ready":
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("status", STOPPED)
def test_what_has_to_be_stopped_says_why_and_the_sandbox_is_gone(pool_of_small: Sessions, status: CallStatus) -> None:
    limits = SMALL.model_copy(update={"cpu_seconds": 0.5}) if status is CallStatus.CPU else SMALL
    with pool_of_small.sandbox(limits) as sandbox:
        result = sandbox.run(STOPPED[status], seconds=1.0 if status is CallStatus.TIMEOUT else None)
        assert (result.status, bool(result.error)) == (status, True)
        assert result.seconds < SMALL.call_seconds + 10
        with pytest.raises(InfrastructureError):
            sandbox.run("print(1)")


@pytest.mark.parametrize("status", REFUSED)
def test_what_the_code_is_refused_is_named_and_it_can_go_on(pool_of_small: Sessions, status: CallStatus) -> None:
    with pool_of_small.sandbox() as sandbox:
        sandbox.run("x = 1")
        result = sandbox.run(REFUSED[status])
        assert (result.status, bool(result.error)) == (status, True), result
        assert sandbox.run("kept = file = None; print(x)" if status is not CallStatus.PIDS else "print(x)").output


def test_a_sandbox_that_has_lived_its_time_ends_used_or_not(pool_of_small: Sessions) -> None:
    short = SMALL.model_copy(update={"life_seconds": 2.0})
    with pool_of_small.sandbox(short) as unused, pool_of_small.sandbox(short) as used:
        result = used.run("import time\ntime.sleep(100)")
        assert result.status is CallStatus.EXPIRED
        until_lost(unused._worker)
        assert unused.run("print(1)").status is CallStatus.EXPIRED
        with pytest.raises(InfrastructureError):
            unused.run("print(1)")


LATER = """import os, time
if os.fork() == 0:
    time.sleep(0.5)
    {what}
    os._exit(0)
"""
USED_UP_LATER = {
    CallStatus.MEMORY: "kept = [os.urandom(1 << 20) for _ in range(600)]",
    CallStatus.CPU: "while True: pass",
}


@pytest.mark.parametrize("status", USED_UP_LATER)
@pytest.mark.parametrize("call", ["run", "exec", "patient run"])
def test_what_is_left_running_and_uses_up_a_limit_between_two_calls_is_named_at_the_next(
    pool_of_small: Sessions, status: CallStatus, call: str
) -> None:
    limits = SMALL.model_copy(update={"cpu_seconds": 1.0}) if status is CallStatus.CPU else SMALL
    with pool_of_small.sandbox(limits) as sandbox:
        assert sandbox.run(LATER.format(what=USED_UP_LATER[status])).status is CallStatus.OK
        until_lost(sandbox._worker)
        with pytest.raises(InfrastructureError):
            sandbox.read("/work/nothing")
        if call == "exec":
            ran = sandbox.exec(["/usr/bin/python3", "-c", "1"])
            assert (ran.status, ran.exit_code, ran.stdout) == (status, None, b"")
        else:
            result = sandbox.run("print(1)", patience=2.0 if call == "patient run" else 1.0)
            assert (result.status, result.output) == (status, "")
            assert result.error.endswith("; it had ended before this call, which did not run")
        with pytest.raises(InfrastructureError):
            sandbox.run("print(1)")


def test_a_sandbox_that_ends_by_itself_between_two_calls_broke_on_its_own_account(pool_of_small: Sessions) -> None:
    with pool_of_small.sandbox() as sandbox:
        pool_of_small._reactor.here(sandbox._worker.retire)
        until_lost(sandbox._worker)
        with pytest.raises(InfrastructureError):
            sandbox.run("print(1)")


def test_a_sandbox_that_used_up_a_limit_goes_on_from_its_snapshot(pool_of_small: Sessions) -> None:
    with pool_of_small.sandbox(SMALL.model_copy(update={"calls": 7})) as sandbox:
        assert sandbox.run("x = 5").status is CallStatus.OK
        snapshot = sandbox.snapshot()
        for _ in range(2):
            assert sandbox.run(LATER.format(what=USED_UP_LATER[CallStatus.MEMORY])).status is CallStatus.OK
            until_lost(sandbox._worker)
            assert sandbox.run("print(x)").status is CallStatus.MEMORY
            sandbox.restore(snapshot)
            assert sandbox.run("print(x)").output == "5\n"


def test_a_session_says_that_its_sandbox_expired_between_two_calls_and_begins_again(
    root_dir: Path, tmp_path: Path
) -> None:
    limits = SMALL.model_copy(update={"life_seconds": 6.0})
    settings = RuntimeSettings(own=BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=0), limits=limits)
    with Sessions(settings) as pool, pool.open(tier=Tier.SANDBOX) as session:
        assert session.run("x = 1").status is CallStatus.OK
        assert isinstance(session, LiveSession)
        assert session._placement._port is not None
        until_lost(session._placement._port.worker)
        result = session.run("print(x)")
        assert result.status is CallStatus.EXPIRED
        assert "starts again" in result.error
        assert session.run("print(x)").error.startswith("NameError")


@pytest.mark.parametrize("tier", Tier)
def test_a_session_has_so_many_calls_and_no_more(pool_of_small: Sessions, tier: Tier) -> None:
    with pool_of_small.open(tier=tier) as session:
        results = [future.result() for future in [session.start(f"print({n})") for n in range(9)]]
        assert [result.status for result in results] == [CallStatus.OK] * 6 + [CallStatus.CALLS] * 3
        assert (results[-1].sandbox, results[-1].output) == ("", "")
        assert session.usage.calls == 6


def test_a_sandbox_has_so_many_calls_programs_and_snapshots(pool_of_small: Sessions) -> None:
    with pool_of_small.sandbox() as sandbox:
        for _ in range(5):
            assert sandbox.run("1").status is CallStatus.OK
        assert sandbox.exec(["/usr/bin/python3", "-c", "1"]).status is CallStatus.OK
        assert sandbox.run("1").status is CallStatus.CALLS
        assert sandbox.exec(["/usr/bin/python3", "-c", "1"]).status is CallStatus.CALLS
        snapshot = sandbox.snapshot()
        with pytest.raises(LimitError):
            sandbox.snapshot()
        sandbox.restore(snapshot)


def test_a_limit_shorter_than_a_slice_holds_among_others_too(pool: Sessions) -> None:
    with pool.open() as session, pool.open() as neighbour:
        session.run("x = 3")
        took: list[float] = []
        while not took or (min(took) >= 0.05 + pool.settings.slice_seconds and len(took) < 10):
            started = time.monotonic()
            result = session.run(SPIN, seconds=0.05)
            took.append(time.monotonic() - started)
            assert result.status is CallStatus.TIMEOUT
            assert 0.05 <= result.seconds <= took[-1]
        assert min(took) < 0.05 + pool.settings.slice_seconds
        assert result.tier is Tier.SHARED
        assert neighbour.run("print(1)").output == "1\n"
        assert session.run("print(x)").output == "3\n"
        assert session.tier is Tier.SHARED


@pytest.mark.parametrize("tier", Tier)
def test_what_was_used_is_told_at_any_time_and_after_the_end(pool: Sessions, tier: Tier) -> None:
    session = pool.open(tier=tier)
    assert session.usage.calls == 0
    session.run("print('x' * 99)")
    session.run(f"n = 0\nwhile n < {1_000_000 if tier is Tier.SANDBOX else 1_000}: n += 1")
    session.run("1 / 0")
    live = session.usage
    went = list(Tier).index(session.tier) - list(Tier).index(tier)  # what does not get its turn in time moves on
    session.close()
    last = session.usage
    assert (last.calls, last.output_bytes, last.moves, last.snapshots) == (3, 100, went, 0)
    assert last.seconds == live.seconds > 0
    if session.tier is Tier.SANDBOX:
        assert live.cpu_seconds is not None
        assert last.cpu_seconds is not None
        assert 0.01 < live.cpu_seconds <= last.cpu_seconds
        assert (last.peak_memory_mib or 0) > 5
    else:
        assert last.cpu_seconds is None


def test_moves_are_counted(pool: Sessions) -> None:
    with pool.open() as session:
        session.run("x = 1")
        session.run("import random")
        session.run("import os")
        assert session.usage.moves == 2


def test_a_program_that_had_no_memory_left_is_not_why_a_later_call_died(root_dir: Path, tmp_path: Path) -> None:
    own = BrokerSettings(state_dir=tmp_path, root_dir=root_dir, backends=(BackendName.NSJAIL,))
    limits = SMALL.model_copy(update={"memory_mib": 96})
    with Sessions(RuntimeSettings(own=own, backend=BackendName.NSJAIL, limits=limits)) as pool:
        with pool.open(tier=Tier.SANDBOX) as session:
            ran = session.run(
                "import subprocess, sys\n"
                "print(subprocess.run([sys.executable, '-c', 'x = bytearray(200 << 20)']).returncode)"
            )
            assert (ran.status, ran.output) == (CallStatus.OK, "-9\n")
            assert session.run("import os; os._exit(0)").status is CallStatus.DIED
        with pool.open(tier=Tier.SANDBOX) as session:
            assert session.run(STOPPED[CallStatus.MEMORY]).status is CallStatus.MEMORY


def test_a_snapshot_that_was_refused_is_not_counted(root_dir: Path, tmp_path: Path) -> None:
    own = BrokerSettings(state_dir=tmp_path, root_dir=root_dir, backends=(BackendName.NSJAIL,))
    with (
        Sessions(RuntimeSettings(own=own, backend=BackendName.NSJAIL, limits=SMALL)) as pool,
        pool.open(tier=Tier.SANDBOX) as session,
    ):
        session.run("x = 1")
        for _ in range(2):
            with pytest.raises(RefusedError):
                session.fork(1)
        assert session.usage.snapshots == 0


def test_the_first_of_a_kind_does_not_pay_for_its_golden_image(root_dir: Path, tmp_path: Path) -> None:
    own = BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=0)
    limits = SMALL.model_copy(update={"memory_mib": 211})
    with Sessions(RuntimeSettings(own=own, limits=SMALL)) as pool:
        with pool.sandbox(limits) as first:
            used = first.usage.cpu_seconds
        assert used is not None
        assert used < 0.015


def test_code_that_ends_its_sandbox_between_two_calls_is_told_so_and_masks_nothing(pool_of_small: Sessions) -> None:
    with pool_of_small.open(tier=Tier.SANDBOX) as session:
        session.run("import os, threading\nthreading.Timer(0.1, os.kill, [1, 9]).start()")
        port = session._placement._port  # type: ignore[attr-defined]
        until_lost(port.worker)
        result = session.run("print(1)")
        assert (result.status, result.seconds) == (CallStatus.DIED, 0.0)
        assert "before this call, which did not run" in result.error
        assert session.run("print(2)").output == "2\n"
