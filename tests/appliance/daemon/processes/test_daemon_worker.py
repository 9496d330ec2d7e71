"""The worker may crash, hang, be killed or lie: the core goes on, and says what happened."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from daemon_kit import attempts, submit, until

from appliance.client.messages import LogPart
from appliance.config.configuration import Settings
from appliance.daemon.api.read_models import ScreenViews
from appliance.daemon.contract import NotThereError, RefusedByPolicyError
from appliance.daemon.coordination.core import Core
from appliance.daemon.processes.child_log import ChildLog, log_part
from appliance.daemon.processes.wake_thread import LOST_SECONDS, WORK_SECONDS
from appliance.daemon.service.supervisor import RetryPolicy, work_of, work_of_cycle
from appliance.ledger.rows import AmbiguousPrefixError
from appliance.records.cycles import CycleState
from appliance.records.jobs import JobState
from verifiers.answers.spec import AnswerSpec

pytestmark = pytest.mark.usefixtures("lent")
CHILD = Path(__file__).parents[1] / "child_worker.py"
SPEC = AnswerSpec(notation="digits", expected="6")


def core(data: Path, mode: str) -> Core:
    retry = RetryPolicy(attempts=3, first_seconds=0.01, factor=1.0)
    return Core(Settings(data=data), worker=[sys.executable, str(CHILD), mode], retry=retry)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter where it ends between opening and reading
        return False
    return state not in "ZX"


def test_a_worker_finishes_its_cycle_through_the_core_s_ledger(data, monkeypatch) -> None:
    monkeypatch.undo()
    with core(data, "finish") as running:
        cycle = running.cycles.start("night", 3)
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        assert running.ledger.cycle(cycle.id).state is CycleState.DONE
        assert running.supervisor.status.state == "idle"


def test_a_second_cycle_is_not_started_while_one_is_unfinished(data) -> None:
    with core(data, "finish") as running:
        first = running.cycles.start("night")
        assert running.cycles.start("night", 9).id == first.id
        assert [cycle.id for cycle in running.ledger.cycles()] == [first.id]
        running.cycles.run(first.id)
        second = running.cycles.start("night")
        assert (second.id != first.id, second.seed) == (True, first.seed + 1)


def test_a_crash_is_an_event_and_the_cycle_goes_on(data) -> None:
    with core(data, "crash-twice") as running:
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        texts = [event.text for _, event in running.ledger.events() if event.kind == "worker"]
        assert len(texts) == 2
        assert all("out of luck" in text for text in texts)


def test_a_cycle_that_never_gets_anywhere_is_set_aside_with_the_reason_until_a_person_resumes_it(data) -> None:
    with core(data, "crash") as running:
        cycle = running.cycles.start("night")
        aside = running.cycles.run(cycle.id)
        assert (aside.state, attempts(data)) == (CycleState.SET_ASIDE, 3)
        assert "no room" in aside.failure
        assert f"assay cycle resume {cycle.id}" in aside.failure
        assert running.cycles.unfinished() is None
        other = running.cycles.start("night")
        with pytest.raises(RefusedByPolicyError, match="is not finished"):
            running.cycles.resume(cycle.id)
        running.cycles.cancel(other.id)
    with core(data, "finish") as running:
        assert running.cycles.resume(cycle.id).state is CycleState.RUNNING
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        with pytest.raises(RefusedByPolicyError, match="is not parked"):
            running.cycles.resume(cycle.id)


def test_progress_between_crashes_resets_the_count(data) -> None:
    with core(data, "progress") as running:
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        assert attempts(data) == 7


def test_what_cannot_be_done_as_asked_is_not_tried_again(data) -> None:
    with core(data, "hopeless") as running:
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.FAILED
        assert attempts(data) == 1


def test_a_worker_that_says_it_is_done_and_is_not_is_not_believed(data) -> None:
    with core(data, "nothing") as running:
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.SET_ASIDE


def test_work_that_took_the_machine_down_too_often_gets_no_worker_again(data) -> None:
    with core(data, "finish") as running:
        job, cycle = submit(running, "heavy", SPEC), running.cycles.start("night")
        for work in (work_of(job.id), work_of_cycle(cycle.id)):
            for _ in range(3):
                running.ledger.leases.died(work, progress=False)
        running.supervisor.run_jobs()
        assert running.cycles.run(cycle.id).state is CycleState.SET_ASIDE
        aside = running.ledger.job(job.id)
        assert aside.state is JobState.SET_ASIDE
        assert "the machine went down while it was worked on" in aside.reason
        assert attempts(data) == 0


def test_a_job_that_kills_its_worker_is_set_aside_alone_until_a_person_resumes_it(data) -> None:
    with core(data, "poisoned") as running:
        poison = submit(running, "poison", SPEC)
        others = [submit(running, f"harmless {n}", SPEC) for n in range(2)]
        running.supervisor.run_jobs()
        aside = running.ledger.job(poison.id)
        assert (aside.state, attempts(data)) == (JobState.SET_ASIDE, 4)
        assert "SIGSEGV" in aside.reason
        assert f"assay jobs resume {poison.id}" in aside.reason
        assert {running.ledger.job(job.id).state for job in others} == {JobState.UNSOLVED}
        with pytest.raises(RefusedByPolicyError, match="is not parked"):
            running.jobs.resume(others[0].id)
    with core(data, "finish") as running:
        assert running.jobs.resume(poison.id).state is JobState.QUEUED
        running.supervisor.run_jobs()
        assert running.ledger.job(poison.id).state is JobState.UNSOLVED


def leases_run_out(running: Core) -> None:
    clock = running.ledger.leases.clock
    running.ledger.leases.clock = lambda: clock() + 100.0


def test_a_worker_that_was_stopped_past_its_lease_writes_nothing_when_it_goes_on(data) -> None:
    with core(data, "late") as running:
        running.supervisor.process.look_seconds = 1_000.0  # so that nobody notices before it goes on
        cycle = running.cycles.start("night")
        thread = threading.Thread(target=running.cycles.run, args=(cycle.id,))
        thread.start()
        until(lambda: (data / "attempt-0").exists() and (data / "attempt-0").read_text())
        late = int((data / "attempt-0").read_text())
        until(lambda: Path(f"/proc/{late}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        leases_run_out(running)
        os.kill(late, signal.SIGCONT)
        thread.join(120)
        assert running.ledger.cycle(cycle.id).state is CycleState.DONE
        assert cycle.plan.items() <= running.ledger.cycle(cycle.id).plan.items()
        assert attempts(data) == 2
        [said] = [event.text for _, event in running.ledger.events() if event.kind == "worker"]
        assert "has lost its lease" in said


def test_a_worker_that_does_not_renew_its_lease_is_killed_and_another_one_goes_on(data) -> None:
    with core(data, "hang-once") as running:
        running.supervisor.process.look_seconds = 0.05
        cycle = running.cycles.start("night")
        thread = threading.Thread(target=running.cycles.run, args=(cycle.id,))
        thread.start()
        until(lambda: attempts(data) == 1)
        leases_run_out(running)
        thread.join(120)
        assert running.ledger.cycle(cycle.id).state is CycleState.DONE
        assert any("did not renew its lease" in event.text for _, event in running.ledger.events())


def test_closing_ends_a_worker_that_ignores_sigterm_and_its_children(data) -> None:
    with core(data, "stubborn") as running:
        running.supervisor.process.grace_seconds = 0.3
        cycle = running.cycles.start("night")
        runner = threading.Thread(target=running.cycles.run, args=(cycle.id,))
        runner.start()
        until(lambda: (data / "grandchild").exists() and (data / "grandchild").read_text())
        worker, grandchild = (int((data / name).read_text()) for name in ("attempt-0", "grandchild"))
        assert os.getpgid(worker) == worker
        running.supervisor.close()
        runner.join(timeout=120)
        assert not runner.is_alive()
        until(lambda: not alive(worker) and not alive(grandchild))
        assert running.ledger.cycle(cycle.id).state is CycleState.RUNNING


def test_nothing_starts_after_closing(data) -> None:
    with core(data, "finish") as running:
        cycle = running.cycles.start("night")
        running.supervisor.close()
        assert running.cycles.run(cycle.id).state is CycleState.RUNNING
        assert attempts(data) == 0


def serving(data: Path, mode: str) -> str:
    return (
        "from pathlib import Path\n"
        "from appliance.config.configuration import Settings\n"
        "from appliance.daemon.api.serve import serve\n"
        f"serve(Settings(data=Path({str(data)!r})), worker={[sys.executable, str(CHILD), mode]!r})\n"
    )


def test_kill_9_of_the_daemon_kills_the_worker_and_the_next_start_goes_on(start, data) -> None:
    daemon = start(serving(data, "hang"), lent=True)
    api = daemon.ready()
    cycle = api.start_cycle()
    until(lambda: attempts(data) == 1 and (data / "attempt-0").read_text())
    worker = int((data / "attempt-0").read_text())
    until(lambda: api.status().worker.pid == worker)
    daemon.end(signal.SIGKILL)
    until(lambda: not alive(worker))
    api = start(serving(data, "finish"), lent=True).ready()
    until(lambda: api.cycle(cycle.id).cycle.state is CycleState.DONE)


def test_kill_9_of_the_worker_does_not_take_the_daemon_down(start, data) -> None:
    daemon = start(serving(data, "hang"), lent=True)
    api = daemon.ready()
    api.start_cycle()
    until(lambda: attempts(data) == 1 and (data / "attempt-0").read_text())
    os.kill(int((data / "attempt-0").read_text()), signal.SIGKILL)
    until(lambda: attempts(data) == 2)
    assert "SIGKILL" in api.status().worker.last_failure
    assert any("SIGKILL" in event.event.text for event in api.events())
    assert daemon.end(signal.SIGTERM).count("Traceback") == 0
    assert daemon.process.returncode == 0


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_workers_are_processes_of_their_own_forked_from_one_that_stays(data, monkeypatch) -> None:
    monkeypatch.undo()
    with core(data, "descriptors") as running:
        for _ in range(2):
            running.cycles.run(running.cycles.start("night").id)
    first, second = (json.loads((data / f"seen-{number}").read_text()) for number in range(2))
    assert first["pid"] == first["group"] != second["pid"] == second["group"]
    assert first["parent"] == second["parent"] != os.getpid()
    assert first["descriptors"] == second["descriptors"] == 5, (
        "the standard three, the line to the ledger, and the settings"
    )
    assert not alive(first["parent"])


def test_what_forks_workers_may_die_between_two_and_during_one(data, monkeypatch) -> None:
    monkeypatch.undo()
    with core(data, "orphan-once") as running:
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        texts = [event.text for _, event in running.ledger.events() if event.kind == "worker"]
        assert len(texts) == 1
        assert "killed by SIGKILL" in texts[0]
        os.kill(int((data / "parent").read_text()), signal.SIGKILL)
        assert running.cycles.run(running.cycles.start("night").id).state is CycleState.DONE


def test_a_worker_that_is_stopped_is_killed_and_another_goes_on(data) -> None:
    with core(data, "stopped-once") as running:
        running.supervisor.process.look_seconds = 0.05
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        texts = [event.text for _, event in running.ledger.events() if event.kind == "worker"]
        assert len(texts) == 2
        assert all("was stopped by a signal" in text for text in texts)


def test_what_forks_workers_may_be_stopped_for_ever_during_one_and_before_one(data, monkeypatch) -> None:
    monkeypatch.undo()
    with core(data, "server-stopped-once") as running:
        running.supervisor.process.look_seconds = 0.05
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.DONE
        (text,) = [
            event.text for _, event in running.ledger.events() if event.kind == "worker" and "killed" in event.text
        ]
        assert "the fork server was stopped by a signal" in text
        forks = running.supervisor.process._forks
        assert forks is not None
        os.kill(forks.pid, signal.SIGSTOP)
        assert running.cycles.run(running.cycles.start("night").id).state is CycleState.DONE
        assert not alive(forks.pid)


def test_a_worker_that_does_not_leave_a_cancelled_job_is_killed_and_the_next_job_gets_its_turn(data) -> None:
    with core(data, "held-once") as running:
        running.supervisor.process.look_seconds, running.supervisor.leave_seconds = 0.05, 0.2
        held = submit(running, "held", SPEC)
        thread = threading.Thread(target=running.supervisor.run_jobs)
        thread.start()
        until(lambda: running.supervisor._at == held.id)
        running.jobs.cancel(held.id)
        after = submit(running, "after", SPEC)
        thread.join(120)
        assert running.ledger.job(held.id).state is JobState.CANCELLED
        assert running.ledger.job(after.id).state is JobState.UNSOLVED
        assert "did not leave job" in running.supervisor.status.last_failure


def test_a_cancelled_cycle_ends_at_once_with_its_worker_and_what_it_trained_waits_for_nobody(data) -> None:
    with core(data, "stubborn") as running:
        running.supervisor.process.grace_seconds = 0.2
        cycle = running.cycles.start("night")
        thread = threading.Thread(target=running.cycles.run, args=(cycle.id,))
        thread.start()
        until(lambda: (data / "grandchild").exists())
        assert running.cycles.cancel(cycle.id).state is CycleState.CANCELLED
        thread.join(120)
        assert not thread.is_alive()
        assert not alive(int((data / "attempt-0").read_text()))
        assert running.ledger.cycle(cycle.id).state is CycleState.CANCELLED
        assert running.supervisor.status.last_failure == ""
        assert running.cycles.cancel(cycle.id).state is CycleState.CANCELLED
        said = [event.text for _, event in running.ledger.events() if "was cancelled" in event.text]
        assert said == [f"{cycle.id} was cancelled by a person"]
        assert running.cycles.unfinished() is None


def test_whatever_takes_a_cycle_takes_the_beginning_of_its_id(data) -> None:
    with core(data, "finish") as running:
        cycle = running.cycles.start("night")
        kind, digits, _ = cycle.id.split("-")
        typed = f"{kind}-{digits}"
        assert running.cycles.detail(typed).cycle.id == cycle.id
        assert running.rollouts.pass_counts(typed, data) == running.rollouts.pass_counts(cycle.id, data)
        assert ScreenViews(running).curves(typed).cycle == cycle.id
        with pytest.raises(RefusedByPolicyError, match=f"cycle {cycle.id} is not parked"):
            running.cycles.resume(typed)
        with pytest.raises(NotThereError, match="5 digits are too few, 6 are needed"):
            running.cycles.cancel(cycle.id[: len("night-20260")])
        twin = cycle.model_copy(update={"id": f"{typed}-0000", "state": CycleState.SET_ASIDE})
        running.ledger.put_cycle(twin)
        for takes in (running.cycles.detail, running.cycles.cancel, running.cycles.resume):
            with pytest.raises(AmbiguousPrefixError) as caught:
                takes(typed)
            assert cycle.id in str(caught.value)
            assert twin.id in str(caught.value)
        assert running.cycles.cancel(cycle.id[:-1]).id == cycle.id
        said = [event.text for _, event in running.ledger.events()]
        assert f"{cycle.id} was cancelled by a person" in said
        assert running.cycles.resume(twin.id[:-1]).id == twin.id


def test_only_a_worker_whose_broker_is_lost_for_good_has_less_than_its_grace(data) -> None:
    with core(data, "finish") as running:
        both = [running.supervisor.process, running.solvers.process]
        assert [one.close_seconds for one in both] == [WORK_SECONDS] * 2
        running.note_broker("the broker was killed by signal 9 after 3 s and starts again at once")
        assert [one.close_seconds for one in both] == [WORK_SECONDS] * 2
        running.lose_broker()
        assert [one.close_seconds for one in both] == [LOST_SECONDS] * 2


def test_a_cycle_that_has_ended_is_not_cancelled(data) -> None:
    with core(data, "finish") as running:
        cycle = running.cycles.start("night")
        running.cycles.run(cycle.id)
        with pytest.raises(RefusedByPolicyError, match="is done already"):
            running.cycles.cancel(cycle.id)


def test_what_a_worker_says_goes_to_a_log_that_cannot_grow_without_end(data) -> None:
    with core(data, "noisy") as running:
        cycle = running.cycles.start("night")
        assert running.cycles.run(cycle.id).state is CycleState.DONE
    files = sorted((data / "logs").iterdir())
    assert [file.name for file in files] == ["worker.log", "worker.log.1", "worker.log.2", "worker.log.3"]
    assert sum(file.stat().st_size for file in files) <= 4_000_000
    assert "line 19999" in (data / "logs" / "worker.log").read_text()


def test_a_log_that_cannot_be_written_does_not_stop_the_worker(tmp_path) -> None:
    log = ChildLog(tmp_path)  # a folder: no line can be appended
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        log.drain(pipe)
        assert pipe.read() == b""
    assert log.last_line() == "two"
    assert "cannot be written" in log.trouble


def test_each_line_of_a_log_has_a_time_and_what_goes_on_with_one_has_none(tmp_path) -> None:
    log = ChildLog(tmp_path / "worker.log", now=lambda: "2026-01-02T03:04:05.678+00:00")
    timed = b"2026-01-01T00:00:00Z [info] has one\n"
    for line in (b"stopped: train n\n", timed, b"  in a traceback\n", b'{"event": "x"}\n', b"begins ", b"goes on\n"):
        log.keep(line)
    assert (tmp_path / "worker.log").read_bytes().splitlines() == [
        b"2026-01-02T03:04:05Z stopped: train n",
        timed.rstrip(),
        b"  in a traceback",
        b'{"event": "x"}',
        b"2026-01-02T03:04:05Z begins goes on",
    ]
    assert log.last_line() == "goes on"


def test_the_first_death_costs_no_pause_and_later_pauses_grow() -> None:
    assert [RetryPolicy().seconds(failures) for failures in (1, 2, 3, 4)] == [0.0, 5.0, 25.0, 125.0]


def test_a_log_is_read_from_its_end_and_then_on_from_there(tmp_path) -> None:
    path = tmp_path / "worker.log"
    assert log_part(path, after=None, lines=5) == LogPart(lines=(), position=0)
    path.write_text("".join(f"line {number}\n" for number in range(9)) + "unfin")
    part = log_part(path, after=None, lines=2)
    assert part.lines == ("line 7", "line 8")
    with path.open("a") as file:
        file.write("ished\n")
    after = log_part(path, after=part.position, lines=2)
    assert after.lines == ("unfinished",)
    path.write_text("new\n")
    assert log_part(path, after=after.position, lines=2).lines == ("new",), "another file since"
