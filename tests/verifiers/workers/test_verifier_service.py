"""The worker is warm, limited and expendable: whatever happens to it, every item gets the verdict that it deserves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from verifiers.registry import decide
from verifiers.spec import ExactSpec, ExpressionSpec, IntegerSpec, PredicateSpec, Spec
from verifiers.verdict import Outcome
from verifiers.workers.frames import FrameError, Frames, encode
from verifiers.workers.service import VerifierService

SIX = PredicateSpec(predicate="7*x + 3 == 45")
INTEGER = IntegerSpec(expected="42")
ENDLESS = ExpressionSpec(expected="sin(x)", variables=("x", "y", "z", "u", "v"))
ENDLESS_ANSWER = "(x+y+z+u+v)^60 * (x-y+z-u+v)^60 - ((x+z+v)^2 - (y+u)^2)^60 + sin(x)"
"""Equal to sin(x) wherever it is looked at, and a million terms when it is multiplied out."""


@pytest.fixture(scope="module")
def service() -> Iterator[VerifierService]:
    with VerifierService() as running:
        yield running


def test_a_batch_comes_back_whole_in_order_and_as_decided_in_place(service: VerifierService) -> None:
    pairs: list[tuple[Spec, str]] = [
        (INTEGER, "42"),
        (SIX, "6"),
        (INTEGER, "43"),
        (ExactSpec(expected="yes"), "yes"),
        (ExpressionSpec(expected="2(x+1)", variables=("x",)), "2x+2"),
        (SIX, "__import__('os').getpid()"),
    ]
    verdicts = service.verify_many(pairs)
    assert [verdict.outcome for verdict in verdicts] == [decide(*pair).outcome for pair in pairs]
    assert [verdict.passed for verdict in verdicts] == [True, True, False, True, True, False]
    assert [verdict.verifier for verdict in verdicts][:2] == ["integer", "predicate"]
    assert service.verify_many([]) == []


def test_384_integers_cost_well_under_20_milliseconds(service: VerifierService) -> None:
    """Processor time of both sides: the wall clock of a crowded machine says nothing about us."""
    pairs = [(IntegerSpec(expected=str(number)), str(number)) for number in range(384)]
    service.verify_many(pairs)
    worker = psutil.Process(service.worker_pid)

    def cost() -> float:
        return time.process_time() + sum(worker.cpu_times()[:2])

    before = cost()
    for _ in range(20):
        assert all(verdict.passed for verdict in service.verify_many(pairs))
    assert (cost() - before) / 20 < 0.02


def test_what_never_ends_is_killed_in_time_and_fails_while_its_neighbours_are_judged() -> None:
    with VerifierService() as service:
        service.verify(SIX, "6")
        service.verify(ExpressionSpec(expected="sqrt(2)"), "2/sqrt(2)", 30)
        before = service.worker_pid
        started = time.monotonic()
        verdicts = service.verify_many([(INTEGER, "42"), (ENDLESS, ENDLESS_ANSWER), (SIX, "6")], seconds=1)
        assert time.monotonic() - started < 20
        assert [verdict.outcome for verdict in verdicts] == [Outcome.PASS, Outcome.FAIL, Outcome.PASS]
        assert verdicts[1].reason == "too expensive to decide within 1 s"
        assert service.worker_pid != before
        assert before is not None
        assert not psutil.pid_exists(before)


def test_what_eats_memory_fails_and_the_machine_does_not_notice() -> None:
    with VerifierService(memory_mib=200) as service:
        verdict = service.verify(ENDLESS, ENDLESS_ANSWER, seconds=60)
        assert verdict.outcome is Outcome.FAIL
        assert verdict.reason == "too expensive to decide within 200 MiB"
        assert service.verify(SIX, "6", seconds=20).passed


def test_a_worker_killed_in_the_middle_costs_nobody_a_verdict() -> None:
    with VerifierService() as service:
        assert service.verify(SIX, "6", 30).passed
        victim = service.worker_pid
        assert victim is not None
        pairs: list[tuple[Spec, str]] = [(SIX, str(number)) for number in range(400)]
        killer = threading.Timer(0.05, os.kill, (victim, signal.SIGKILL))
        killer.start()
        verdicts = service.verify_many(pairs)
        killer.join()
        assert [index for index, verdict in enumerate(verdicts) if verdict.passed] == [6]
        assert {verdict.outcome for verdict in verdicts} == {Outcome.PASS, Outcome.FAIL}


def test_an_item_whose_worker_is_killed_each_time_is_our_failure_and_not_its_own() -> None:
    with VerifierService() as service:
        assert service.verify(SIX, "6", 30).passed
        done = threading.Event()

        def assassin() -> None:
            killed: set[int] = set()
            while not done.is_set():
                pid = service.worker_pid
                if pid is not None and pid not in killed and len(killed) < 2:
                    time.sleep(0.3 if killed else 0.1)
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)

        thread = threading.Thread(target=assassin)
        thread.start()
        verdict = service.verify(ENDLESS, ENDLESS_ANSWER, seconds=60)
        done.set()
        thread.join()
        assert verdict.outcome is Outcome.INFRA_ERROR
        assert verdict.score == 0
        assert "SIGKILL" in verdict.reason
        assert service.verify(SIX, "6", 30).passed


def test_a_worker_that_is_stopped_is_replaced_and_the_item_judged_afresh() -> None:
    with VerifierService() as service:
        assert service.verify(INTEGER, "42", 30).passed
        pid = service.worker_pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        started = time.monotonic()
        assert service.verify(INTEGER, "42", seconds=0.5).passed
        assert time.monotonic() - started < 20
        assert service.worker_pid != pid
        assert not psutil.pid_exists(pid)


def test_a_bad_spec_is_our_failure_and_never_a_pass(service: VerifierService) -> None:
    for spec in (PredicateSpec(predicate="x == x"), PredicateSpec(predicate="sin(x)**2 + cos(x)**2 == 1")):
        verdict = service.verify(spec, "3", seconds=30)
        assert verdict.outcome is Outcome.INFRA_ERROR
        assert "spec" in verdict.reason


def test_the_worker_has_limits_no_environment_and_no_files_of_ours(service: VerifierService, monkeypatch) -> None:
    monkeypatch.setenv("ASSAY_SECRET", "do not leak")
    with VerifierService(memory_mib=512) as fresh:
        assert fresh.verify(INTEGER, "42", 30).passed
        process = psutil.Process(fresh.worker_pid)
        assert set(process.environ()) <= {
            "PATH", "LANG", "PYTHONNOUSERSITE", "PYTHONHASHSEED", "PYTHONPATH", "LC_CTYPE",
        }  # fmt: skip
        assert process.rlimit(psutil.RLIMIT_AS) == (512 << 20, 512 << 20)
        assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        assert process.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
        assert process.cwd() == "/"
        assert os.getpgid(process.pid) == process.pid
        assert process.net_connections() == []


def test_nothing_is_left_after_close_and_a_closed_service_says_so() -> None:
    service = VerifierService()
    assert service.verify(INTEGER, "42", 30).passed
    pid = service.worker_pid
    assert pid is not None
    service.close()
    service.close()
    assert not psutil.pid_exists(pid)
    with pytest.raises(ValueError, match="closed"):
        service.verify(INTEGER, "42")


def test_a_worker_does_not_survive_a_parent_that_is_killed_even_while_it_computes() -> None:
    program = f"""
