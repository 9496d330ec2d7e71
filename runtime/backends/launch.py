"""Starts isolating programs, in the only way in which they are started.

Invariants: the program is in its control groups before its first instruction; it gets the three given descriptors, one
more of /dev/null, an environment with only PATH, and its own session; it does not start if its parent process is gone.
"""

from __future__ import annotations

import fcntl
import functools
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Sequence

from runtime.guest.confine import Filter, prctl
from runtime.guest.filters import ALLOW, NOT_THERE, answering

PR_SET_CHILD_SUBREAPER = 36
MEMBARRIER = {"x86_64": 324, "aarch64": 283}
FAR = 300
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
ENTER = (
    'parent=$1; shift; while [ "$1" != -- ]; do echo 0 > "$1" || exit 124; shift; done; shift; '
    'kill -0 "$parent" || exit 125; exec "$@"'
)
"""Enters the groups and only then checks that its parent lives: from then on a cleanup of the groups finds it."""
log = logging.getLogger(__name__)
_here = threading.local()


def become_subreaper() -> None:
    """Makes this process the parent of orphaned descendants, instead of init. (prctl(2))"""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def _skip_membarrier() -> None:
    """Spares every runsc that this thread starts a wait of some 10 ms.

    A Go program registers for membarrier at start, which waits for an RCU grace period, but also works without. The
    filter only removes a call, so without the filter starts are slower and no less isolated.
    """
    if getattr(_here, "done", False):
        return
    _here.done = True
    machine = os.uname().machine
    if machine not in MEMBARRIER:
        return
    try:
        Filter(answering(machine, {MEMBARRIER[machine]: NOT_THERE}, foreign=ALLOW)).install()
    except OSError as error:
        log.warning("sandboxes start more slowly here: %s", error)


@functools.cache
def _far_descriptor() -> int:
    """Opens /dev/null with a high number, which every program inherits and none uses; returns the descriptor.

    The kernel then gives the program a large descriptor table from the start. runsc moves a descriptor to 256, and
    enlarging the table of a threaded program waits for an RCU grace period of some 10 ms. Raises OSError.
    """
    near = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return fcntl.fcntl(near, fcntl.F_DUPFD_CLOEXEC, FAR)
    finally:
        os.close(near)


def spawn(
    argv: Sequence[str], *, entrances: Sequence[str], stdin: int, stdout: int, stderr: int
) -> subprocess.Popen[bytes]:
    """Starts a program inside control groups; `entrances` are group files that admit one thread. Raises OSError."""
    _skip_membarrier()
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a program inherits its parent's blocked signals
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
