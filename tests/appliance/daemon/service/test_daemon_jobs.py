"""The life of a job in the core: admitted, worked on, called off, given up, tried again; each ends once."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from daemon_kit import dispatched, until

from appliance.client.messages import SubmitJob
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import job_detail
from appliance.daemon.contract import NotThereError, RefusedByPolicyError, RequestError
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.supervisor import RetryPolicy
from appliance.ledger.rows import AmbiguousPrefixError
from appliance.records.cycles import CycleState
from appliance.records.jobs import Artifact, Job, JobFile, JobState
from curriculum.registry import make_draft
from verifiers.answers.spec import AnswerSpec
from verifiers.checklists.spec import ChecklistSpec
from verifiers.registry import decide

pytestmark = pytest.mark.usefixtures("lent")
CHILD = Path(__file__).parents[1] / "child_worker.py"
SPEC = AnswerSpec(notation="digits", expected="6")
TEXT = ChecklistSpec.model_validate({"items": [{"item": "length", "name": "length", "target": 60}]})
"""What no solver tries."""
START = "2026-05-01T12:00:00+00:00"


class Time:
    now = START

    def __call__(self) -> str:
        return self.now


@contextmanager
def core(data: Path, mode: str = "finish", **given: object) -> Iterator[Core]:
    retry = RetryPolicy(attempts=3, first_seconds=0.01, factor=1.0)
    with Core(Settings(data=data), worker=[sys.executable, str(CHILD), mode], retry=retry, **given) as opened:
        yield opened


@contextmanager
def at_work(running: Core, *jobs: Job) -> Iterator[None]:
    """While the worker is at the first of them."""
    runner = threading.Thread(target=running.supervisor.run_jobs)
    runner.start()
    until(lambda: running.ledger.job(jobs[0].id).step == "attempt 2 of 16")
    try:
        yield
    finally:
        for job in jobs:
            running.ledger.put_job(job.model_copy(update={"state": JobState.CANCELLED}))
        runner.join(timeout=120)
        assert not runner.is_alive()


def ends(running: Core) -> list[tuple[object, object]]:
    entries = [entry for entry in running.ledger.audit.entries() if entry.kind == "job.ended"]
    return [(entry.what["job"], entry.what["state"]) for entry in entries]


def test_a_job_that_is_worked_on_tells_how_far_it_is_and_stops_when_it_is_cancelled(data) -> None:
    with core(data, "attentive") as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        with at_work(running, job):
            seen = running.ledger.job(job.id)
            assert (seen.state, seen.tries_done) == (JobState.RUNNING, 1)
            assert running.jobs.cancel(job.id).state is JobState.CANCELLED
            until(lambda: running.supervisor.status.state == "idle")
        assert running.ledger.job(job.id).reason == "cancelled by a person"
        assert running.ledger.job(job.id).spent_seconds > 0
        assert ends(running) == [(job.id, "cancelled")]


def test_work_that_does_not_stop_is_left_and_the_next_job_gets_its_turn(data) -> None:
    with core(data, "deaf") as running:
        jobs = [running.jobs.submit(SubmitJob(question=str(n), spec=SPEC)) for n in range(2)]
        with at_work(running, *jobs):
            running.jobs.cancel(jobs[0].id)
            until(lambda: running.ledger.job(jobs[1].id).state is JobState.RUNNING)
            assert running.supervisor.status.last_failure == ""


def test_a_more_urgent_job_is_done_first_and_the_one_that_gave_way_is_taken_up_again(data) -> None:
    with core(data, "polite") as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        with at_work(running, job):
            urgent = running.jobs.submit(SubmitJob(question="now", spec=SPEC, priority=9))
            until(lambda: running.ledger.job(urgent.id).state is JobState.UNSOLVED)
            until(lambda: running.ledger.job(job.id).state is JobState.RUNNING)
        assert ends(running) == [(urgent.id, "unsolved"), (job.id, "cancelled")]


def test_solvers_work_beside_a_cycle_and_leave_the_model_s_part(data) -> None:
    with core(data, "beside") as running, dispatched(running) as thread:
        cycle = running.cycles.start("night")
        thread.wake()
        until(lambda: (data / "cycle-runs").exists())
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        thread.wake()
        until(lambda: running.ledger.job(job.id).state is JobState.UNSOLVED)
        assert running.ledger.cycle(cycle.id).state is CycleState.RUNNING
        (data / "go-on").touch()
        until(lambda: running.ledger.cycle(cycle.id).state is CycleState.DONE)


def test_a_budget_that_is_used_up_ends_the_work_and_says_so(data) -> None:
    with core(data, "attentive") as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC, budget_seconds=0.1))
        running.supervisor.run_jobs()
        ended = running.ledger.job(job.id)
        assert (ended.state, ended.reason) == (JobState.UNSOLVED, "its budget is used up: 0.1 s of work")


def test_a_job_that_waits_is_given_up_at_its_deadline(data) -> None:
    time = Time()
    with core(data, now=time) as running:
        late = running.jobs.submit(SubmitJob(question="q", spec=SPEC, deadline="2026-05-01T15:00:00+02:00"))
        never = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        begun = running.jobs.submit(SubmitJob(question="q", spec=SPEC, deadline="2026-05-01T13:30:00Z"))
        running.ledger.put_job(begun.model_copy(update={"state": JobState.RUNNING}))
        assert running.jobs.end_overdue() == 3600
        time.now = "2026-05-01T13:00:00+00:00"
        assert running.jobs.end_overdue() == 1800
        ended = running.ledger.job(late.id)
        assert (ended.state, ended.reason) == (JobState.UNSOLVED, "its deadline has passed: 2026-05-01T13:00:00+00:00")
        assert running.ledger.job(never.id).state is JobState.QUEUED
        time.now = "2026-05-01T14:00:00+00:00"
        assert running.jobs.end_overdue() == 10
        assert running.ledger.job(begun.id).state is JobState.RUNNING


@pytest.mark.parametrize("now", ["2026-05-02T12:00:00+00:00", "2026-04-30T12:00:00+00:00"])
def test_a_clock_that_is_set_by_a_day_ends_only_what_has_a_deadline(data, now: str) -> None:
    time = Time()
    with core(data, now=time) as running:
        before = [running.jobs.submit(SubmitJob(question=str(n), spec=SPEC)) for n in range(2)]
        bound = running.jobs.submit(SubmitJob(question="b", spec=SPEC, deadline="2026-05-01T18:00:00Z"))
        time.now = now
        running.jobs.end_overdue()
        passed = now > "2026-05-01T18"
        state = JobState.UNSOLVED if passed else JobState.QUEUED
        assert running.ledger.job(bound.id).state is state
        after = running.jobs.submit(SubmitJob(question="a", spec=SPEC))
        running.supervisor.run_jobs()
        ended = [running.ledger.job(one.id) for one in (*before, after)]
        assert [(one.state, one.reason) for one in ended] == [(JobState.UNSOLVED, "tried")] * 3
        # The lease does not hang on the clock that was set, and the order of the log is that of arrival.
        assert running.supervisor.status.last_failure == ""
    with core(data, now=time) as running:  # and what is on record is whole for the next start
        assert {one.state for one in running.ledger.jobs()} == {JobState.UNSOLVED}


def test_jobs_are_taken_up_by_priority_and_an_interrupted_one_at_its_turn(data) -> None:
    with core(data) as running:
        asked = [running.jobs.submit(SubmitJob(question="q", spec=SPEC, priority=p)) for p in (2, 9, 5, 9)]
        begun = {"state": JobState.RUNNING, "step": "attempt 1", "spent_seconds": 5.0}
        running.ledger.put_job(asked[0].model_copy(update=begun))
    with core(data) as running:
        again = running.ledger.job(asked[0].id)
        assert (again.state, again.step, again.spent_seconds) == (JobState.QUEUED, "", 5.0)
        running.supervisor.run_jobs()
        assert [name for name, _ in ends(running)] == [asked[place].id for place in (1, 3, 2, 0)]


def put_artifact(running: Core, job: Job) -> None:
    """As a worker does it just before the job's end."""
    running.ledger.put_artifact(
        Artifact(
            id=job.id,
            job=job.id,
            folder=f"artifacts/{job.id}",
            manifest="a" * 64,
            answer="6",
            weights="",
            verdict=decide(SPEC, "6"),
            solved_by="enumeration",
            created=START,
        )
    )


