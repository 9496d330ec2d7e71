"""A commit counts while its lease holds: a late worker's, and one of another boot, is refused whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ledger_records as made
import pytest

from appliance.ledger.leases import Holder, LeaseLostError
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.jobs import JobState, work_of
from appliance.system.clock import RunningClock


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def ledger(path: Path, clock: Seconds) -> Iterator[SqliteLedger]:
    with SqliteLedger(path) as opened:
        opened.leases.clock = clock
        yield opened


def test_a_renewed_lease_goes_on_and_one_that_ran_out_writes_nothing_and_cannot_be_renewed(ledger, clock) -> None:
    holder = Holder("a worker")
    ledger.leases.take("cycle night-1", holder)
    with ledger.leases.acting(holder):
        clock.now = 50.0
        ledger.renew_leases()
        clock.now = 100.0
        ledger.put_cycle(made.cycle())
        clock.now = 111.0
        assert ledger.leases.overdue(holder) == "cycle night-1"
        with pytest.raises(LeaseLostError, match="was not renewed in time"):
            ledger.put_cycle(made.cycle(phase="training"))
        with pytest.raises(LeaseLostError):
            ledger.renew_leases()
    assert ledger.cycle("night-1") == made.cycle()
    ledger.put_cycle(made.cycle(phase="training"))
    assert ledger.cycle("night-1").phase == "training", "the core needs no lease"


def test_who_was_first_writes_nothing_once_the_work_is_another_s(ledger) -> None:
    first, second = Holder("the first"), Holder("the second")
    for holder in (first, second):
        ledger.leases.take("cycle night-1", holder)
    assert first.held["cycle night-1"] < second.held["cycle night-1"]
    with ledger.leases.acting(first), pytest.raises(LeaseLostError, match="another worker has it"):
        ledger.put_cycle(made.cycle())
    ledger.leases.release(first)
    with ledger.leases.acting(second):
        ledger.put_cycle(made.cycle())


def test_a_job_is_leased_to_who_claims_it_and_the_one_before_is_given_back(ledger) -> None:
    for name in ("one", "two"):
        ledger.put_job(made.job(name))
    holder = Holder("a worker")
    with ledger.leases.acting(holder):
        assert ledger.claim_job().id == "one"
        assert ledger.leases.holds(work_of("one"))
        ledger.put_job(made.job("one", state=JobState.UNSOLVED))
        assert ledger.claim_job().id == "two"
        assert not ledger.leases.holds(work_of("one"))
        ledger.put_job(made.job("two", state=JobState.UNSOLVED))
        assert ledger.claim_job(seconds=0.01) is None
        assert holder.held == {}
    ledger.put_job(made.job("three"))
    away = Holder("a worker", may_claim=lambda: False)
    with ledger.leases.acting(away):
        assert ledger.claim_job(seconds=60) is None
    assert away.sent_away


def test_deaths_are_counted_over_a_start_and_a_machine_that_went_down_is_one(path, ledger) -> None:
    assert [ledger.leases.died("job a", progress=False) for _ in range(2)] == [1, 2]
    assert ledger.leases.died("job b", progress=False) == 1
    assert ledger.leases.died("job b", progress=True) == 1
    for work in ("job a", "job c"):
        ledger.leases.take(work, Holder("a worker"))
    ledger.close()
    with SqliteLedger(path) as again:
        again.leases.open(["job a", "job b", "job c"])
        assert [again.leases.deaths(work) for work in ("job a", "job b", "job c")] == [2, 1, 0], "our own end is none"
        again.leases.take("job a", Holder("a worker"))
    with SqliteLedger(path) as after:
        after.leases._boot = "another boot"
        after.leases.open(["job a"])
        assert [after.leases.deaths(work) for work in ("job a", "job b")] == [3, 0], "what has ended is forgotten"
        after.leases.revive("job a")
        assert after.leases.deaths("job a") == 0


def test_the_clock_of_leases_does_not_count_that_this_process_was_stopped() -> None:
    source = Seconds()
    clock = RunningClock(source, most=15.0)
    source.now = 10.0
    assert clock() == 10.0
    source.now = 610.0
    assert clock() == 25.0
    source.now = 612.0
    assert clock() == 27.0


def test_deaths_are_in_a_row_and_one_after_work_that_came_to_its_end_is_the_first_again(ledger) -> None:
    """As where the solvers broke twice, then left the job to the model, whose worker dies once."""
    job = ledger.put_job(made.job("one"))
    first, second = Holder("solvers"), Holder("model")
    for deaths in (1, 2):
        assert ledger.leases.died(work_of(job.id), progress=False) == deaths
    with ledger.leases.acting(first):
        assert ledger.claim_job(part="solvers").id == job.id
        ledger.put_job(job.model_copy(update={"solvers_done": True}))
        assert ledger.claim_job(part="solvers") is None
    with ledger.leases.acting(second):
        assert ledger.claim_job(part="model").id == job.id
    ledger.leases.release(second)
    assert ledger.leases.died(work_of(job.id), progress=False) == 1
