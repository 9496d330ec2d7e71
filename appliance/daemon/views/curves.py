"""Figures of a cycle's training steps, from its records and the events of its own time. Read-only."""

from __future__ import annotations

from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import Cycle

MOST_EVENTS = 20_000
PAGE = 1_000


def step_figures(ledger: SqliteLedger, cycle: Cycle) -> tuple[dict[str, float], ...]:
    """Returns the figures of each training step of a cycle, ascending. Each has `step` and, if the rollouts are known,
    `length` in tokens per rollout."""
    steps = {int(one["step"]): one for one in ledger.step_metrics(cycle.id)}
    told = event_figures(ledger, cycle)
    return tuple(_with_length({**told.get(step, {}), **figures}) for step, figures in sorted(steps.items()))


def newest_figures(ledger: SqliteLedger, cycle: Cycle) -> dict[str, float]:
    """Returns the figures of a cycle's newest trained step, or before the first one, of its newest recorded step.
    Cheap: only that step's event is read."""
    recorded = {int(one["step"]): one for one in ledger.step_metrics(cycle.id)}
    if not recorded:
        return {}
    event = ledger.newest_of_kind("step", MOST_EVENTS)
    told = event.figures if event is not None and event.created >= cycle.created else {}
    step = int(told.get("step", max(recorded)))
    return _with_length({**told, **recorded.get(step, {})})


def event_figures(ledger: SqliteLedger, cycle: Cycle) -> dict[int, dict[str, float]]:
    """Returns a cycle's training figures by step that are known only after the step and recorded only in events. A
    later event of the same step, from a restarted worker, counts."""
    found: dict[int, dict[str, float]] = {}
    after = last_event_before(ledger, cycle.created)
    for _ in range(MOST_EVENTS // PAGE):
        page = ledger.events(after=after, limit=PAGE)
        for number, event in page:
            if cycle.state.ended and event.created > cycle.updated:
                return found
            if event.kind == "step" and "step" in event.figures:
                found[int(event.figures["step"])] = dict(event.figures)
            after = number
        if len(page) < PAGE:
            break
    return found


def last_event_before(ledger: SqliteLedger, moment: str) -> int:
    """Returns the sequence number of the last event before that time; events are numbered in order of time."""
    low, high = 0, ledger.newest_event()
    while low < high:
        middle = (low + high + 1) // 2
        page = ledger.events(after=middle - 1, limit=1)
        if page and page[0][0] <= high and page[0][1].created < moment:
            low = page[0][0]
        else:
            high = middle - 1
    return low


def _with_length(figures: dict[str, float]) -> dict[str, float]:
    rollouts = figures.get("rollouts", 0.0)
    return figures | ({"length": figures["tokens"] / rollouts} if rollouts and "tokens" in figures else {})
