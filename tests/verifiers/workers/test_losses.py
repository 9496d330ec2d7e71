"""What is lost in the middle is decided by the next, and a hostile item ends in time while all workers are busy."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from runtime.profile import BackendName
from runtime.settings import BrokerSettings, RuntimeSettings
from verifiers.answers.spec import AnswerSpec
from verifiers.boxes.box import ToolBoxes
from verifiers.contract.verdict import Ground, Outcome, Verdict
from verifiers.registry.spec import Spec
from verifiers.workers import service as service_module
from verifiers.workers.program import verifier_program
from verifiers.workers.service import MEMORY_MIB, VerifierService

PAIRS: list[tuple[Spec, str]] = [(AnswerSpec(notation="digits", expected="7"), str(number)) for number in range(64)]
ENDLESS = AnswerSpec(notation="plain", expected="sin(x)", variables=("x", "y", "z", "u", "v"))
ENDLESS_ANSWER = "(x+y+z+u+v)^60 * (x-y+z-u+v)^60 - ((x+z+v)^2 - (y+u)^2)^60 + sin(x)"


class Busy:
    """Ordinary items, again and again on threads of their own, until the block ends; then all were judged rightly."""

    def __init__(self, service: VerifierService, threads: int) -> None:
        self._service, self._done = service, threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(threads)]
        self.wrong: list[Verdict] = []
        self.rounds = 0

    def __enter__(self) -> Busy:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._done.is_set():
            verdicts = self._service.verify_many(PAIRS, 60)
            self.rounds += 1
            self.wrong += [found for number, found in enumerate(verdicts) if found.passed != (number == 7)]


def wait_for_rounds(busy: Busy, more: int) -> None:
    deadline, before = time.monotonic() + 120, busy.rounds
    while busy.rounds < before + more:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_broker_killed_in_the_middle_costs_nobody_a_verdict(tmp_path: Path, guest_roots: Path) -> None:
    own = BrokerSettings(
        state_dir=tmp_path / "s",
        root_dir=guest_roots,
        backends=(BackendName.NSJAIL,),
        programs=(verifier_program(MEMORY_MIB),),
    )
    with ToolBoxes(RuntimeSettings(own=own)) as boxes, VerifierService(boxes=boxes, workers=1) as service:
        with Busy(service, 2) as busy:
            wait_for_rounds(busy, 3)
            assert boxes._open is not None
            process = boxes._open[1]._process
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            wait_for_rounds(busy, 6)
        assert busy.wrong == []
        assert service.isolation == "nsjail"
        again = boxes._open[1]._process
        assert again is not None
        assert again.pid != process.pid


def test_a_worker_with_nothing_but_what_hangs_gives_way_until_somebody_asks_or_it_took_very_long(
    tmp_path: Path, guest_roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = BrokerSettings(
        state_dir=tmp_path / "s",
        root_dir=guest_roots,
        backends=(BackendName.NSJAIL,),
        programs=(verifier_program(MEMORY_MIB),),
    )
    with ToolBoxes(RuntimeSettings(own=own)) as boxes, VerifierService(boxes=boxes, workers=1) as service:
        assert service.verify(AnswerSpec(notation="digits", expected="7"), "7", 60).passed
        (box,) = boxes._boxes
        (weight,) = [
            path
            for file in ("cpu*/assay-*.{}/cpu.shares", "**/assay-*.{}/cpu.weight")
            for path in Path("/sys/fs/cgroup").glob(file.format(box.id))
        ][:1]
        usual = int(weight.read_text())
        hanging = threading.Thread(target=service.verify, args=(ENDLESS, ENDLESS_ANSWER, 6_000.0))
        hanging.start()
        deadline = time.monotonic() + 240
        while int(weight.read_text()) * 4 > usual:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert service.verify(AnswerSpec(notation="digits", expected="7"), "7", 60).passed
        with Busy(service, 1):
            while int(weight.read_text()) != usual:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        monkeypatch.setattr(service_module, "GIVES_WAY_UNTIL", 4.0)
        while int(weight.read_text()) * 4 > usual:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        while int(weight.read_text()) != usual:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        service.close()
        hanging.join()


def test_what_never_ends_is_answered_in_time_while_all_workers_are_busy() -> None:
    with VerifierService(workers=1) as service:
        service.verify(ENDLESS, "sin(x)", 60)
        with Busy(service, 3) as busy:
            wait_for_rounds(busy, 1)
            begun = time.monotonic()
            verdict = service.verify(ENDLESS, ENDLESS_ANSWER, seconds=0.5)
            assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.TIMEOUT)
            assert time.monotonic() - begun < 240
        assert busy.wrong == []
