"""The ledger through a socket: the same protocol, the same errors, and a worker that may die at any moment."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import ledger_records as made
import pytest

from appliance.config.configuration import Settings
from appliance.ledger.grants import Grant, jobs, training
from appliance.ledger.ledger import Ledger, LedgerError
from appliance.ledger.remote import RemoteLedger, serve_ledger
from appliance.ledger.sqlite import SqliteLedger
from appliance.records.cycles import CycleState, Event
from appliance.records.jobs import Job, JobState, JobStep
from appliance.records.rollouts import Purpose
from appliance.records.training import RolloutFilter
from verifiers.answers.spec import AnswerSpec
from verifiers.exact.spec import ExactSpec

HERE = Path(__file__).parent


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with SqliteLedger(tmp_path / "ledger.sqlite3") as opened:
        yield opened


@contextmanager
def served(ledger: Ledger, grant: Grant = made.EVERYTHING) -> Iterator[Connection]:
    """The worker's end of a line to `ledger`; afterwards the serving thread has ended of itself."""
    ours, theirs = Pipe()
    thread = threading.Thread(target=serve_ledger, args=(ours, ledger, grant))
    thread.start()
    try:
        with theirs:
            yield theirs
    finally:
        thread.join(timeout=120)
        ours.close()
        assert not thread.is_alive()


def test_a_remote_ledger_answers_as_the_ledger_itself_does(ledger: SqliteLedger) -> None:
    with served(ledger) as line:
        remote = RemoteLedger(line)
        remote.put_cycle(made.cycle())
        remote.commit_step(made.step_record())
        looked = made.judged("v", purpose=Purpose.VALIDATION, step=3)
        remote.put_rollouts([looked])
        remote.put_sealed_set("s", {"items": 4, "share": 1.0, "name": "first"})
        remote.put_checkpoint(made.checkpoint())
        remote.put_evaluation(made.evaluation())
        remote.put_decision(made.decision())
        ledger.put_approval(made.approval())
        remote.set_aliases({"champion": made.digest(1), "candidate": None}, "first", at=made.AT)
        ledger.put_job(made.job())
        assert remote.put_job(made.job()) == made.job()
        remote.put_artifact(made.artifact())
        remote.put_event(Event(kind="note", text="\x1b]0;x\x07", created=made.AT))
        for asked in (remote, ledger):
            assert asked.cycle("night-1") == made.cycle()
            assert asked.cycle("none") is None
            assert asked.cycles(5) == [made.cycle()]
            assert asked.step("night-1", 0) == made.step_record()
            assert asked.step("night-1", 1) is None
            assert asked.recorded_steps("night-1") == [0]
            assert asked.rollouts(RolloutFilter(purpose=Purpose.VALIDATION, step=3)) == [looked]
            assert asked.rollout_counts("night-1") == {"train": 4, "validation": 1}
            assert asked.sealed_sets() == {"s": {"items": 4, "share": 1.0, "name": "first"}}
            assert asked.checkpoint(made.digest(1)[:8]) == made.checkpoint()
            assert asked.decisions(candidate=made.digest(2)) == [made.decision()]
            assert asked.approvals() == [made.approval()]
            assert asked.alias("champion") == made.digest(1)
            assert asked.alias("candidate") is None
            assert asked.next_job(part="solvers") == made.job()
            assert asked.job_counts() == {"queued": 1}
            assert asked.events(after=1) == [(2, Event(kind="note", text="\x1b]0;x\x07", created=made.AT))]


def test_it_has_every_method_of_the_protocol_and_no_other(ledger: SqliteLedger) -> None:
    expected = {name for name, _ in inspect.getmembers(Ledger, inspect.isfunction) if not name.startswith("_")}
    with served(ledger) as line:
        found = {
            name for name, _ in inspect.getmembers(RemoteLedger(line), inspect.ismethod) if not name.startswith("_")
        }
    assert found == expected
    assert "close" not in found


def test_an_error_of_the_ledger_arrives_with_its_hint_and_the_line_goes_on(ledger: SqliteLedger) -> None:
    with served(ledger) as line:
        remote = RemoteLedger(line)
        with pytest.raises(LedgerError, match="no such checkpoint") as caught:
            remote.set_aliases({"champion": "nothing"}, "wrong", made.AT)
        assert "assay model ls" in caught.value.hint
        assert remote.alias("champion") is None


def test_a_worker_on_jobs_reads_how_attempts_at_ended_jobs_were_chosen_and_no_job_beside(ledger: SqliteLedger) -> None:
    step = JobStep(weights="w", attempts=2, expected=0.5, failed=2, ended=True)
    for name, changes in {
        "ended": {}, "open": {"state": JobState.RUNNING}, "again": {"retry_of": "ended"}, "without": {"steps": ()},
        "other": {"spec": ExactSpec(expected="1")},
    }.items():  # fmt: skip
        given = {"state": JobState.UNSOLVED, "steps": (step,), "spec": AnswerSpec(expected="1"), **changes}
        ledger.put_job(Job(id=name, question="q", created=made.AT, updated=made.AT, **given))
    with served(ledger, jobs()) as line:
        remote = RemoteLedger(line)
        assert remote.job_steps("answer", 10) == [(step,)]
        with pytest.raises(LedgerError, match="may not call jobs"):
            remote.jobs()


