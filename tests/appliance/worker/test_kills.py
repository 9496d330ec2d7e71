"""kill -9 of parts and of everything, in its short form; `benchmarks/kills.py` makes thirty."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import guest_roots as building
import psutil
import pytest

from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState
from appliance.records.rollouts import RolloutEnd
from appliance.records.training import RolloutFilter
from benchmarks.kills import FIXTURE, SMALL, count, kill_tree, left_on_host, start, survivors, trial
from runtime.broker import ask
from runtime.errors import RefusedError


def test_a_night_that_loses_its_broker_and_then_everything_goes_on_counts_nothing_twice_and_leaves_nothing(
    tmp_path: Path, guest_roots: Path
) -> None:
    data = tmp_path / "data"
    building.lend(guest_roots, data / "run")
    process = start(data, FIXTURE, seed=3, size=SMALL)
    first = broker_at_work(process, data, other_than=0)
    psutil.Process(first).kill()
    broker_at_work(process, data, other_than=first)
    assert survivors(kill_tree(process), data) == []
    assert process.stderr is not None
    process.stderr.close()

    process = start(data, FIXTURE, seed=3, size=SMALL)
    _, complaint = process.communicate(timeout=280)
    assert process.returncode in (0, 1), complaint
    assert count(data, SMALL) == []
    assert left_on_host(data) == []
    with SqliteLedger(data / "ledger.sqlite3") as ledger:
        (cycle,) = ledger.cycles()
        assert cycle.state is CycleState.DONE
        assert sum(event.kind == "broker" for _, event in ledger.events(limit=10_000)) == 1
        for judged in ledger.rollouts(RolloutFilter(cycle=cycle.id), limit=10_000):
            assert judged.rollout.ended is not RolloutEnd.INFRA_ERROR or judged.verdict.outcome.value == "infra_error"


@pytest.mark.slow
def test_a_night_killed_twice_at_random_moments_has_no_fault(tmp_path: Path) -> None:
    tally = trial(kills=2, seed=7, model=FIXTURE, folder=tmp_path, longest=10.0)
    assert (tally.faults, tally.kills) == ([], 2)


def broker_at_work(process: subprocess.Popen[bytes], data: Path, *, other_than: int) -> int:
    """The process number of the night's broker, once the cycle has begun and there are sandboxes."""
    while process.poll() is None:
        broker = broker_of(data) if (data / "cycles").exists() else 0
        try:
            if broker not in (0, other_than) and psutil.Process(broker).children():
                return broker
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.05)
    pytest.fail(f"the night ended: {process.communicate()[1]!r}")


def broker_of(data: Path) -> int:
    try:
        return ask(data / "run" / "broker.sock").pid
    except RefusedError:
        return 0
