"""Ties the life of a process to its parent's. Standard library only; also a program that starts a child so.

    python -I -S ending.py PARENT NICE PROGRAM [ARGUMENT ...]

A separate program instead of a `preexec_fn`, because the parent may have threads: almost no Python is safe between fork
and exec then. The kernel sends SIGKILL to the child when the thread that started it ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Makes the kernel kill this process when its parent ends; exits with 5 if `parent` has already ended."""
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
        os._exit(5)


def lower(nice: int) -> None:
    """Lowers the priority of this process, and of its session where the kernel shares the processor among sessions
    (sched(7), autogroup): there a process's own nice value counts only within its session."""
    os.nice(nice)
    if nice and os.getsid(0) == os.getpid():
        with suppress(OSError), open("/proc/self/autogroup", "w") as priority:  # noqa: PTH123 - pathlib loads slowly
            priority.write(str(nice))


def launch(parent: int, nice: int, command: list[str]) -> None:
    """Becomes the program `command`, at a lower priority and killed by the kernel when `parent` ends. Exits with status
    5 if it cannot start."""
    end_with(parent)
    lower(nice)
    try:
        os.execvp(command[0], command)  # noqa: S606 - a list, and no shell
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        sys.exit(5)


if __name__ == "__main__":
    launch(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
