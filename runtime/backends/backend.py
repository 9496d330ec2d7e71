"""Interface of an isolation backend for the broker: start, freeze and end one sandbox.

Calls and callbacks happen on the broker's reactor thread; nothing blocks for more than a few milliseconds. Invariants:
a box is in its own control groups before it runs an instruction; `end` leaves no process, mount, group, folder or
descriptor of it; what a backend cannot do it refuses with RefusedError, never by doing less. A box that cannot be
removed is logged, stays listed, and is retried by `close`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from runtime.backends.cgroups import ControlGroup
from runtime.backends.host import SandboxHost
from runtime.backends.process_box import COMPLAINT, HINT, REMOVE_SECONDS, ProcessBox, SlowTimer, read_now
from runtime.errors import InfrastructureError, SandboxError
from runtime.profile import BackendName, BoxUsage, Profile

OOM_CHECK_SECONDS, OOM_CHECKS = 0.002, 250
"""Interval in seconds, and number, of checks for an OOM kill after the kernel reported memory exhaustion."""
log = logging.getLogger(__name__)


class Backend(ABC):
    """Base class of a sandbox backend, which manages all boxes of one kind; subclasses implement the isolation."""

    name: BackendName

    def __init__(self, host: SandboxHost, *, tasks: Callable[[int], int] = int, together: bool = False) -> None:
        """Creates a backend without boxes. `tasks` maps a guest's process limit to host tasks. With `together`, an OOM
        kill of one process kills the whole box."""
        self._host = host
        self._together = together
        self._tasks = tasks
        self._boxes: dict[str, ProcessBox] = {}
        self._closed = False

    @abstractmethod
    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """Returns digests of everything that a snapshot of this profile depends on besides its content: program, flags,
        bundle and guest root. Raises RefusedError if the backend cannot restore snapshots."""

    @abstractmethod
    def start(self, profile: Profile, image: Path | None, done: Callable[[ProcessBox | SandboxError], None]) -> None:
        """Starts a new box, fresh or from a folder filled by `checkpoint`. Its worker soon sends READY, or answers
        PING.

        Calls back with an InfrastructureError if it did not start, a RefusedError if it may not.
        """

    @abstractmethod
    def checkpoint(
        self, box: ProcessBox, folder: Path, *, done: Callable[[SandboxError | None], None], settled: bool = False
    ) -> None:
        """Saves a running box's state into an empty folder; the box continues. The caller ensures that no call is
        running. With `settled`, calls back only once the box is under its own limits again, which a checkpoint may
        widen."""

    def add(self, profile: Profile) -> ProcessBox:
        """Creates folder, groups and pipes of a new box, without starting anything. Raises InfrastructureError."""
        if self._closed:
            raise InfrastructureError("the sandbox backend is closed")
        name = self._host.new_name()
        folder = self._host.folder / name
        group = None
        try:
            folder.mkdir()
            group = self._host.group(name, profile, pids=self._tasks(profile.pids), together=self._together)
            box = self._boxes[name] = ProcessBox(name, profile, folder, group)
            if self._together:
                self._kill_when_starved(box)
        except (OSError, SandboxError) as error:
            if name in self._boxes:
                self._boxes.pop(name).close()
            if group is not None:
                group.remove()
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, SandboxError):
                raise
            raise InfrastructureError(f"sandbox {name} could not be prepared: {error}", hint=HINT) from error
        return box

    def run(
        self,
        box: ProcessBox,
        argv: Sequence[str],
        *,
        group: ControlGroup,
        seconds: float | None,
        finished: Callable[[int, str], None],
    ) -> None:
        """Runs a program for a box; the first one gets its pipes, later ones none. Killed if stuck for `seconds`.

        `finished` gets the exit status and a problem description.
        """
        first, problem = bool(box.inside), ""
        ours = stderr = -1

        def too_late(why: str) -> None:
            nonlocal problem
            problem = why
            program.process.kill()

        def exited(code: int) -> None:
            if timer is not None:
                timer.cancel()
            box.programs.remove(program)
            output = box.complaint() if first else read_now(ours)[-COMPLAINT:].strip()
            if ours >= 0:
                os.close(ours)
            finished(code, "; ".join(filter(None, (problem, output))) or f"exit status {code}")

        try:
            if first:
                stdin, stdout, stderr = box.inside
            else:
                stdin = stdout = subprocess.DEVNULL
                ours, stderr = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            program = self._host.reaper.start(
                argv, entrances=group.entrances, stdin=stdin, stdout=stdout, stderr=stderr, exited=exited
            )
        except OSError as error:
            if ours >= 0:
                os.close(ours)
            why = str(error)
            self._host.reactor.call(lambda: finished(127, why))
            return
        finally:
            if first:
                box.close_inside()
            elif stderr >= 0:
                os.close(stderr)
        box.programs.append(program)
        timer = SlowTimer(self._host.reactor, box, seconds, too_late) if seconds is not None else None

    def end(self, box: ProcessBox, done: Callable[[BoxUsage], None]) -> None:
        """Kills all inside a box; `done` gets the final usage once nothing runs (some 8 ms). Ending twice is fine."""
        if box.removal is None:
            box.kill()
            if box.oom_events >= 0:
                self._host.reactor.watch(box.oom_events, 0, lambda: None)
            box.close()
            box.removal = self._host.background(box.remove, lambda finished: self._ended(box, finished, done))
        else:
            box.removal.add_done_callback(
                lambda finished: self._host.reactor.call(lambda: done(last_figures(finished)))
            )

    def close(self) -> None:
        """Ends every box and waits until nothing is left of any; on the reactor's thread, or after it stopped. Closing
        twice is fine. Raises InfrastructureError if something cannot be removed."""
        self._closed = True
        boxes = list(self._boxes.values())
        for box in boxes:
            self.end(box, lambda _: None)
        problems = []
        for box in boxes:
            assert box.removal is not None
            try:
                box.removal.exception(timeout=2 * REMOVE_SECONDS)
                box.remove()
                self._boxes.pop(box.id, None)
            except (OSError, TimeoutError, InfrastructureError) as error:
                problems.append(f"{box.id}: {error}")
        if problems:
            raise InfrastructureError(
                f"sandboxes could not be removed: {'; '.join(problems)}",
                hint="Restart the broker, which sweeps them; if that fails, look for unkillable processes.",
            )

    def _kill_when_starved(self, box: ProcessBox) -> None:
        """Kills the whole box after an OOM kill of one process, if the kernel does not do so itself. The final usage
        then shows the cause. Raises InfrastructureError."""
        box.oom_events = box.group.oom_events()
        reactor = self._host.reactor

        def check(checks: int) -> None:
            if box.removal is not None:
                return
            if box.group.usage().oom_kills:
                box.kill()
            elif checks:
                reactor.after(OOM_CHECK_SECONDS, lambda: check(checks - 1))

        def starved() -> None:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(box.oom_events)
            check(OOM_CHECKS)

        if box.oom_events >= 0:
            reactor.watch(box.oom_events, selectors.EVENT_READ, starved)

    def _ended(self, box: ProcessBox, finished: Future[BoxUsage], done: Callable[[BoxUsage], None]) -> None:
        self._host.reaper.adopt()
        problem = finished.exception()
        if problem is None:
            self._boxes.pop(box.id, None)
        else:
            log.error("sandbox %s could not be removed: %s", box.id, problem)
        done(last_figures(finished))


def last_figures(finished: Future[BoxUsage]) -> BoxUsage:
    return BoxUsage() if finished.exception() is not None else finished.result()