import sys, threading, time
from verifiers.workers.service import VerifierService
from verifiers.spec import ExpressionSpec
service = VerifierService()
spec = ExpressionSpec.model_validate_json({ENDLESS.model_dump_json()!r})
thread = threading.Thread(target=service.verify, args=(spec, {ENDLESS_ANSWER!r}, 60.0), daemon=True)
thread.start()
while service.worker_pid is None:
    time.sleep(0.01)
print(service.worker_pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    time.sleep(1.5)
    assert psutil.pid_exists(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while psutil.pid_exists(worker) and psutil.Process(worker).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_service_started_by_a_thread_that_ends_keeps_its_worker() -> None:
    with VerifierService() as service:
        thread = threading.Thread(target=service.verify, args=(INTEGER, "42", 30.0))
        thread.start()
        thread.join()
        pid = service.worker_pid
        time.sleep(0.2)
        assert service.verify(INTEGER, "42", 30).passed
        assert service.worker_pid == pid


def test_a_worker_that_cannot_start_is_infrastructure_for_every_item(monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python3")
    with VerifierService() as service:
        verdicts = service.verify_many([(INTEGER, "42"), (SIX, "6"), (SIX, "7")])
    assert {verdict.outcome for verdict in verdicts} == {Outcome.INFRA_ERROR}
    assert all("cannot be started" in verdict.reason for verdict in verdicts)


def test_several_threads_take_turns(service: VerifierService) -> None:
    results: dict[int, bool] = {}

    def ask(number: int) -> None:
        results[number] = service.verify(IntegerSpec(expected=str(number)), str(number), 30).passed

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(12), True)


def test_a_broken_frame_is_told_from_an_unfinished_one() -> None:
    whole = encode({"a": 1})
    frames = Frames()
    for byte in whole[:-1]:
        frames.feed(bytes([byte]))
        assert frames.next() is None
    frames.feed(whole[-1:])
    assert frames.next() == {"a": 1}
    frames.feed(b"\xff\xff\xff\xff")
    with pytest.raises(FrameError):
        frames.next()
    garbage = Frames()
    garbage.feed(b"\x00\x00\x00\x02{]")
    with pytest.raises(FrameError):
        garbage.next()
