"""What a signal raised where nothing can be raised is raised a moment later."""

from __future__ import annotations

import subprocess
import sys

import pytest

DROPS = """
import os, signal, sys, time
from appliance.cli.shell.noted_signals import hear_again

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

def stop(*_):
    raise {raised}

hear_again()
signal.signal(signal.SIGTERM, stop)
try:
    for _ in range(3):
        Finalized()
        time.sleep({rest})
    print("gone on")
except ({raised}).__class__ as error:
    print("heard", error.args)
"""
"""Something that is raised in its finalizer, which drops it."""


def ran(raised: str, rest: float = 60.0) -> subprocess.CompletedProcess[str]:
    program = DROPS.format(raised=raised, rest=rest)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(("raised", "with_it"), [("KeyboardInterrupt()", "()"), ("SystemExit(143)", "(143,)")])
def test_an_interrupt_that_a_finalizer_drops_is_heard(raised: str, with_it: str) -> None:
    done = ran(raised)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"heard {with_it}\n", "")


def test_any_other_error_of_a_finalizer_is_printed_as_ever() -> None:
    done = ran("ValueError('of its own')", rest=0.01)
    assert (done.returncode, done.stdout) == (0, "gone on\n")
    assert done.stderr.count("Exception ignored in") == 3


COMMAND = """
import os, signal, sys, time
class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
class Finder:
    def find_spec(self, name, *rest):
        if name == "appliance.cli.check.commands":
            Finalized()
            time.sleep(60)
sys.meta_path.insert(0, Finder())
from appliance.cli.entry import main
main()
"""


def test_a_command_ends_with_130_after_ctrl_c_that_was_dropped() -> None:
    command = [sys.executable, "-c", COMMAND, "check", "answer", "--gold", "1", "--answer", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
