"""A thread that runs a step whenever it is woken, and again after the time that the step returns.

Invariants: a full or read-only disk ends nothing, because the step is retried soon; any other error ends the thread and
is passed on, never lost.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Callable

import structlog

from appliance.ledger.database import ReadOnlyError

STOP_SECONDS = 10.0
"""Total time to stop, in seconds, including the broker's `GRACE_SECONDS` (`appliance.daemon.processes.broker_process`).
"""
WORK_SECONDS = 4.0
"""Grace of a worker, of the gateway, and of the command that collects tasks before a night, in seconds."""

LOST_SECONDS = 0.5
"""Grace of a worker whose broker is lost, in seconds. No step finishes within a grace: the worker is interrupted in the
middle of one, and the next resumes from the last record. So the grace only serves to close what is open, and no sandbox
is left to close."""


def close_together(*closers: Callable[[], object]) -> None:
    """Calls these functions concurrently, waits for all, and raises one of their errors."""
    failed: list[BaseException] = []

    def run(close: Callable[[], object]) -> None:
        try:
            close()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    threads = [threading.Thread(target=run, args=(one,), name="closing") for one in closers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


log = structlog.get_logger("assay")
AGAIN_SECONDS = 5.0
"""Delay before a failed write is retried, in seconds."""


class WakeThread:
    """A thread with a repeated step: `start` once, `wake` when there may be work, `close` to end. `step` returns the
    seconds until the next one, None to wait for `wake`; `on_error` gets the error that ended the thread."""

    def __init__(self, name: str, step: Callable[[], float | None], on_error: Callable[[Exception], None]) -> None:
        self._step = step
        self._on_error = on_error
        self._wake = threading.Event()
        self.closing = False
        self._said = ""
        self._thread = threading.Thread(target=self._run, name=name)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        self.closing = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self.closing:
                try:
                    seconds, said = self._step(), ""
                except Exception as error:
                    if not takes_no_writes(error):
                        raise
                    seconds, said = AGAIN_SECONDS, str(error)
                    if said != self._said:  # logged once
                        log.warning(
                            "the disk is full or read-only: the write is retried", problem=said, seconds=seconds
                        )
                self._said = said
                self._wake.wait(seconds)
                self._wake.clear()
        except Exception as error:  # noqa: BLE001 - the thread's outermost frame: handed on, never lost
            self._on_error(error)


def takes_no_writes(error: BaseException) -> bool:
    """True if the error or one of its causes says that a disk is full or read-only."""
    met: BaseException | None = error
    while met is not None:
        if isinstance(met, ReadOnlyError):
            return True
        if isinstance(met, OSError) and met.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            return True
        if isinstance(met, sqlite3.Error) and getattr(met, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
            return True
        met = met.__cause__
    return False
