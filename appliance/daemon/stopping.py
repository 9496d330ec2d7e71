"""What a daemon that is told to end gives each of its children, and how it ends several at once.

What always holds: worker, solvers and gateway end side by side, and the broker after them, for they use its sandboxes;
what does not end in its time is killed. Together that is less than `STOP_SECONDS`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

STOP_SECONDS = 10.0
"""That all of it may take, with the broker's `GRACE_SECONDS` (`appliance.daemon.broker_process`)."""
WORK_SECONDS = 4.0
"""Of a worker, of the gateway, and of the command that makes tasks before a night."""

LOST_SECONDS = 0.5
"""Of a worker whose broker will not come back. No step comes to its end in any grace: a worker is told to end in the
middle of it, and the next one goes on from the last record. So the grace is for closing what is open, and of sandboxes
there is nothing left to close."""


def close_together(*closers: Callable[[], object]) -> None:
    """Calls them at the same time and returns when all have returned; raises what one of them raised."""
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
