"""The one way in which programs that isolate are started.

What always holds: the program is in its control groups before its first instruction; it gets the three descriptors
named and /dev/null as one more, an environment with PATH alone, a session of its own, and nothing else; it does not
begin when the process that started it is gone.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import logging
import os
import signal
import struct
import subprocess
import threading
from collections.abc import Sequence

from runtime.guest.confine import PR_SET_SECCOMP, SECCOMP_MODE_FILTER
from runtime.guest.filters import (
    ALLOW,
    AUDIT,
    JUMP_IF_EQUAL,
    LOAD_WORD,
    NOT_THERE,
    OFFSET_ARCHITECTURE,
    OFFSET_NUMBER,
    RETURN,
    instruction,
)

PR_SET_CHILD_SUBREAPER = 36
MEMBARRIER = {"x86_64": 324, "aarch64": 283}
FAR = 300
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
ENTER = (
    'parent=$1; shift; while [ "$1" != -- ]; do echo 0 > "$1" || exit 124; shift; done; shift; '
    'kill -0 "$parent" || exit 125; exec "$@"'
)
"""Enters the groups, and only then looks whether its parent lives: from then on whoever clears the groups finds it."""
log = logging.getLogger(__name__)
_here = threading.local()


def _prctl(option: int, first: int, second: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    if libc.prctl(ctypes.c_int(option), *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def become_subreaper() -> None:
    """From now on orphans below this process become its children, not those of init. (prctl(2))"""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def membarrier_filter(machine: str) -> bytes:
    """A seccomp program that answers membarrier(2) with ENOSYS and lets everything else pass."""
    return b"".join(
        [
            instruction(LOAD_WORD, OFFSET_ARCHITECTURE),
            instruction(JUMP_IF_EQUAL, AUDIT[machine], if_false=3),
            instruction(LOAD_WORD, OFFSET_NUMBER),
            instruction(JUMP_IF_EQUAL, MEMBARRIER[machine], if_false=1),
            instruction(RETURN, NOT_THERE),
            instruction(RETURN, ALLOW),
        ]
    )


def _skip_membarrier() -> None:
    """Spares every runsc that this thread starts a wait of some 10 ms.

    A Go program registers for membarrier at its start, and the kernel lets it wait for an RCU grace period. It works
    as well without. The filter only takes something away, so where it cannot be had, starts are slower and no less
    isolated.
    """
    if getattr(_here, "done", False):
        return
    _here.done = True
    machine = os.uname().machine
    if machine not in MEMBARRIER:
        return
    code = membarrier_filter(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)))
    try:
        _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(header))
    except OSError as error:
        log.warning("sandboxes start more slowly here: %s", error)


@functools.cache
def _far_descriptor() -> int:
    """An open /dev/null with a high number, which every program inherits and none uses.

    It makes the kernel give them a large table of descriptors from the start. runsc moves a descriptor to 256, and
    enlarging the table of a program with threads waits for an RCU grace period of some 10 ms. Raises OSError.
    """
    near = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return fcntl.fcntl(near, fcntl.F_DUPFD_CLOEXEC, FAR)
    finally:
        os.close(near)


def spawn(
    argv: Sequence[str], *, entrances: Sequence[str], stdin: int, stdout: int, stderr: int
) -> subprocess.Popen[bytes]:
    """Starts a program; `entrances` are the groups' files that admit a single thread. Raises OSError."""
    _skip_membarrier()
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a program inherits what its starter blocks
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", ENTER, "assay", str(os.getpid()), *entrances, "--", *argv],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            env=ENVIRONMENT,
            start_new_session=True,
            pass_fds=(_far_descriptor(),),
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
