"""A sandbox for interactive use: calls can be interrupted, and the state survives an interrupted call.

Invariants: the state before each block is kept if the backend takes snapshots quickly, so that an interrupted call can
be undone as a whole; only the newest state is kept. If it is not kept, that is reported once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from appliance.cli.sandbox.run import CALLER
from runtime.errors import InfrastructureError, SandboxError
from runtime.sandbox import CallResult, CallStatus, Limits, Priority, Sandbox, SnapshotId

if TYPE_CHECKING:
    from runtime.sandbox import SessionPool

SLOW_SECONDS = 10.0
"""Snapshot time, in seconds, beyond which states are no longer kept before every block. A small one takes hundredths of
a second, on a busy machine a few."""
STOP_SECONDS = 10.0
LIVES_ON = frozenset({CallStatus.OK, CallStatus.EXCEPTION, CallStatus.CALLS})


class ReplSession:
    def __init__(self, pool: SessionPool, limits: Limits, box: Sandbox, write: Callable[[str], None]) -> None:
        self._pool, self._limits, self._write = pool, limits, write
        self.box = box
        self._before: SnapshotId | None = None
        self._current = False
        """True if `_before` is the state before the current block."""
        self._keeps = True

    def run(self, code: str, show: Callable[[CallResult], None]) -> None:
        """Runs a block of Python in the sandbox and shows its result. Reports the sandbox's state if the call was
        stopped. Raises SandboxError if no replacement sandbox is available."""
        self._keep()
        try:
            result = self._interruptible(code)
        except KeyboardInterrupt:
            self._again("stopped")
            return
        except InfrastructureError as error:
            self._again(str(error))
            return
        show(result)
        if result.status not in LIVES_ON and not self._answers():
            self._again(f"the call ended its sandbox ({result.status.value})")

    def undo(self) -> bool:
        """Restores the sandbox's state before the last block; returns False without one."""
        if self._before is None:
            return False
        self.box.restore(self._before)
        return True

    def close(self) -> None:
        try:
            self.box.close()
        finally:
            self._forget()

    def _interruptible(self, code: str) -> CallResult:
        """Runs code in the sandbox on another thread, so that this one receives Ctrl-C. An interrupted call ends with
        its sandbox."""
        answer: Future[CallResult] = Future()

        def call() -> None:
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))  # they are for who waits
            try:
                answer.set_result(self.box.run(code))
            except BaseException as error:  # noqa: BLE001 - handed to who waits
                answer.set_exception(error)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        try:
            return answer.result()
        except KeyboardInterrupt:
            self.box.close()
            thread.join(STOP_SECONDS)
            raise

    def _answers(self) -> bool:
        try:
            return self.box.run("").status in LIVES_ON
        except InfrastructureError:
            return False

    def _again(self, why: str) -> None:
        """Replaces a lost sandbox by one with its last kept state, and reports the reason and what was lost."""
        self.box.close()
        self.box = self._pool.sandbox(self._limits, snapshot=self._before, caller=CALLER, priority=Priority.JOB)
        if self._before is None:
            self._write(f"{why}; restarted without names and files")
        elif self._current:
            self._write(f"{why}; restored the state before this block")
        else:
            self._write(f"{why}; the effects of this block and the previous one are lost")

    def _keep(self) -> None:
        self._current = False
        if not self._keeps:
            self._forget()
            return
        started = time.monotonic()
        try:
            snapshot_id = self.box.snapshot()
        except SandboxError as error:
            if self._answers():
                self._forget()
                self._keeps = False
                self._write(f"states cannot be kept before each block, so stopping a block loses everything: {error}")
            return
        self._forget()
        self._before, self._current = snapshot_id, True
        if time.monotonic() - started > SLOW_SECONDS:
            self._keeps = False
            self._write("this state is too large to be kept before each block; keep one with `:snapshot`")

    def _forget(self) -> None:
        snapshot_id, self._before = self._before, None
        if snapshot_id is not None:
            self._pool.forget(snapshot_id)
