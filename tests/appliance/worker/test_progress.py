"""A cycle that is quiet for long reports its progress within a step, and a busy one does not."""

from __future__ import annotations

from typing import Any

from short_nights import cycle_of

from appliance.records.cycles import Event
from appliance.worker.setup.progress import QUIET_SECONDS, CycleProgress


class Kept:
    """A ledger of events alone."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def put_event(self, event: Event) -> None:
        self.events.append(event)


def test_progress_within_a_step_is_reported_every_minute_until_something_else_is() -> None:
    clock = [0.0]
    ledger: Any = Kept()
    progress = CycleProgress(cycle_of("n"), ledger, lambda: clock[0])
    reported = []
    for second in range(10 * int(QUIET_SECONDS)):
        clock[0] = float(second)
        before = len(ledger.events)
        progress.still(f"{second} of 300 attempts ended")
        if len(ledger.events) > before:
            reported.append(second / QUIET_SECONDS)
    assert reported == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert {event.kind for event in ledger.events} == {"progress"}
    progress.say("step", "step 1 of 2")
    clock[0] += QUIET_SECONDS - 1
    progress.still("too early")
    clock[0] += 1
    progress.still("due")
    assert [event.text for event in ledger.events[-2:]] == ["step 1 of 2", "due"]
