"""kill -9 of everything, in its short form; `benchmarks/kills.py` makes thirty."""

from __future__ import annotations

import time
from pathlib import Path

import guest_roots as building
import psutil

from appliance.ledger.sqlite import SqliteLedger
from appliance.records import CycleState, Ended
from benchmarks.kills import FIXTURE, SMALL, count, left_on_host, start, trial
from runtime.broker.client import ask
from runtime.errors import RefusedError


def test_a_killed_night_goes_on_counts_nothing_twice_and_leaves_nothing(tmp_path: Path, guest_roots: Path) -> None:
    def prepare(data: Path) -> None:
        building.lend(guest_roots, data / "run")

    tally = trial(kills=2, seed=7, model=FIXTURE, folder=tmp_path, longest=10.0, size=SMALL, prepare=prepare)
    assert tally.faults == []
    assert tally.kills == 2


def test_a_night_whose_broker_is_killed_goes_on_and_nothing_that_it_broke_is_counted(
    tmp_path: Path, guest_roots: Path
) -> None:
    data = tmp_path / "data"
    building.lend(guest_roots, data / "run")
    process = start(data, FIXTURE, seed=3, size=SMALL)
    killed: set[int] = set()
    while process.poll() is None:
        time.sleep(0.1)
        if len(killed) < 2 and (data / "cycles").exists():
            broker = broker_of(data)
            if broker and broker not in killed and psutil.Process(broker).children():
                killed.add(broker)
                psutil.Process(broker).kill()
    assert process.stderr is not None
    assert process.returncode in (0, 1), process.stderr.read()
    process.stderr.close()
    assert len(killed) == 2
    assert count(data, SMALL) == []
    assert left_on_host(data) == []
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        (cycle,) = ledger.cycles()
        assert cycle.state is CycleState.DONE
        assert sum(event.kind == "broker" for _, event in ledger.events(limit=10_000)) == 2
        for judged in ledger.rollouts(cycle=cycle.id, limit=10_000):
            assert judged.rollout.ended is not Ended.INFRA_ERROR or judged.verdict.outcome.value == "infra_error"


def broker_of(data: Path) -> int:
    try:
        return ask(data / "run" / "broker.sock").pid
    except RefusedError:
        return 0
