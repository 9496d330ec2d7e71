"""The schedule's thread; `appliance.daemon.nights.runner` makes its decisions."""

from __future__ import annotations

from collections.abc import Callable

from appliance.daemon.nights.runner import LOOK_SECONDS, Nights
from appliance.daemon.processes.wake_thread import WakeThread
from appliance.ledger.audited import TamperedError


def schedule_thread(nights: Nights, wake: Callable[[], object], on_error: Callable[[Exception], None]) -> WakeThread:
    """Creates the thread that runs the schedule of nights, without starting it. `wake` is called when a night's cycle
    may work."""

    def look() -> float:
        try:
            seconds = nights.look()
        except TamperedError:
            return LOOK_SECONDS  # nothing begins meanwhile; the dispatcher reports it
        if nights.working:
            wake()
        return seconds

    return WakeThread("schedule", look, on_error)