def test_what_json_cannot_hold_is_refused_and_the_line_goes_on(ledger: SqliteLedger) -> None:
    with served(ledger) as line:
        remote = RemoteLedger(line)
        with pytest.raises(LedgerError):
            remote.put_rollouts([made.judged("h", answer="\ud800")])
        with pytest.raises(LedgerError, match="valid number"):
            remote.put_event(Event(kind="note", text="x", figures={"loss": float("inf")}, created=made.AT))
        remote.put_event(Event(kind="note", text="fine", created=made.AT))
    assert [event.text for _, event in ledger.events()] == ["fine"]


def test_threads_of_a_worker_share_one_line(ledger: SqliteLedger) -> None:
    with served(ledger) as line:
        remote = RemoteLedger(line)
        failures: list[str] = []

        def work(number: int) -> None:
            for i in range(20):
                remote.put_cycle(made.cycle(f"{number}-{i}"))
                if (found := remote.cycle(f"{number}-{i}")) is None or found.id != f"{number}-{i}":
                    failures.append(f"{number}-{i}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
    assert len(ledger.cycles(limit=1000)) == 80


# what a line may carry
@pytest.mark.parametrize(
    "content",
    [
        b'{"call":"close"}',
        b'{"call":"__init__","path":"/etc/passwd"}',
        b'{"call":"_database"}',
        b'{"call":"cycle"}',
        b'{"call":"cycle","cycle":7}',
        b'{"call":"cycle","cycle":"a","and":"b"}',
        b'{"call":"put_job","job":{"id":"x"}}',
        b"\x80\x04\x95pickle",
        b"",
    ],
)
def test_what_is_no_call_of_the_protocol_is_refused_and_reaches_nothing(ledger: SqliteLedger, content: bytes) -> None:
    with served(ledger) as line:
        line.send_bytes(content)
        refused = json.loads(line.recv_bytes())["refused"]
    assert "invalid ledger call" in refused["message"]
    assert refused["hint"]


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff" * 12], ids=["long", "longest"])
def test_a_length_that_nobody_would_send_ends_the_line_without_taking_memory(
    ledger: SqliteLedger, length: bytes
) -> None:
    with served(ledger) as line:
        os.write(line.fileno(), length)
        assert os.read(line.fileno(), 1) == b""


MEGABYTE = 1_000_000
FLOODS = {
    "numbers in the place of rollouts": (b'{"call":"put_rollouts","judged":[', b"0,"),
    "empty tables in the place of rollouts": (b'{"call":"put_rollouts","judged":[', b"{},"),
    "empty lists in the place of rollouts": (b'{"call":"commit_step","record":{"judged":[', b"[],"),
    "wrong tokens": (b'{"call":"put_rollouts","judged":[{"rollout":{"nodes":[{"ids":[', b'"",'),
    "wrong figures": (b'{"call":"put_event","event":{"figures":{', b'"1":[],'),
    "unknown arguments": (b'{"call":"cycle","cycle":"a",', b'"x":0,'),
    "lists in a plan": (b'{"call":"put_cycle","cycle":{"plan":{"a":[', b"[],"),
    "a list without an end": (b'{"call":"put_cycle","cycle":', b"["),
    "no call at all": (b"", b"[],"),
}
MEASURE = """
import os, resource, sys
from pathlib import Path
import ledger_records as made
from appliance.ledger.remote import _answer
for path in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    frame = Path(path).read_bytes()
    _answer(None, frame[:1000], made.EVERYTHING)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = _answer(None, frame, made.EVERYTHING)
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(more, len(answer), answer.startswith(b'{"refused"'), flush=True)
    os._exit(0)
"""


def test_a_frame_that_is_wrong_in_a_million_places_takes_no_more_memory_than_it_has_bytes(tmp_path: Path) -> None:
    """Each in a process of its own, forked from one that has answered nothing large."""
    for flood, (start, item) in FLOODS.items():
        (tmp_path / flood).write_bytes(start + item * (MEGABYTE // len(item)))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[2])])}
    command = [sys.executable, "-c", MEASURE, *(tmp_path / flood for flood in FLOODS)]
    ran = subprocess.run(command, env=environ, capture_output=True, check=True, text=True)
    answers = [line.split() for line in ran.stdout.splitlines()]
    figures = {
        flood: (int(kilobytes), int(length), refused)
        for flood, (kilobytes, length, refused) in zip(FLOODS, answers, strict=True)
    }
    assert {
        flood: one for flood, one in figures.items() if one[0] >= 16_000 or one[1] >= 1000 or one[2] != "True"
    } == {}


def test_a_core_that_has_gone_is_reported(ledger: SqliteLedger) -> None:
    ours, theirs = Pipe()
    with theirs:
        ours.close()
        with pytest.raises(LedgerError, match="connection") as caught:
            RemoteLedger(theirs).cycles()
        assert "assay serve" in caught.value.hint


def test_after_a_call_that_was_interrupted_no_answer_is_taken_for_another(ledger: SqliteLedger) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        os.set_blocking(theirs.fileno(), False)
        remote = RemoteLedger(theirs)
        with pytest.raises(LedgerError):
            remote.cycle("a")
        ours.send_bytes(b'{"value":null,"refused":null}')
        with pytest.raises(LedgerError, match="interrupted"):
            remote.cycle("b")


# a real worker
WORKER = """
import os, sys
from multiprocessing.connection import Connection
import ledger_records as made
from appliance.ledger.remote import RemoteLedger
line = Connection(int(sys.argv[1]))
ledger = RemoteLedger(line)
for step in range(int(sys.argv[2])):
    ledger.commit_step(made.step_record(step, rollouts=8))
    print(step, flush=True)
if sys.argv[3] == "half":
    os.write(line.fileno(), (1000).to_bytes(4, "big") + b'{"call":"put_cycle",')
    print("half", flush=True)
    sys.stdin.read()
"""


def start(line: Connection, steps: int, end: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[2])])}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(line.fileno()), str(steps), end],
        pass_fds=(line.fileno(),),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    )