def begun(running: Core) -> Job:
    job = running.jobs.submit(SubmitJob(question="q", spec=SPEC, deadline="2026-05-01T13:00:00Z"))
    return running.ledger.put_job(job.model_copy(update={"state": JobState.RUNNING, "step": "enumeration"}))


def test_what_was_verified_before_a_kill_is_solved_at_the_next_start_however_late_that_is(data) -> None:
    time = Time()
    with core(data, now=time) as running:
        job, unfinished = begun(running), begun(running)
        put_artifact(running, job)
    time.now = "2026-05-01T14:00:00+00:00"
    with core(data, now=time) as running:
        running.jobs.end_overdue()
        ended = running.ledger.job(job.id)
        assert (ended.state, ended.artifact, ended.solved_by) == (JobState.SOLVED, job.id, "enumeration")
        assert ends(running) == [(job.id, "solved"), (unfinished.id, "unsolved")]


def test_what_a_worker_verified_before_it_was_killed_is_solved(data) -> None:
    with core(data, now=Time()) as running:
        job = begun(running)
        put_artifact(running, job)
        running.supervisor.requeue_running()
        assert running.ledger.job(job.id).state is JobState.SOLVED
        assert not running.supervisor.next_job() is not None


def test_what_no_solver_tries_waits_for_a_model_and_says_so(data) -> None:
    with core(data) as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=TEXT))
        assert (job.state, job.solvers_done) == (JobState.QUEUED, True)
        assert "first model" in job.reason
        assert not running.supervisor.next_job() is not None


