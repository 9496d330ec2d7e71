"""Is a sandbox that somebody types into: it can be interrupted, and is not lost with a call that had to be stopped.

What always holds: before each block its state is kept where the backend takes snapshots and that is quick, so that a
stopped call can be taken back as a whole; only the newest such state is kept. Where it is not, that is said once.
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
"""A state that took longer to keep is not kept before every block. A small one takes hundredths of a second, and on a
busy machine a few."""
STOP_SECONDS = 10.0
LIVES_ON = frozenset({CallStatus.OK, CallStatus.EXCEPTION, CallStatus.CALLS})


class ReplSession:
    def __init__(self, pool: SessionPool, limits: Limits, box: Sandbox, write: Callable[[str], None]) -> None:
        self._pool, self._limits, self._write = pool, limits, write
        self.box = box
        self._before: SnapshotId | None = None
        self._current = False
        """Whether that is the state before the block under way."""
        self._keeps = True

    def run(self, code: str, show: Callable[[CallResult], None]) -> None:
        """Shows the result, if there is one, and then says what became of the sandbox when the call was stopped.

        Raises SandboxError when a sandbox cannot be had again.
        """
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
        """Goes back to before the last block; whether there was such a state."""
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
        """The call runs on a thread of its own, so that this one gets Ctrl-C; whose call it was then ends with its
        sandbox."""
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
        """Opens another sandbox in the place of one that is gone."""
        self.box.close()
        self.box = self._pool.sandbox(self._limits, snapshot=self._before, caller=CALLER, priority=Priority.JOB)
        if self._before is None:
            self._write(f"{why}; it starts again with no names and no files")
        elif self._current:
            self._write(f"{why}; everything is as it was before this block")
        else:
            self._write(f"{why}; what this block and the one before it did is lost")

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
                self._write(f"states cannot be kept before each block, so a stopped block takes all with it: {error}")
            return
        self._forget()
        self._before, self._current = snapshot_id, True
        if time.monotonic() - started > SLOW_SECONDS:
            self._keeps = False
            self._write("this state is too large to be kept before each block; `:snapshot` keeps one")

    def _forget(self) -> None:
        snapshot_id, self._before = self._before, None
        if snapshot_id is not None:
            self._pool.forget(snapshot_id)
