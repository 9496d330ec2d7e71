"""Thirty days of nights on a fake clock: a real core, ledger, dispatcher and workers; only the model is scripted.

    python benchmarks/thirty_days.py [--days 30] [--json FILE]

The days begin on 2026-10-10 in Berlin, so one night has an hour twice. On some days the core is closed and opened
again in the middle of its night, the clock is set a day back or forward at noon and put right later, somebody uses the
GPU for hours, nights are paused for a day, or a night is too long for its window and goes on with the next. Checked:
each date has one night on record; no date has two cycles, and no cycle is begun twice; what did not run says why; each
cycle that began has ended with a decision. Memory of this process, which is the core's, is read after each day. The
bar: under 250 MB, and flat.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from appliance.config.configuration import Settings
from appliance.daemon.coordination.core import Core
from appliance.daemon.coordination.threads import Dispatcher
from appliance.nights.machine import MachineSnapshot
from appliance.records.nights import NightState
from benchmarks.record import write_run

MEMORY_BAR_MB = 250.0
GROWTH_BAR_MB = 15.0
"""Between a fifth of the days and the last one."""
WORKER = Path(__file__).with_name("scripted_night.py")
BEGIN = datetime(2026, 10, 10, 10, tzinfo=UTC)
DEADLINE_SECONDS = 900.0
"""Generous: a busy machine is no fault of a night."""
HAPPENS = ("restart", "slow", "clock back", "gpu", "pause", "clock forward")
JUMPS = {"clock back": timedelta(days=-1, hours=-9), "clock forward": timedelta(days=1, hours=-9)}


@dataclass
class Days:
    """What a person would see of the appliance over days; `at` is the fake clock."""

    data: Path
    at: datetime = BEGIN
    step: timedelta = timedelta(minutes=10)
    """Between two looks."""
    gpu: tuple[str, ...] = ()
    looks: int = 0
    memory_mb: list[float] = field(default_factory=list)

    def now(self) -> str:
        return self.at.isoformat(timespec="milliseconds")

    @contextmanager
    def running(self, **schedule: Any) -> Iterator[Core]:
        """A core with its dispatcher. Whatever ends the dispatcher is raised at the end."""
        self.data.mkdir(parents=True, exist_ok=True)
        self._set(self.at)
        rules = {"nightly": "01:00-06:30", "timezone": "Europe/Berlin", **schedule}
        settings = Settings(data=self.data, schedule=rules)
        failed: list[Exception] = []
        snapshot = lambda: MachineSnapshot(gpu_users=self.gpu, load=0.1)  # noqa: E731
        with Core(settings, now=self.now, worker=[sys.executable, "-P", str(WORKER)], machine=snapshot) as core:
            core.nights.look()
            self.dispatcher = Dispatcher(core, failed.append)
            self.dispatcher.start()
            try:
                yield core
            finally:
                self.dispatcher.close()
        if failed:
            raise failed[0]

    def tick(self, core: Core) -> None:
        """Some minutes pass; what the schedule lets work has worked when this returns, but for a slow night."""
        self._set(self.at + self.step)
        core.nights.look()
        self.looks += 1
        if core.nights.working:
            self.dispatcher.wake()
            self._until(lambda: core.cycles.unfinished() is None or self._is_slow(core))
        elif (cycle := core.cycles.unfinished()) is not None and core.supervisor.works_on(cycle.id):
            self._set(self.at + self.step)
            core.nights.look()
            self._until(lambda: not core.supervisor.works_on(cycle.id))

    def pass_until(self, core: Core, moment: datetime) -> None:
        while self.at < moment:
            self.tick(core)

    def _set(self, moment: datetime) -> None:
        self.at = moment
        beside = self.data / "clock.new"
        beside.write_text(self.now())
        beside.replace(self.data / "clock")

    def set_clock(self, change: timedelta) -> None:
        self._set(self.at + change)

    def _is_slow(self, core: Core) -> bool:
        cycle = core.cycles.unfinished()
        slow = (self.data / "slow").exists() and core.supervisor.process.pid is not None
        return slow and cycle is not None and len(core.ledger.recorded_steps(cycle.id)) >= 2

    @staticmethod
    def _until(condition: Any) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError("it never came to hold")
            time.sleep(0.05)


def own_memory_mb() -> float:
    """What this process has of its own, and its share of what it shares (PSS)."""
    import psutil

    return float(psutil.Process().memory_full_info().pss) / 1e6


def simulate(days: Days, count: int) -> dict[str, Any]:
    """Lets `count` days pass. Returns what was counted."""
    plan = _plan(count)
    planned = Counter(plan.values())
    day, first = 0, days.at
    while day < count:
        with days.running() as core:
            while day < count:
                what, noon = plan.get(day, ""), first + timedelta(days=day + 1)
                if what in JUMPS:  # into the night before, or into the next one
                    days.set_clock(JUMPS[what])
                    for _ in range(6):
                        days.tick(core)
                    days.set_clock(-JUMPS[what])
                elif what == "slow":
                    (days.data / "slow").touch()
                elif what == "pause":
                    core.nights.book.pause((days.at + timedelta(hours=23)).isoformat())
                two = (noon - timedelta(hours=24)).replace(hour=0, minute=0) + timedelta(days=1, hours=1)
                if what == "gpu":
                    days.gpu = ("game (process 7)",)
                    days.pass_until(core, two)
                    days.gpu = ()
                days.pass_until(core, two if what == "restart" else noon)
                if what == "restart":
                    break
                (days.data / "slow").unlink(missing_ok=True)
                days.memory_mb.append(own_memory_mb())
                day += 1
        plan.pop(day, None)
    return counted(days, count, planned)


def _plan(count: int) -> dict[int, str]:
    """Which day has what: something on every second day."""
    return {day: HAPPENS[(day // 2) % len(HAPPENS)] for day in range(1, count, 2)}


def counted(days: Days, count: int, planned: Counter[str]) -> dict[str, Any]:
    """Holds the ledger against what must be."""
    with days.running() as core:
        nights = {night.key: night for night in core.ledger.nights(1000)}
        cycles = core.ledger.cycles(1000)
        decided = {one.evaluation.removesuffix(".evaluation") for one in core.ledger.decisions(limit=1000)}
    first = (BEGIN + timedelta(days=1)).date()
    wanted = [(first + timedelta(days=day)).isoformat() for day in range(count)]
    begun = {cycle.id for cycle in cycles}
    times = Counter(night.cycle for night in nights.values() if night.cycle)
    states = Counter(night.state for night in nights.values())
    stopped = {night.cycle for night in nights.values() if night.state is NightState.STOPPED}
    unfinished = {cycle.id for cycle in cycles if not cycle.state.ended}
    wrong = {
        "dates without a night, or other dates": sorted(set(wanted) ^ set(nights)),
        "nights without a reason": [one.key for one in nights.values() if not one.reason and one.state.ended],
        "cycles that no night began": sorted(begun - set(times)),
        "cycles of several nights that none stopped": [one for one, n in times.items() if n > 1 and one not in stopped],
        "ended without a decision": sorted(begun - decided - unfinished),
        "missed otherwise than by a pause": abs(states[NightState.MISSED] - planned["pause"]),
        "stopped otherwise than by their window": abs(states[NightState.STOPPED] - planned["slow"]),
        "nights that have not ended": sum(not night.state.ended for night in nights.values()),
    }
    return {
        "days": count,
        "happened": dict(planned),
        "states": {state.value: n for state, n in states.items()},
        "cycles": len(begun),
        "wrong": {name: found for name, found in wrong.items() if found},
        "looks": days.looks,
        "memory_mb": [round(one, 1) for one in days.memory_mb],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="assay-days-") as folder:
        found = simulate(Days(Path(folder) / "data"), arguments.days)
    memory = found["memory_mb"]
    found["growth_mb"] = round(memory[-1] - memory[len(memory) // 5], 1)
    found["seconds"] = round(time.monotonic() - started, 1)
    flat = max(memory) < MEMORY_BAR_MB and found["growth_mb"] < GROWTH_BAR_MB
    found["within_bars"] = not found["wrong"] and flat
    print(json.dumps(found, indent=2))
    write_run(found, arguments.json)


if __name__ == "__main__":
    main()
