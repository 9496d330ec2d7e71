"""Waits for every program that a broker started, and for what such programs leave behind.

What always holds: once a program has ended, its call back comes, once, on the reactor; orphans of ended programs are
adopted (this process is their subreaper) and waited for within a second, so nothing stays a zombie. Which children are
the reaper's shows in their session: those in this process's own session (a plain `subprocess.run`) are never touched.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from runtime.backends.launch import become_subreaper, spawn
from runtime.reactor import Reactor

ROUND_SECONDS = 0.5


class Program:
    """A started program."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int, exited: Callable[[int], None]) -> None:
        self.pid = process.pid
        self.process = process
        self.exited = exited
        self.descriptor = descriptor

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    def kill(self) -> None:
        self.process.kill()


class Reaper:
    """Everything but the constructor is called on the reactor."""

    def __init__(self, reactor: Reactor) -> None:
        become_subreaper()
        self._reactor = reactor
        self._programs: dict[int, Program] = {}
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
    ) -> Program:
        """Starts a program in the groups given; `exited` gets its status, negative for a signal. Raises OSError."""
        process = spawn(argv, entrances=entrances, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            program = Program(process, os.pidfd_open(process.pid), exited)
        except OSError:
            process.kill()
            process.wait()
            raise
        self._programs[program.pid] = program
        self._reactor.watch(program.descriptor, selectors.EVENT_READ, lambda: self._look(program))
        return program

    def adopt(self) -> int:
        """Waits for every orphan that has ended; how many there were."""
        found = 0
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return found
            if ended is None:
                return found
            if not self._reap(ended.si_pid):
                return found + sum(self._reap(pid) for pid in _zombies())  # somebody keeps the first one waiting
            found += 1

    def _reap(self, pid: int) -> bool:
        """Whether an ended child was one of ours to wait for, and is gone now."""
        if pid in self._programs:
            self._look(self._programs[pid])
            return True
        if _session_of(pid) in (self._session, 0):
            return False
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return True

    def close(self) -> None:
        """Kills the programs that still run, and waits for all of them."""
        self._closed = True
        for program in list(self._programs.values()):
            program.kill()
            program.process.wait(timeout=10)
            self._look(program)
        self.adopt()

    def _round(self) -> None:
        if not self._closed:
            self._reactor.after(ROUND_SECONDS, self._round)
            self.adopt()

    def _look(self, program: Program) -> None:
        code = program.process.poll()
        if code is None or program.pid not in self._programs:
            return
        del self._programs[program.pid]
        self._reactor.watch(program.descriptor, 0, lambda: None)
        os.close(program.descriptor)
        program.exited(code)


def _status(pid: int) -> list[str]:
    """State, parent, group, session of a process that may be a zombie; empty when it is gone (proc(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _session_of(pid: int) -> int:
    return int((_status(pid) or ["", "0", "0", "0"])[3])


def _zombies() -> list[int]:
    """All ended children of this process: some milliseconds."""
    mine = ["Z", str(os.getpid())]
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _status(pid)[:2] == mine]
