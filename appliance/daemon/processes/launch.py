"""Starts a child: lowers its priority, ties its life to its parent's, and executes it. Standard library only.

    python -I -S launch.py PARENT NICE PROGRAM [ARGUMENT ...]

A separate program instead of a `preexec_fn`, because the parent may have threads: almost no Python is safe between fork
and exec then. The kernel sends SIGKILL to the child when the thread that started it ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def launch(parent: int, nice: int, command: list[str]) -> None:
    """Becomes the program `command`, at a lower priority and killed by the kernel when `parent` ends. Exits with status
    5 if it cannot start."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"cannot tie the child to its parent: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the parent ended before its child began")
    os.nice(nice)
    try:
        os.execvp(command[0], command)  # noqa: S606 - a list, and no shell
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        sys.exit(5)


if __name__ == "__main__":
    launch(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