def test_a_worker_process_writes_through_its_inherited_socket(ledger: SqliteLedger) -> None:
    with served(ledger) as line, start(line, 3, "clean") as worker:
        output, _ = worker.communicate(timeout=120)
    assert (output, worker.returncode) == ("0\n1\n2\n", 0)
    assert [ledger.step("night-1", step) for step in range(3)] == [
        made.step_record(step, rollouts=8) for step in range(3)
    ]


def test_a_worker_killed_in_the_middle_of_a_frame_leaves_nothing_of_it(ledger: SqliteLedger) -> None:
    with served(ledger) as line, start(line, 2, "half") as worker:
        assert worker.stdout is not None
        assert [worker.stdout.readline() for _ in range(3)] == ["0\n", "1\n", "half\n"]
        worker.send_signal(signal.SIGKILL)
    assert ledger.recorded_steps("night-1") == [0, 1]
    assert ledger.cycles() == []
    with served(ledger) as line, start(line, 4, "clean") as worker:
        worker.communicate(timeout=120)
    assert ledger.recorded_steps("night-1") == [0, 1, 2, 3]
    assert ledger.rollout_counts("night-1") == {"train": 32}


def test_a_ledger_that_fails_unforeseen_ends_the_line_instead_of_leaving_the_worker_waiting() -> None:
    ours, theirs = Pipe()
    seen: list[BaseException] = []

    def serve() -> None:
        try:
            serve_ledger(ours, object(), made.EVERYTHING)  # type: ignore[arg-type]
        except AttributeError as error:
            seen.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    with theirs, pytest.raises(LedgerError, match="closed the ledger connection"):
        RemoteLedger(theirs).cycles()
    thread.join(timeout=120)
    assert len(seen) == 1


CALLED_OFF = """
import os, signal, sys
import appliance.worker.__main__ as worker
from appliance.ledger.ledger import LedgerError

def work(kind, name, data, settings, ledger, policy):
    known = ledger.cycle(name)
    if known.seed == 0:
        ledger.put_cycle(known.model_copy(update={"phase": "training"}))
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    finally:
        raise LedgerError("an earlier call to the ledger was interrupted", hint="start the worker again")

worker.work = work
sys.exit(worker.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("seed", "state", "code"), [(0, CycleState.CANCELLED, 0), (1, CycleState.RUNNING, 143)])
def test_a_worker_whose_cycle_was_called_off_says_that_and_nothing_of_the_ledger_s_insides(
    ledger: SqliteLedger, tmp_path: Path, seed: int, state: CycleState, code: int
) -> None:
    cycle = made.cycle().model_copy(update={"seed": seed, "state": state})
    ledger.put_cycle(cycle)
    (tmp_path / "settings.json").write_text(Settings(data=tmp_path).model_dump_json())
    with served(ledger, training(cycle.id)) as line:
        arguments = ["--ledger-fd", str(line.fileno()), "--data", str(tmp_path)]
        arguments += ["--settings", str(tmp_path / "settings.json")]
        program = [sys.executable, "-c", CALLED_OFF, "train", cycle.id, *arguments]
        ended = subprocess.run(program, pass_fds=[line.fileno()], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, f"stopped: train {cycle.id} was cancelled, or resumes later\n")
