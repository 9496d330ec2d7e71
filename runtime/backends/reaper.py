"""Waits for every program that a broker started, and for their orphans.

Invariants: each ended program's callback runs once, on the reactor; orphans of ended programs are adopted (this process
is their subreaper) and reaped within a second, so nothing stays a zombie. The session id tells the reaper's children
apart: those in this process's own session (a plain `subprocess.run`) are never touched.

Starts isolating programs, in the only way in which they are started.

Invariants: the program is in its control groups before its first instruction; it gets the three given descriptors, one
more of /dev/null, an environment with only PATH, and its own session; it does not start if its parent process is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import logging
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from runtime.backends.lease import process_status
from runtime.guest.confine import Filter, prctl
from runtime.guest.filters import ALLOW, NOT_THERE, answering
from runtime.reactor import Reactor

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


ROUND_SECONDS = 0.5


class StartedProgram(NamedTuple):
    process: subprocess.Popen[bytes]
    descriptor: int
    """Pidfd, readable once the program has ended."""
    exited: Callable[[int], None]


class Reaper:
    """Starts a broker's programs and collects their exit statuses. All but the constructor is called on the reactor."""

    def __init__(self, reactor: Reactor) -> None:
        become_subreaper()
        self._reactor = reactor
        self._programs: dict[int, StartedProgram] = {}
        self._session = os.getsid(0)
        self._closed = False
        reactor.call(self._round)

    def start(
        self,
        argv: Sequence[str],
        *,
        entrances: Sequence[str],
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
        exited: Callable[[int], None],
    ) -> StartedProgram:
        """Starts a program in these control groups; `exited` gets its status, negative for a signal. Raises OSError."""
        process = spawn(argv, entrances=entrances, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            program = StartedProgram(process, os.pidfd_open(process.pid), exited)
        except OSError:
            process.kill()
            process.wait()
            raise
        self._programs[process.pid] = program
        self._reactor.watch(program.descriptor, selectors.EVENT_READ, lambda: self._check(program))
        return program

    def adopt(self) -> int:
        """Reaps all child processes that have ended, orphans inherited from them included. Returns their number."""
        found = 0
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return found
            if ended is None:
                return found
            if not self._reap(ended.si_pid):
                return found + sum(self._reap(pid) for pid in _zombies())  # the first one is another's to wait for
            found += 1

    def _reap(self, pid: int) -> bool:
        """Reaps an ended child process; False if another part of the program has to wait for it."""
        if pid in self._programs:
            self._check(self._programs[pid])
            return True
        status = process_status(pid)  # state, parent, group, session
        if not status or int(status[3]) in (self._session, 0):
            return False
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return True

    def close(self) -> None:
        """Kills all running programs that it started, and waits for them."""
        self._closed = True
        for program in list(self._programs.values()):
            program.process.kill()
            program.process.wait(timeout=10)
            self._check(program)
        self.adopt()

    def _round(self) -> None:
        if not self._closed:
            self._reactor.after(ROUND_SECONDS, self._round)
            self.adopt()

    def _check(self, program: StartedProgram) -> None:
        code = program.process.poll()
        if code is None or self._programs.pop(program.process.pid, None) is None:
            return
        self._reactor.watch(program.descriptor, 0, lambda: None)
        os.close(program.descriptor)
        program.exited(code)


def _zombies() -> list[int]:
    """Returns the ids of all ended children of this process; takes some milliseconds."""
    mine = ["Z", str(os.getpid())]
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if process_status(pid)[:2] == mine]
