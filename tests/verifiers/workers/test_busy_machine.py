"""Beside many busy processes the same texts get the same verdicts; they only come later."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from verifiers.answers.spec import AnswerSpec
from verifiers.contract.verdict import Ground, Outcome
from verifiers.registry import decide
from verifiers.workers.service import VerifierService

EQUAL = AnswerSpec(notation="plain", expected="sin(x)", variables=("x", "y", "z", "u", "v"))
HARD = "(x+y+z+u)^5 * (x-y+z-u)^5 - ((x+z)^2 - (y+u)^2)^5 + sin(x)"
ENDLESS = "(x+y+z+u+v)^60 * (x-y+z-u+v)^60 - ((x+z+v)^2 - (y+u)^2)^60 + sin(x)"


@contextmanager
def crowded(processes: int) -> Iterator[None]:
    """One processor, which is ours and theirs."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(own)})
    busy = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
        os.sched_setaffinity(0, own)


def test_a_hard_and_honest_text_passes_and_an_endless_one_is_still_to_blame() -> None:
    decide(EQUAL, "sin(x)")
    begun = time.thread_time()
    assert decide(EQUAL, HARD).passed
    seconds = max(0.3, 4.0 * (time.thread_time() - begun))
    with crowded(4), VerifierService(workers=2) as service:
        assert service.verify(EQUAL, "sin(x)", 60).passed
        verdict = service.verify(EQUAL, HARD, seconds)
        assert (verdict.outcome, verdict.reason) == (Outcome.PASS, verdict.reason)
        verdict = service.verify(EQUAL, ENDLESS, 0.3)
        assert (verdict.outcome, verdict.ground) == (Outcome.FAIL, Ground.TIMEOUT)