def test_a_retry_asks_the_same_with_the_next_seed_and_names_the_first(data) -> None:
    time = Time()
    with core(data, now=time) as running:
        asked = SubmitJob(
            question="q", spec=SPEC, seed=3, priority=8, deadline="2026-05-01T13:00:00Z", budget_seconds=9
        )
        job = running.jobs.submit(asked)
        with pytest.raises(RefusedByPolicyError, match="has not ended"):
            running.jobs.retry(job.id)
        running.jobs.cancel(job.id)
        again = running.jobs.retry(job.id)
        assert (again.seed, again.retry_of, again.priority, again.budget_seconds) == (4, job.id, 8, 9)
        assert (again.question, again.spec, again.deadline) == (job.question, job.spec, job.deadline)
        time.now = "2026-05-01T14:00:00+00:00"
        assert running.jobs.retry(job.id).deadline is None
        assert running.ledger.job(job.id).state is JobState.CANCELLED


def test_what_has_ended_cannot_be_cancelled_and_what_is_not_there_neither(data) -> None:
    with core(data) as running:
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC))
        running.supervisor.run_jobs()
        with pytest.raises(RefusedByPolicyError, match="has ended already: unsolved"):
            running.jobs.cancel(job.id)
        for act in (running.jobs.cancel, running.jobs.retry):
            with pytest.raises(NotThereError):
                act("job-none")
        assert ends(running) == [(job.id, "unsolved")]


