"""What passes by itself fails nothing: while our own broker is away or the disk is low, work waits and says why."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from checkpoint_records import checkpoint_record
from daemon_kit import attempts, dispatched, until

from appliance.cli.service.commands import _show_status
from appliance.client.messages import SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import job_detail, jobs_of, status_of
from appliance.daemon.coordination import threads
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.readiness import Readiness
from appliance.daemon.service.supervisor import RetryPolicy
from appliance.jobs.lifecycle import waits_for
from appliance.readiness import sandbox as sandbox_readiness
from appliance.records.cycles import CycleState
from appliance.records.jobs import Job, JobState
from runtime.errors import RefusedError
from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.spec import ChecklistSpec

pytestmark = pytest.mark.usefixtures("lent")
CHILD = Path(__file__).parents[1] / "child_worker.py"
SPEC = AnswerSpec(notation="digits", expected="6")
TEXT = ChecklistSpec.model_validate({"items": [{"item": "length", "name": "length", "target": 60}]})
"""What no solver tries."""


class Broker:
    """One that can be away; `left` counts the questions until it is."""

    def __init__(self) -> None:
        self.left = 10**6

    def __call__(self, socket: Path) -> SimpleNamespace:
        self.left -= 1
        if self.left < 0:
            raise RefusedError("no broker answers", hint="Start the service or the broker.")
        return SimpleNamespace(backends={"gvisor": "1"})


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(sandbox_readiness, "ask", made)
    monkeypatch.setattr(threads, "WAITING_SECONDS", 0.02)
    return made


@contextmanager
def core(data: Path, mode: str = "finish", *, own: bool = True) -> Iterator[Core]:
    settings = Settings.load({"data": data, "sandbox.broker": data / "broker.sock"}, environ={}, xdg_dir=data)
    retry = RetryPolicy(attempts=3, first_seconds=0.01, factor=1.0)
    worker = [sys.executable, str(CHILD), mode]
    with Core(settings, worker=worker, retry=retry, own_broker=own) as opened:
        yield opened


def test_jobs_stay_queued_while_our_own_broker_is_away_and_are_worked_on_when_it_is_back(data, broker, capsys) -> None:
    broker.left = 0
    with core(data) as running:
        jobs = [running.jobs.submit(SubmitJob(question=str(n), spec=SPEC)) for n in range(3)]
        with dispatched(running) as thread:
            until(lambda: status_of(running).worker.waits_for)
            assert "no broker answers" in status_of(running).worker.waits_for
            assert "restarts by itself" in status_of(running).worker.waits_for
            for job in jobs_of(running, 10):
                assert (job.state, "no broker answers" in job.reason) == (JobState.QUEUED, True)
            assert attempts(data) == 0
            _show_status(status_of(running))
            assert "blocked by" in capsys.readouterr().out
            texts = [event.text for _, event in running.ledger.events() if "no broker answers" in event.text]
            assert len(texts) == 1
            broker.left = 10**6
            thread.wake()
            until(lambda: all(running.ledger.job(job.id).state is JobState.UNSOLVED for job in jobs))
            until(lambda: not status_of(running).worker.waits_for)


def test_jobs_and_an_unfinished_cycle_wait_for_room_on_the_disk(data, broker, monkeypatch) -> None:
    with core(data) as running:
        cycle = running.cycles.start("night")
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        with monkeypatch.context() as full, dispatched(running):
            full.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=2**20))
            until(lambda: "GiB left" in status_of(running).worker.waits_for)
            until(lambda: "GiB left" in job_detail(running, job.id).job.reason)
            running.jobs.cancel(job.id)
            until(lambda: running.supervisor.status.doing == "" and "GiB left" in status_of(running).worker.waits_for)
            assert running.ledger.cycle(cycle.id).state is CycleState.RUNNING
            full.undo()
            until(lambda: running.ledger.cycle(cycle.id).state is CycleState.DONE)


def test_a_worker_that_finds_no_broker_has_not_failed_its_job(data, broker) -> None:
    with core(data, "hopeless") as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        broker.left = 1  # asked before the worker, and away by then
        running.supervisor.run_jobs()
        assert attempts(data) == 1
        assert running.ledger.job(job.id).state is JobState.QUEUED
        assert "no broker answers" in job_detail(running, job.id).job.reason


def test_a_job_that_always_takes_the_broker_with_it_is_set_aside(data, broker) -> None:
    with core(data, "hopeless") as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        for _ in range(3):
            broker.left = 1
            running.supervisor.run_jobs()
        assert attempts(data) == 3
        assert running.ledger.job(job.id).state is JobState.SET_ASIDE


def test_jobs_fail_at_once_where_the_broker_is_not_ours_and_is_not_there(data, broker) -> None:
    broker.left = 0
    with core(data, own=False) as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        running.supervisor.run_jobs()
        assert running.ledger.job(job.id).state is JobState.FAILED
        assert "no broker answers" in running.ledger.job(job.id).reason


def test_jobs_fail_at_once_where_our_own_broker_has_not_what_the_policy_wants(data, monkeypatch) -> None:
    monkeypatch.setattr(sandbox_readiness, "ask", lambda socket: SimpleNamespace(backends={"nsjail": "3"}))
    with core(data) as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        running.supervisor.run_jobs()
        assert "lacks gvisor" in running.ledger.job(job.id).reason
        assert running.ledger.job(job.id).state is JobState.FAILED


def test_what_waits_for_a_model_says_that_and_nothing_else(data, broker) -> None:
    broker.left = 0
    with core(data) as running:
        running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        text = running.jobs.submit(SubmitJob(question="q", spec=TEXT))
        running.supervisor.run_jobs()
        assert status_of(running).worker.waits_for
        assert job_detail(running, text.id).job.reason == text.reason


def test_a_job_that_needs_the_model_waits_for_the_end_of_the_cycle_that_runs(data, broker, monkeypatch) -> None:
    monkeypatch.setattr(Readiness, "_require_sound", lambda *of_it: None)  # the champion has no folder here
    with core(data, "beside") as running:
        running.ledger.put_checkpoint(checkpoint_record("a" * 64, created=running.now()))
        running.ledger.set_aliases({"champion": "a" * 64}, "first", running.now())
        cycle = running.cycles.start("night")
        with dispatched(running):
            until((data / "cycle-runs").exists)
            job = running.jobs.submit(SubmitJob(question="q", spec=TEXT))
            shown = job_detail(running, job.id).job
            assert shown.reason == f"waits for the end of {cycle.id}, which has the machine: `assay cycle watch`"
            assert [one.reason for one in jobs_of(running, 10)] == [shown.reason]
            (data / "go-on").touch()
            until(lambda: running.ledger.job(job.id).state is JobState.UNSOLVED)


@pytest.mark.parametrize(
    ("solvers_done", "champion", "cycle", "busy", "said"),
    [
        (True, True, "night-1", False, "the end of night-1"),
        (True, True, "", True, "a free worker"),
        (True, True, "", False, "until the model in service works on it"),
        (True, False, "", False, "the first model in service: `assay cycle start`"),
        (True, False, "night-1", False, "the first model in service, which night-1 makes"),
        (False, False, "night-1", True, "a free worker"),
    ],
)
def test_a_queued_job_says_what_it_really_waits_for(solvers_done, champion, cycle, busy, said) -> None:
    job = Job(
        id="j",
        question="q",
        spec=SPEC,
        attempts=1,
        seed=0,
        solvers_done=solvers_done,
        state=JobState.QUEUED,
        created="2026-01-02T03:04:05+00:00",
        updated="2026-01-02T03:04:05+00:00",
    )
    assert said in waits_for(job, champion=champion, cycle=cycle, busy=busy)
    assert waits_for(job.model_copy(update={"solvers_done": False}), champion=True, cycle="", busy=False) == ""
