"""Checks of sessions: persistent names, honest errors, programs, the host's clock."""

from __future__ import annotations

import time

from runtime.conformance.check import Figures, Subject, answered, check, require
from runtime.sandbox import CallStatus, Tier


@check("names persist", "What one call defines is there in the next, in every tier.")
def names_persist(subject: Subject) -> Figures:
    figures = {}
    for tier in Tier:
        started = time.monotonic()
        with subject.session(tier) as session:
            answered(session.run("counted = [1, 2, 3]"))
            figures[f"{tier.value}_first_ms"] = 1000 * (time.monotonic() - started)
            answered(session.run("def double(n):\n    return 2 * n\ncounted.append(double(21))"))
            result = session.run("print(counted)")
            printed = answered(result)
            require(printed == "[1, 2, 3, 42]\n", f"a {tier.value} session printed {printed!r} instead of its list")
            require(result.sandbox != "", f"a {tier.value} call does not say in which sandbox it ran")
            figures[f"{tier.value}_call_ms"] = 1000 * result.seconds
    return figures


@check("errors are told", "An exception comes back with its type, its line and what was printed.")
def errors_are_reported(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        answered(box.run("kept = 7"))
        result = box.run("print('before')\ndef f(n):\n    return 1 / n\nf(0)")
        output = answered(result, CallStatus.EXCEPTION)
        require(output == "before\n", f"what was printed before the error came out as {output!r}")
        require(result.error == "ZeroDivisionError: division by zero", f"the error was told as {result.error!r}")
        require("line 3, in f" in result.traceback, f"the traceback was {result.traceback!r}")
        require(answered(box.run("print(kept)")) == "7\n", "the names from before the error are lost")
    return {}


@check("programs run", "A program gets its input, place and variables, and gives both outputs and its exit code.")
def programs_run(subject: Subject) -> Figures:
    code = (
        "import os, sys; print(sys.stdin.read().upper() + os.getcwd() + os.environ['MINE']); os.write(2, b'aside\\n')"
    )
    with subject.sandbox() as box:
        arguments = ["-I", "-S", "-c", f"{code}; sys.exit(7)"]
        result = box.exec(["python3", *arguments], stdin=b"hello", env={"MINE": "?"}, cwd="/tmp")  # noqa: S108
    seen = (result.status, result.exit_code, result.stdout, result.stderr)
    require(seen == (CallStatus.OK, 7, b"HELLO/tmp?\n", b"aside\n"), f"the program ended with {seen}")
    return {"program_ms": 1000 * result.seconds}


CLOCK = """import time
real = time.sleep
for name in ('time', 'monotonic', 'perf_counter', 'process_time'):
    setattr(time, name, lambda: 0.0)
real(0.3)
print('slept')
"""


@check("time is the host's", "A call's duration is measured outside, independent of the guest's clocks.")
def time_is_the_hosts(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        started = time.monotonic()
        result = box.run(CLOCK)
        passed = time.monotonic() - started
    answered(result)
    require(
        0.3 <= result.seconds <= passed,
        f"a call of 0.3 s that stopped its own clocks was told as {result.seconds:.3f} s; {passed:.3f} s passed",
    )
    return {}


CHECKS = (names_persist, errors_are_reported, programs_run, time_is_the_hosts)