def test_files_are_there_before_the_job_and_those_that_no_job_names_are_gone_after_a_start(data) -> None:
    with core(data) as running:
        used, left = running.jobs.put_file(b"a,b\n1,2\n"), running.jobs.put_file(b"nobody")
        file = JobFile(name="a.csv", sha256=used.sha256, bytes=used.bytes)
        job = running.jobs.submit(SubmitJob(question="q", spec=SPEC, files=(file,)))
        assert job.files == (file,)
        (data / "files" / ".half").write_bytes(b"half")
    with core(data):
        assert [path.name for path in (data / "files").iterdir()] == [used.sha256]
        assert (data / "files" / used.sha256).read_bytes() == b"a,b\n1,2\n"
        assert left.sha256 != used.sha256


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": (JobFile(name="a", sha256="0" * 64, bytes=1),)}, "not uploaded"),
        ({"files": (JobFile(name="a", sha256="0" * 64, bytes=1),) * 2}, "same name"),
        ({"files": tuple(JobFile(name=n, sha256="0" * 64, bytes=8 << 20) for n in "abcd")}, "too large"),
        ({"deadline": "tomorrow"}, "invalid deadline"),
        ({"deadline": "2027-01-01T00:00:00"}, "invalid deadline"),
        ({"deadline": START}, "in the past"),
        ({"deadline": "9999-12-31T23:59:59-12:00"}, "invalid deadline"),
        ({"spec": None}, "without a check"),
        ({"spec": make_draft("hidden_rules", 0, 0).spec}, "a job has none"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_with_what_to_do(data, changes, message) -> None:
    with core(data, now=Time()) as running:
        asked = SubmitJob.model_validate({"question": "q", "spec": SPEC, **changes})
        with pytest.raises(RequestError, match=message) as met:
            running.jobs.submit(asked)
        assert met.value.hint
        assert running.ledger.jobs() == []


def test_no_more_jobs_wait_than_the_policy_lets_however_many_are_asked_for_at_once(data, monkeypatch) -> None:
    with core(data) as running:
        rules = running.policy.jobs.model_copy(update={"max_queued": 3})
        policy = running.policy.model_copy(update={"jobs": rules})
        together = threading.Barrier(8)
        counted = running.ledger.job_counts

        def slow_counts() -> dict[str, int]:
            """As on a busy machine: others come between the count and the job."""
            found = counted()
            time.sleep(0.05)
            return found

        monkeypatch.setattr(running.ledger, "job_counts", slow_counts)
        jobs = dataclasses.replace(running.jobs, policy=lambda: policy)

        def submit(_number: int) -> bool:
            together.wait()
            try:
                return bool(jobs.submit(SubmitJob(question="q", spec=SPEC)))
            except RefusedByPolicyError:
                return False

        with ThreadPoolExecutor(8) as threads:
            assert sorted(threads.map(submit, range(8))) == [False] * 5 + [True] * 3
        assert counted() == {"queued": 3}


def test_a_file_that_is_too_large_is_refused(data) -> None:
    with core(data) as running, pytest.raises(RequestError, match="too large"):
        running.jobs.put_file(bytes((8 << 20) + 1))


def test_whatever_takes_a_job_takes_the_first_digits_of_its_id(tmp_path: Path) -> None:
    with core(tmp_path) as running:
        job = running.jobs.submit(SubmitJob(question="six?", spec=SPEC))
        digits = job.id.removeprefix("job-")
        for name in (job.id, digits, digits[:8], f"job-{digits[:6]}"):
            assert job_detail(running, name).job.id == job.id
        assert running.jobs.cancel(digits[:8]).state is JobState.CANCELLED
        assert running.jobs.retry(digits[:8]).retry_of == job.id
        with pytest.raises(RefusedByPolicyError, match=f"{job.id} is not parked"):
            running.jobs.resume(digits[:8])
        with pytest.raises(NotThereError, match="5 digits are too few, 6 are needed"):
            running.jobs.cancel(digits[:5])
        twin = job.model_copy(update={"id": f"job-{digits[:6]}{'0' * 6}"})
        running.ledger.put_job(twin)
        with pytest.raises(AmbiguousPrefixError) as caught:
            job_detail(running, digits[:6])
        assert job.id in str(caught.value)
        assert twin.id in str(caught.value)


def test_a_model_that_is_named_by_too_few_digits_is_told_how_many_are_needed(tmp_path: Path) -> None:
    with core(tmp_path) as running:
        with pytest.raises(NotThereError, match="'ea7': 3 digits are too few, 6 are needed"):
            running.governance.digest_of("ea7")
        with pytest.raises(NotThereError, match=r"no such model: 'elsewhere'$"):
            running.governance.digest_of("elsewhere")
