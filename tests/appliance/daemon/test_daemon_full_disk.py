"""A full disk ends nothing: what could not be written is tried again."""

from __future__ import annotations

import errno
import sqlite3
import threading
from pathlib import Path

import pytest

from appliance.daemon import deadlines, dispatcher
from appliance.daemon.deadlines import Deadlines
from appliance.daemon.dispatcher import Dispatcher
from appliance.daemon.full_disk import is_full_disk
from appliance.ledger.failures import explained
from appliance.ledger.ledger import LedgerError


def full() -> LedgerError:
    """As the ledger raises it, from SQLite's own error."""
    store = sqlite3.connect(":memory:")
    store.execute("PRAGMA max_page_count = 1")
    with pytest.raises(LedgerError) as met, explained(Path("ledger")):
        store.execute("CREATE TABLE t (x)")
    store.close()
    return met.value


class Work:
    """A core, its crew and its desk in one, whose first writes meet `error`; says when one has gone well."""

    def __init__(self, error: Exception) -> None:
        self.left = [error, error]
        self.went_well = threading.Event()
        self.put_back_again = False
        self.crew = self
        self.waits_for = ""

    def end_overdue(self) -> None:
        if self.left:
            raise self.left.pop()
        self.went_well.set()

    tend = end_overdue

    def put_back(self) -> None:
        self.put_back_again = True

    def has_job(self) -> bool:
        return False

    def unfinished_cycle(self) -> None:
        return None

    def rest(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.mark.parametrize("kind", [Dispatcher, Deadlines])
def test_a_full_disk_is_waited_out_and_anything_else_ends_the_daemon(kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(deadlines, "AGAIN_SECONDS", 0.01)
    heard: list[Exception] = []
    work = Work(full())
    thread = kind(work, heard.append)
    thread.start()
    assert work.went_well.wait(60)
    thread.close()
    assert not heard
    assert work.put_back_again is (kind is Dispatcher)

    told = threading.Event()
    broken = Work(LedgerError("damaged"))
    thread = kind(broken, lambda error: (heard.append(error), told.set()))
    thread.start()
    assert told.wait(60)
    thread.close()
    assert [str(error) for error in heard] == ["damaged"]


def test_a_full_disk_is_known_by_its_cause() -> None:
    assert is_full_disk(full())
    assert is_full_disk(OSError(errno.ENOSPC, "No space left on device"))
    assert not is_full_disk(OSError(errno.EACCES, "Permission denied"))
    assert not is_full_disk(LedgerError("damaged"))
