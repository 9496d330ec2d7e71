"""A full disk ends nothing: what could not be written is tried again."""

from __future__ import annotations

import errno
import sqlite3
import threading
from pathlib import Path

import pytest
from daemon_kit import until

from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.daemon.coordination.threads import Dispatcher
from appliance.daemon.processes import wake_thread
from appliance.daemon.processes.wake_thread import WakeThread, takes_no_writes
from appliance.ledger.database import explained
from appliance.ledger.ledger import LedgerError
from appliance.records.jobs import Job, JobState
from verifiers.answers.spec import AnswerSpec


def full() -> LedgerError:
    """As the ledger raises it, from SQLite's own error."""
    store = sqlite3.connect(":memory:")
    store.execute("PRAGMA max_page_count = 1")
    with pytest.raises(LedgerError) as met, explained(Path("ledger")):
        store.execute("CREATE TABLE t (x)")
    store.close()
    return met.value


def test_a_full_disk_is_waited_out_and_anything_else_ends_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_thread, "AGAIN_SECONDS", 0.01)
    errors: list[Exception] = [full(), full()]
    done, failed = threading.Event(), threading.Event()
    ended: list[Exception] = []

    def step() -> None:
        if errors:
            raise errors.pop()
        done.set()

    def fail(error: Exception) -> None:
        ended.append(error)
        failed.set()

    thread = WakeThread("test", step, fail)
    thread.start()
    assert done.wait(120)
    assert not ended
    errors.append(LedgerError("damaged"))
    thread.wake()
    assert failed.wait(120)
    thread.close()
    assert [str(error) for error in ended] == ["damaged"]


def test_a_job_whose_end_could_not_be_written_is_queued_again(data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_thread, "AGAIN_SECONDS", 0.01)
    left = [full()]
    failed: list[Exception] = []
    with Core(Settings(data=data)) as core:
        core.ledger.put_job(
            Job(
                id="j",
                question="6*7?",
                spec=AnswerSpec(notation="digits", expected="42"),
                solvers_done=True,
                state=JobState.RUNNING,
                created=core.now(),
                updated=core.now(),
            )
        )

        def check() -> None:
            if left:
                raise left.pop()

        monkeypatch.setattr(core.governance, "check_canary", check)
        dispatcher = Dispatcher(core, failed.append)
        dispatcher.start()
        until(lambda: core.ledger.job("j").state is JobState.QUEUED)
        dispatcher.close()
    assert failed == []


def test_a_full_disk_is_known_by_its_cause() -> None:
    assert takes_no_writes(full())
    assert takes_no_writes(OSError(errno.ENOSPC, "No space left on device"))
    assert not takes_no_writes(OSError(errno.EACCES, "Permission denied"))
    assert not takes_no_writes(LedgerError("damaged"))
