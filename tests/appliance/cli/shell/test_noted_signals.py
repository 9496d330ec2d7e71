"""Signals are noted, and no lock is left taken, wherever one comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from appliance.cli.shell.noted_signals import STOPS, HeldInterrupt, noted

TIMES = 300
"""Where the interrupt is not held back, one of ten or so leaves the lock of the future taken."""
POLLING = """
import sys
from threading import Event
from types import SimpleNamespace
from appliance.cli.demo import command as demo
demo.POLL_SECONDS = 1e-5
for _ in range(int(sys.argv[1])):
    stop, said = Event(), []
    core = SimpleNamespace(supervisor=SimpleNamespace(close=stop.set))
    try:
        demo._beside(core, stop.wait, lambda: said or said.append(print("at work", flush=True)))
    except KeyboardInterrupt:
        continue
    sys.exit("it was not raised")
print("whole", flush=True)
"""
"""The loop of the demonstration, around work that ends when its worker is told to."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (*STOPS, signal.SIGUSR1)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_demonstration_that_looks_without_pause_is_interrupted_hundreds_of_times_and_always_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", POLLING, str(TIMES)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for _ in range(TIMES):
                assert process.stdout.readline() == "at work\n"
                process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "whole\n"
        finally:
            process.kill()


def test_what_came_is_raised_at_the_end_and_not_before() -> None:
    done = []

    def held() -> None:
        with HeldInterrupt() as interrupt:
            done.append(interrupt.came)
            os.kill(os.getpid(), signal.SIGINT)
            done.append(interrupt.came)

    with pytest.raises(KeyboardInterrupt):
        held()
    assert done == [False, True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_else_was_raised_goes_before() -> None:
    def held() -> None:
        with HeldInterrupt():
            os.kill(os.getpid(), signal.SIGINT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        held()


def test_what_was_ignored_or_had_a_handler_of_its_own_stays_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, own := lambda *_: None)
    with HeldInterrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert not interrupt.came
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is own
    noted(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_each_signal_that_came_is_in_the_set_until_it_is_taken_out() -> None:
    came = noted(signal.SIGINT, signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert came == {signal.SIGUSR1}
    assert not came & STOPS
    came.discard(signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGINT)
    assert came & STOPS
