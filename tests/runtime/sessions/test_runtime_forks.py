"""Branches: of sessions in every tier, and of sandboxes from their snapshots; nobody sees what happens in another."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runtime.errors import BadRequestError, BusyError, InfrastructureError, SandboxError
from runtime.sandbox import CallStatus, Session, SnapshotId, Tier
from runtime.sessions import Sessions
from runtime.settings import BrokerSettings, RuntimeSettings

BEGIN = {
    Tier.SHARED: "x = 1",
    Tier.PROCESS: "import random, enum\nx = 1",
    Tier.SANDBOX: "import os, threading\nx = 1\nopen('/work/a', 'w').write('kept')\nopen('/tmp/b', 'w').write('too')",
}


def says(session: Session, code: str) -> str:
    result = session.run(code)
    assert result.status is CallStatus.OK, result
    return result.output


@pytest.mark.parametrize("tier", Tier)
def test_branches_begin_where_the_session_was_and_go_their_own_ways(pool: Sessions, tier: Tier) -> None:
    with pool.open() as session:
        says(session, BEGIN[tier])
        branches = session.fork(3)
        futures = [branch.start(f"x += {n}\nprint(x)") for n, branch in enumerate(branches)]
        assert [future.result(timeout=120).output for future in futures] == ["1\n", "2\n", "3\n"]
        assert says(session, "x += 10\nprint(x)") == "11\n"
        assert [branch.tier for branch in branches] == [tier] * 3
        assert len({says(branch, "print(x)") for branch in branches}) == 3
        if tier is Tier.SANDBOX:
            assert [says(branch, "print(open('/work/a').read(), open('/tmp/b').read())") for branch in branches] == [
                "kept too\n"
            ] * 3
            says(branches[0], "open('/work/a', 'w').write('changed')")
            assert says(branches[1], "print(open('/work/a').read())") == "kept\n"
            assert session.usage.snapshots == 1
        for branch in branches:
            branch.close()
        assert says(session, "print(x)") == "11\n"


def test_branches_of_a_sandbox_have_other_random_numbers(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX) as session:
        says(session, "import random, os")
        branches = session.fork(3)
        drawn = [says(branch, "print(random.random(), os.urandom(4).hex())") for branch in [*branches, session]]
        assert len({line.split()[0] for line in drawn}) == 4
        assert len({line.split()[1] for line in drawn}) == 4
        for branch in branches:
            branch.close()


def test_a_fork_waits_for_the_calls_before_it_and_a_branch_can_be_forked(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX) as session:
        session.start("import time\ntime.sleep(0.3)\nx = 1")
        [branch] = session.fork(1)
        [second] = branch.fork(1)
        branch.run("x = 2")
        assert says(second, "print(x)") == "1\n"
        branch.close()
        second.close()


def test_branches_that_are_closed_unused_leave_no_snapshot_and_no_place(pool: Sessions) -> None:
    before = pool.stats()["waiting"]
    with pool.open(tier=Tier.SANDBOX) as session:
        says(session, "x = 1")
        for branch in session.fork(4):
            branch.close()
        assert says(session, "print(x)") == "1\n"
    assert pool.stats()["waiting"] == before


def test_a_session_whose_sandbox_ended_cannot_be_forked_but_goes_on(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX) as session:
        says(session, "import os, threading\nthreading.Timer(0.1, os._exit, [0]).start()")
        deadline = time.monotonic() + 120
        while (result := session.run("1")).status is CallStatus.OK:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert result.status is CallStatus.DIED
        [branch] = session.fork(1)
        assert says(branch, "print('fresh')") == "fresh\n"
        branch.close()


@pytest.mark.parametrize("n", [0, -1, 1_000_000])
def test_a_number_of_branches_that_makes_no_sense_is_the_callers_mistake(pool: Sessions, n: int) -> None:
    with pool.open() as session, pytest.raises(BadRequestError):
        session.fork(n)


def test_a_sandbox_goes_back_to_its_snapshot_with_everything(pool: Sessions) -> None:
    with pool.sandbox() as sandbox:
        sandbox.run("import subprocess, sys\nx = 1\nopen('/work/a', 'w').write('one')\nfile = open('/work/a')")
        before, snapshot = sandbox.id, sandbox.snapshot()
        assert sandbox.run("print(x)").output == "1\n", "it goes on after a snapshot"
        sandbox.run("x = 2\nopen('/work/a', 'w').write('two')\nfile.close()")
        sandbox.restore(snapshot)
        assert sandbox.id != before
        assert sandbox.run("print(x, file.read(), open('/work/a').read())").output == "1 one one\n"
        sandbox.run("import os; os._exit(1)")
        with pytest.raises(InfrastructureError):
            sandbox.run("1")
        sandbox.restore(snapshot)
        assert sandbox.run("print(x)").output == "1\n", "a snapshot outlives the sandbox that it was taken of"
        usage = sandbox.usage
        assert (usage.snapshots, usage.moves) == (1, 2)


def test_sandboxes_that_fork_are_told_apart_and_the_first_goes_on(pool: Sessions) -> None:
    with pool.sandbox() as trunk:
        trunk.run("x = 1")
        snapshot = trunk.snapshot()
        trunk.run("x = 5")
        branches = trunk.fork(snapshot, 2)
        assert len({trunk.id, *(branch.id for branch in branches)}) == 3
        assert [branch.run("print(x)").output for branch in branches] == ["1\n", "1\n"]
        assert trunk.run("print(x)").output == "5\n"
        for branch in branches:
            branch.close()
            branch.close()


def test_copies_may_be_prepared_and_are_as_the_snapshot_was(pool: Sessions) -> None:
    with pool.sandbox() as sandbox:
        sandbox.run("x = 1")
        snapshot = sandbox.snapshot()
        sandbox.prepare(snapshot, 1)
        for copies in (1, 2, 0):
            sandbox.restore(snapshot)
            assert sandbox.run("print(x)\nx += 1").output == "1\n"
            sandbox.prepare(snapshot, copies)


def test_a_durable_snapshot_is_continued_and_forgotten(pool: Sessions) -> None:
    with pool.sandbox(pool.limits.model_copy(update={"memory_mib": 96})) as sandbox:
        sandbox.run("x = 7")
        snapshot = sandbox.snapshot(durable=True)
    with pool.sandbox(snapshot=snapshot) as again:
        assert again.limits.memory_mib == 96, "what it was built with goes before what is asked for"
        assert again.run("print(x)").output == "7\n"
    pool.forget(snapshot)
    with pytest.raises(SandboxError):
        pool.sandbox(snapshot=snapshot)


def test_a_snapshot_that_is_none_is_refused_and_nothing_is_lost(pool: Sessions) -> None:
    with pool.sandbox() as sandbox:
        sandbox.run("x = 1")
        for name in ("0" * 64, "../../etc/passwd", "", "A" * 64, "\0" * 64):
            for attempt in (sandbox.restore, sandbox.prepare, pool.forget, lambda known: pool.sandbox(snapshot=known)):
                with pytest.raises(SandboxError):
                    attempt(SnapshotId(name))
            with pytest.raises(SandboxError):
                sandbox.fork(SnapshotId(name), 2)
            assert sandbox.run("print(x)").output == "1\n"


def test_a_sandbox_that_is_closed_in_the_middle_of_a_call_answers_it_at_once(pool: Sessions) -> None:
    sandbox = pool.sandbox(pool.limits.model_copy(update={"call_seconds": 1_000.0}))
    errors: list[BaseException] = []

    def call() -> None:
        try:
            sandbox.run("import time\ntime.sleep(1000)")
        except SandboxError as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    while not sandbox._worker._under_way:
        assert thread.is_alive()
        time.sleep(0.01)
    sandbox.close()
    thread.join(timeout=120)
    assert not thread.is_alive(), "the call would take 1000 s"
    assert [type(error) for error in errors] == [BadRequestError]


def test_a_snapshot_in_the_middle_of_a_call_is_refused_and_disturbs_nobody(pool: Sessions) -> None:
    with pool.sandbox() as sandbox, ThreadPoolExecutor(1) as thread:
        sandbox.run("x = 1")
        under_way = thread.submit(sandbox.run, "import time\ntime.sleep(3.0)\nx = 2\nprint(x)")
        while not sandbox._worker._under_way:
            assert not under_way.done()
            time.sleep(0.01)
        with pytest.raises(BadRequestError, match="a call is running"):
            sandbox.snapshot()
        assert under_way.result(timeout=120).output == "2\n"
        snapshot = sandbox.snapshot()
        sandbox.restore(snapshot)
        assert sandbox.run("print(x)").output == "2\n"
        assert sandbox.usage.snapshots == 1


def test_calls_that_begin_while_a_snapshot_is_taken_are_answered_and_not_in_it(pool: Sessions) -> None:
    with pool.sandbox() as sandbox, ThreadPoolExecutor(4) as threads:
        sandbox.run("x = 0")
        taking = threads.submit(sandbox.snapshot)
        calls = [threads.submit(sandbox.run, "x += 1\nprint(x)") for _ in range(3)]
        assert sorted(call.result(timeout=120).output for call in calls) == ["1\n", "2\n", "3\n"]
        try:
            snapshot = taking.result(timeout=120)
        except BadRequestError:  # the call was first
            snapshot = sandbox.snapshot()
        sandbox.restore(snapshot)
        assert sandbox.run("print(x in range(4))").output == "True\n"
        assert sandbox.run("print(x + 1)").status is CallStatus.OK


@pytest.mark.parametrize("tier", Tier)
def test_a_session_is_forked_as_it_was_before_a_call_whatever_became_of_that_call(pool: Sessions, tier: Tier) -> None:
    with pool.open() as session:
        says(session, BEGIN[tier])
        assert session.start("x = 99\nraise ValueError", keep=True).result().status is CallStatus.EXCEPTION
        one, other = session.fork(2, undo=True)
        assert says(one, "x += 1\nprint(x)") == "2\n"
        assert says(other, "print(x)") == "1\n"
        assert says(session, "print(x)") == "99\n"
        if tier is Tier.SANDBOX:
            assert session.start("while True: pass", seconds=0.5, keep=True).result().status is CallStatus.TIMEOUT
            [rescued] = session.fork(1, undo=True)
            assert says(rescued, "print(x, open('/work/a').read())") == "99 kept\n"
            assert session.run("x").status is CallStatus.EXCEPTION
            rescued.close()
        one.close()
        other.close()


def test_nothing_is_undone_where_nothing_was_kept(pool: Sessions) -> None:
    with pool.open() as session:
        session.run("x = 1")
        with pytest.raises(BadRequestError, match="no state was kept"):
            session.fork(1, undo=True)


def test_before_its_first_call_a_session_is_kept_without_a_snapshot(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX, files={"a.txt": b"kept"}) as session:
        session.start("open('a.txt', 'w').write('changed')", keep=True).result()
        [branch] = session.fork(1, undo=True)
        assert says(branch, "print(open('a.txt').read())") == "kept\n"
        assert says(session, "print(open('a.txt').read())") == "changed\n"
        assert session.usage.snapshots == 0
        branch.close()


def test_what_is_kept_of_a_session_that_is_closed_leaves_no_snapshot(pool: Sessions) -> None:
    with pool.open(tier=Tier.SANDBOX) as session:
        says(session, "x = 1")
        says_again = session.start("x = 2", keep=True).result()
        assert says_again.status is CallStatus.OK
        assert session.usage.snapshots == 1
        [branch] = session.fork(1, undo=True)
    assert says(branch, "print(x)") == "1\n"
    branch.close()
    with pool.open(tier=Tier.SANDBOX) as session:
        says(session, "x = 1")
        session.start("x = 2", keep=True)
        session.close()
    assert pool.stats()["sessions"] == 0


def test_a_branch_of_a_branch_that_has_not_repeated_its_history_yet_has_it_too(root_dir: Path, tmp_path: Path) -> None:
    own = BrokerSettings(state_dir=tmp_path, root_dir=root_dir, ready=1)
    settings = RuntimeSettings(own=own, shared_workers=1, sandboxes=1, place_seconds=1.0)
    with Sessions(settings) as pool:
        with pool.open(tier=Tier.SANDBOX) as holder, pool.open() as session:
            says(holder, "1")
            says(session, "import enum\nx = 1")
            with pytest.raises(BusyError):  # it is on its way to a sandbox of its own, and none is free
                session.run("open('/work/a', 'w')")
            holder.close()
            [branch] = session.fork(1)
        begun = branch._placement  # type: ignore[attr-defined]
        deadline = time.monotonic() + 120
        while begun._port is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        [second] = branch.fork(1)
        branch.close()
        assert says(second, "print(x)") == "1\n"


def test_what_the_sandbox_before_had_used_counts_while_it_ends(pool: Sessions) -> None:
    with pool.sandbox() as sandbox:
        sandbox.run("for n in range(3_000_000): pass")
        snapshot = sandbox.snapshot()
        before = sandbox.usage.cpu_seconds
        sandbox.restore(snapshot)
        at_once = sandbox.usage.cpu_seconds
        assert before
        assert at_once
        assert at_once >= before > 0.02
        for _ in range(20):
            later = sandbox.usage.cpu_seconds
            assert later
            assert before <= later < 2 * before + 1.0
            time.sleep(0.02)
