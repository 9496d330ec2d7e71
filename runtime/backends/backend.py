"""Defines what the broker asks of what isolates: one sandbox is started, frozen, ended.

Everything here is called, and calls back, on the broker's reactor thread; nothing blocks for more than a few
milliseconds. What always holds: a box is in control groups of its own before it runs an instruction; `end` leaves no
process, mount, group, folder or descriptor of it; what a backend cannot do it refuses with RefusedError, never by doing
less. What will not go is logged, stays listed, and is tried again by `close`.
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
from runtime.backends.process_box import COMPLAINT, HINT, REMOVE_SECONDS, ProcessBox, read_now
from runtime.errors import InfrastructureError, SandboxError
from runtime.profile import BackendName, BoxUsage, Profile

OOM_CHECK_SECONDS, OOM_CHECKS = 0.002, 250
"""How often it is asked whether the kernel, which has told that memory is used up, has killed somebody for it."""
log = logging.getLogger(__name__)


class Backend(ABC):
    """Starts, freezes and ends all boxes of one kind. The tenants say how; what all have in common is here."""

    name: BackendName

    def __init__(self, host: SandboxHost, *, tasks: Callable[[int], int] = int, together: bool = False) -> None:
        """Begins with no box. `tasks`: how many processes and threads of the host it takes to have so many in a guest.
        `together`: where the kernel kills one process of a box for memory, all of it is killed."""
        self._host = host
        self._together = together
        self._tasks = tasks
        self._boxes: dict[str, ProcessBox] = {}
        self._closed = False

    @abstractmethod
    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """Names what a snapshot of such a box depends on besides its content: digests of the program, its flags, the
        bundle and the guest's root. Raises RefusedError when the backend cannot restore anything."""

    @abstractmethod
    def start(self, profile: Profile, image: Path | None, done: Callable[[ProcessBox | SandboxError], None]) -> None:
        """Starts a new box, from a folder that `checkpoint` filled, or cold. Its worker says READY, or answers PING,
        soon.

        Calls back with an InfrastructureError when it did not start, a RefusedError when it may not.
        """

    @abstractmethod
    def checkpoint(
        self, box: ProcessBox, folder: Path, *, done: Callable[[SandboxError | None], None], settled: bool = False
    ) -> None:
        """Freezes the box into an empty folder; it goes on. The caller sees to it that no call is under way. `settled`:
        calls back no sooner than the box is under its own limits again, which a checkpoint may have widened."""

    def add(self, profile: Profile) -> ProcessBox:
        """Makes folder, groups and pipes of a new box, in which nothing runs yet. Raises InfrastructureError."""
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
        """Runs a program for a box: the first one gets its pipes, later ones none. Killed after so many seconds.

        `finished` gets its exit status and what there is to complain about.
        """
        first, problem = bool(box.inside), ""
        ours = stderr = -1

        def too_late() -> None:
            nonlocal problem
            problem = f"no end after {seconds:.0f} s"
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
        timer = self._host.reactor.after(seconds, too_late) if seconds is not None else None

    def end(self, box: ProcessBox, done: Callable[[BoxUsage], None]) -> None:
        """Kills everything inside; the last figures come when nothing of it runs any more (some 8 ms). Ending twice is
        fine."""
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
        """Ends every box and waits until nothing is left; on the reactor's thread, or once it has stopped. Closing
        twice is fine. Raises InfrastructureError when something will not go."""
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
                hint="The next start sweeps them; if that fails too, look for processes that cannot be killed.",
            )

    def _kill_when_starved(self, box: ProcessBox) -> None:
        """Has all of the box killed once the kernel has killed a process of it for memory, where it does not do so
        itself. Its last figures then tell why it ended. Raises InfrastructureError."""
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
