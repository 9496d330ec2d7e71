"""A process that waits for its end hears of it, whichever thread gets the signal."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

SLEEPER = """import signal, sys, threading, time
from runtime.shutdown import Shutdown
stop = Shutdown()
def another() -> None:
    time.sleep(0.1)  # the main thread waits by then
    HOW
thread = threading.Thread(target=another)
thread.start()
begun = time.monotonic()
assert stop.wait(None if sys.argv[1] == "none" else float(sys.argv[1]))
print(time.monotonic() - begun, stop.is_set())
"""


@pytest.mark.parametrize(
    "how",
    [
        "signal.pthread_kill(threading.get_ident(), signal.SIGTERM)",
        "signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)",
        "stop.set()",
    ],
)
def test_a_wait_without_end_ends_when_it_shall(how: str) -> None:
    output = subprocess.run(
        [sys.executable, "-c", SLEEPER.replace("HOW", how), "none"],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    ).stdout.split()
    assert float(output[0]) > 0
    assert output[1] == "True"


def test_any_number_of_signals_and_words_ends_it_once_and_for_all() -> None:
    how = "[(stop.set(), signal.raise_signal(signal.SIGTERM)) for _ in range(70_000)]"
    subprocess.run([sys.executable, "-c", SLEEPER.replace("HOW", how), "120"], timeout=240, check=True)


def test_a_wait_with_an_end_comes_back_and_says_that_nothing_came() -> None:
    code = "from runtime.shutdown import Shutdown; stop = Shutdown(); print(stop.is_set(), stop.wait(0.2))"
    begun = time.monotonic()
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True
    ).stdout
    assert output.split() == ["False", "False"]
    assert time.monotonic() - begun >= 0.2
