"""Checks that an ended sandbox leaves nothing on the host, without asking the component that cleans up.

Visible here are control groups, processes, mounts and our own descriptors; what only root can see is not promised.
"""

from __future__ import annotations

import time

from runtime.conformance import host
from runtime.conformance.check import Figures, Subject, Violation, answered, check, require, require_error
from runtime.errors import SandboxError
from runtime.sandbox import CallStatus, Tier

GONE_SECONDS = 10.0
DAEMONS = """import os, signal, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
print('started')
"""


def _nothing_of(box: str, before: set[int]) -> None:
    """Waits until no group, process or mount of a box is left. Raises Violation if some remain."""
    gone = host.becomes_true(lambda: not host.groups(box), seconds=GONE_SECONDS)
    require(gone, f"control groups are left: {', '.join(map(str, host.groups(box)))}")
    gone = host.becomes_true(lambda: not any(map(host.alive, before)), seconds=GONE_SECONDS)
    require(gone, f"processes are left: {sorted(filter(host.alive, before))}")
    require(box not in host.mounts(), f"mounts of {box} are left")


def _seen(box: str) -> set[int]:
    """Returns the ids of a running box's processes; seeing them now makes their later absence meaningful."""
    processes = host.processes(host.groups(box))
    require(bool(processes), f"no control group with processes of {box} is seen, so nobody could say that it is gone")
    return processes


@check(
    "closing leaves nothing",
    "After a sandbox with daemons is closed, none of its processes, groups and mounts is left.",
)
def closing_leaves_nothing(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        require(answered(box.run(DAEMONS)) == "started\n", "no daemon was started")
        seen, identity = _seen(box.id), box.id
        started = time.monotonic()
    closed = time.monotonic() - started
    _nothing_of(identity, seen)
    require_error(lambda: box.run("print(1)"), "a closed sandbox answers", SandboxError)
    return {"processes": float(len(seen)), "close_ms": 1000 * closed}


@check(
    "a killed call leaves nothing",
    "After a call that had to be killed, nothing of its sandbox is left either.",
    quick=False,
)
def a_killed_call_leaves_nothing(subject: Subject) -> Figures:
    with subject.sandbox(limits={"call_seconds": 0.5}) as box:
        seen, identity = _seen(box.id), box.id
        result = box.run(DAEMONS + "while True: pass")
        require(result.status is CallStatus.TIMEOUT, f"a call without end ended with {result.status.value}")
    _nothing_of(identity, seen)
    return {"processes": float(len(seen))}


@check("closing a session in a call leaves nothing", "A session closed in the middle of a call is freed at once.")
def closing_a_session_in_a_call_leaves_nothing(subject: Subject) -> Figures:
    with subject.session(Tier.SANDBOX) as session:
        first = session.run("print(1)")
        answered(first)
        seen = _seen(first.sandbox)
        under_way = session.start("import time\ntime.sleep(60)")
        time.sleep(0.1)
    started = time.monotonic()
    try:
        ended = under_way.result(timeout=GONE_SECONDS)
    except SandboxError:
        passed = time.monotonic() - started
    except TimeoutError as error:
        raise Violation(f"a call whose session was closed still runs after {GONE_SECONDS:g} s") from error
    else:
        raise Violation(f"a call whose session was closed ended with {ended.status.value}")
    require(passed < GONE_SECONDS, f"a call whose session was closed ended after {passed:.1f} s")
    _nothing_of(first.sandbox, seen)
    return {"freed_ms": 1000 * passed}


@check("descriptors are closed", "This process has no more descriptors after many sandboxes.", quick=False)
def descriptors_are_closed(subject: Subject, times: int = 5) -> Figures:
    with subject.sandbox() as box:
        answered(box.run("1"))
    before = host.descriptors()
    for _ in range(times):
        with subject.sandbox() as box:
            answered(box.run("1"))
    flat = host.becomes_true(lambda: host.descriptors() <= before, seconds=GONE_SECONDS)
    require(flat, f"{host.descriptors() - before} descriptors more are open after {times} sandboxes")
    return {}


CHECKS = (
    closing_leaves_nothing,
    a_killed_call_leaves_nothing,
    closing_a_session_in_a_call_leaves_nothing,
    descriptors_are_closed,
)
