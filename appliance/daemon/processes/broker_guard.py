"""Keeps a broker running for a daemon that has given up root, restarting it when it ends.

    python -I -S broker_guard.py PROGRAM [ARGUMENT ...]

Invariants: the first line of standard input, from the process that started this program, is the broker's settings for
every start; later input is ignored, and end of file ends broker and guard. So the unprivileged daemon can stop its
broker but cannot make it do anything. The broker ends when the guard ends, in any way. Each end is one line of JSON on
standard output: exit status, running time in seconds, and seconds until the next start, or null if there is none. As
root, guard and broker have only the capabilities in `KEPT`, which sandboxes need.

Standard library only: the program is small, and it stays root.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

LAUNCH = Path(__file__).parents[2] / "system" / "ending.py"
GRACE_SECONDS = 4.0
"""Time for a broker to end its sandboxes, in seconds; its keeper ends the rest."""
CANNOT = 2
"""Exit status of a broker with unusable settings."""
FIRST_SECONDS, LONGEST_SECONDS = 1.0, 60.0
"""Pause before the third start, and the longest pause; the second start is immediate."""
STEADY_SECONDS = 60.0
"""Running time after which the pauses restart from zero, in seconds."""
KEPT = {
    "CAP_DAC_OVERRIDE": 1,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_SYS_CHROOT": 18,
    "CAP_SYS_ADMIN": 21,
    "CAP_SETFCAP": 31,
}
"""Capability numbers from <linux/capability.h>; same set as in systemd/assay-broker.service."""
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _CAPABILITY_VERSION_3 = 23, 24, 0x20080522


def guard(command: list[str]) -> None:
    """Runs sandbox brokers, one after another, until the daemon closes standard input. Reports each one's end on
    standard output."""
    os.umask(0o077)
    settings = sys.stdin.buffer.readline()
    pause = 0.0
    while settings:
        started = time.monotonic()
        process = _start(command, settings)
        if _daemon_ended(process, None):
            _stop(process)
            return
        seconds = time.monotonic() - started
        pause = 0.0 if seconds >= STEADY_SECONDS else pause
        again = None if process.returncode == CANNOT else pause
        _report(code=process.returncode, seconds=round(seconds, 3), retry_seconds=again)
        if _daemon_ended(None, again):
            return
        pause = min(2 * pause or FIRST_SECONDS, LONGEST_SECONDS)


def limit_capabilities() -> None:
    """Drops all capabilities of this process but those that sandboxes need (`KEPT`), for child processes too. Raises
    OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    kept = sum(1 << number for number in KEPT.values())
    held = [number for number in range(64) if libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1]
    results = [libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) for number in held if not kept >> number & 1]
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    mine = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable of the lower half, then of the upper
    results.append(libc.capget(header, mine))
    for place in range(6):
        mine[place] &= kept if place < 2 else 0
    results.append(libc.capset(header, mine))
    if any(results):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _start(command: list[str], settings: bytes) -> subprocess.Popen[bytes]:
    launcher = [sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), "0"]
    process = subprocess.Popen([*launcher, *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    try:
        process.stdin.write(settings)
        process.stdin.close()
    except BrokenPipeError:
        pass  # already ended; its status says why
    return process


def _daemon_ended(process: subprocess.Popen[bytes] | None, seconds: float | None) -> bool:
    """Waits for an end: True once the daemon has ended, False once the given broker has, or after `seconds`."""
    deadline = None if seconds is None else time.monotonic() + seconds
    watched = [0] if process is None else [0, os.pidfd_open(process.pid)]
    try:
        while deadline is None or time.monotonic() < deadline:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select(watched, [], [], left)
            if 0 in ready and not os.read(0, 4096):
                return True
            if process is not None and watched[1] in ready:
                process.wait()
                return False
        return False
    finally:
        for number in watched[1:]:
            os.close(number)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _report(**facts: float | None) -> None:
    try:
        os.write(1, json.dumps(facts).encode() + b"\n")
    except BrokenPipeError:
        sys.exit(0)  # the daemon has ended


if __name__ == "__main__":
    if os.geteuid() == 0:
        try:
            limit_capabilities()
        except OSError as unlimited:
            sys.exit(f"broker: capabilities cannot be dropped: {unlimited.strerror}; start it with CAP_SETPCAP too")
    guard(sys.argv[1:])
