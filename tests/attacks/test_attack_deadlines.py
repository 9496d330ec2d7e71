"""Rows 16, 17 and 49 of the catalogue: code that will not stop, hides, comes back later, or shoots at its keepers."""

from __future__ import annotations

import time

import pytest
from attack_kit import DIED, EXCEPTION, MEMORY, OK, PATIENCE, PIDS, TIMEOUT, Attack, AttackBench, attack, each

from runtime.conformance import host
from runtime.errors import InfrastructureError, SandboxError

PYTHON = "/usr/bin/python3"
DEAF = """import signal
for number in set(range(1, 65)) - {9, 19, 32, 33}: signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
"""
ORPHANS = """import os
for _ in range(6):
    if not os.fork():
        os.setsid()
        if os.fork(): os._exit(0)
        os.chdir('/')
        while True: pass
"""
SHOTS = """import os
for target in ({targets}):
    for number in range(64, 0, -1):
        try: os.kill(target, number)
        except OSError: pass
print('alive')
"""
TRACES = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
hits = []
for pid in range(1, 64):
    if pid != os.getpid() and libc.ptrace(16, pid, None, None) == 0: hits.append(pid)
    if libc.syscall(310, pid, None, 0, None, 0, 0) == 0 and pid != os.getpid():
        try: hits.append(open(f'/proc/{pid}/mem', 'rb').read(1))
        except OSError: pass
print(hits)
"""
CATCHES_ALL = """while True:
    try:
        while True: pass
    except BaseException: pass
"""
FULL_PIPE = "import os\nr, w = os.pipe()\nwhile True: os.write(w, bytes(1 << 20))"
ENDLESS = [
    attack(49, "a loop", "while True: pass", TIMEOUT),
    attack(49, "a sleep", "import time\nwhile True: time.sleep(1000)", TIMEOUT),
    attack(49, "deaf to signals", DEAF + "while True: pass", TIMEOUT),
    attack(49, "a computation in C", "3 ** 10 ** 8", TIMEOUT),
    attack(49, "a read that never comes", "import os\nr, w = os.pipe()\nos.read(r, 1)", TIMEOUT),
    attack(49, "a lock", "import threading\nlock = threading.Lock()\nlock.acquire(); lock.acquire()", TIMEOUT),
    attack(49, "stopped by itself", "import os\nos.kill(os.getpid(), 19)", TIMEOUT),
    attack(49, "orphans", ORPHANS + "while True: pass", TIMEOUT),
    attack(49, "what catches every exception", CATCHES_ALL, TIMEOUT),
    attack(49, "a pipe that nobody reads", FULL_PIPE, TIMEOUT),
]


@each(ENDLESS)
def test_what_does_not_end_is_ended(bench: AttackBench, tried: Attack) -> None:
    assert bench.suffer(tried._replace(limits={"call_seconds": 0.5})).seconds >= 0.5


def test_orphans_of_a_call_that_ended_die_with_the_sandbox(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        assert bench.call(box, DEAF + ORPHANS + "print('done')").output.endswith("done\n")
        assert len(host.processes(host.groups(box.id))) >= 2 or bench.backend == "gvisor"
        assert bench.call(box, "print(1)").output == "1\n"


def test_a_program_that_leaves_its_group_cannot_keep_the_sandbox_waiting(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        code = DEAF + ORPHANS + "print('gone')"
        started = time.monotonic()
        result = box.exec([PYTHON, "-c", code], seconds=0.5)
        assert time.monotonic() - started < PATIENCE
        assert result.status in (OK, TIMEOUT)
        assert bench.call(box, "print(1)").output == "1\n"


def test_what_waits_for_the_end_of_a_call_cannot_change_what_was_said(bench: AttackBench) -> None:
    """Row 16: a daemon that edits files later. The host reads before it, or from a snapshot, or not at all."""
    waits = """import os, time
open('/work/result', 'w').write('honest')
if not os.fork():
    os.setsid()
    while not os.path.exists('/work/verified'): time.sleep(0.001)
    while True: open('/work/result', 'w').write('forged')
"""
    with bench.sandbox() as box:
        assert bench.call(box, waits).status is OK
        taken = box.read("/work/result")
        box.write("/work/verified", b"")
        assert taken == b"honest"
        with bench.sandbox() as judge:
            judge.write("/work/result", taken)
            time.sleep(0.05)
            assert judge.read("/work/result") == b"honest"


@pytest.mark.parametrize("targets", ["1,", "os.getppid(),", "-1,", "0,", "*range(2, 40),", "-os.getppid(), -2, -3"])
def test_signals_reach_nobody_who_could_answer_for_them(bench: AttackBench, targets: str) -> None:
    with bench.beside_a_neighbour(), bench.sandbox() as box:
        result = bench.call(box, SHOTS.format(targets=targets), seconds=1.0)
        assert result.status in (OK, DIED, TIMEOUT)
        if result.status is OK:
            assert result.output == "alive\n"
        else:
            with pytest.raises(InfrastructureError):
                box.run("1")
    assert host.alive(bench.broker)


def test_a_signal_that_is_meant_for_everybody_ends_at_most_its_own_sandbox(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        bench.call(box, "import os, signal\nos.kill(-1, signal.SIGKILL)")
    assert host.alive(bench.broker)
    with bench.sandbox() as box:
        assert bench.call(box, "print(1)").output == "1\n"


def test_nobody_can_be_traced(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        result = bench.call(box, TRACES)
        if result.status is OK:
            assert result.output == "[]\n"
        else:
            assert result.status in (DIED, EXCEPTION, PIDS, MEMORY)


def test_a_call_after_a_killed_one_is_an_infrastructure_error_and_never_a_verdict(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        assert bench.call(box, "while True: pass", seconds=0.2).status is TIMEOUT
        for late in (lambda: box.run("1"), lambda: box.read("/work/a"), lambda: box.exec([PYTHON]), box.snapshot):
            with pytest.raises(SandboxError):
                late()
