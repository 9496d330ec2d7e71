"""One box on the host, under any backend: pipes, groups, programs, a folder, and one way to end.

Invariants: once killed and removed, no process, group, folder or descriptor of it is left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from runtime.backends.cgroups import ControlGroup
from runtime.backends.reaper import StartedProgram
from runtime.errors import InfrastructureError
from runtime.profile import BoxUsage, Profile
from runtime.reactor import Reactor

BUSY_SHARE = 0.1
"""Share of an interval below which a box that neither computed nor waited for a CPU counts as stuck: an idle gVisor
uses some CPU for its timers."""
INTERVALS = 10
"""Maximum number of intervals for which a slow box is awaited."""
REMOVE_SECONDS = 5.0
OUTPUT_BYTES = 1 << 14
RESTING_CPUS = 0.01
COMPLAINT = 600
"""Length of the kept error output, in characters."""
HINT = "Free some disk space, allow more open files to the broker (LimitNOFILE), or use fewer sandboxes."


class ProcessBox:
    """Sandbox with three pipes: requests, replies, and the isolating program's error output."""

    def __init__(self, name: str, profile: Profile, folder: Path, group: ControlGroup) -> None:
        """Creates a box that runs nothing yet, and its three pipes. Raises OSError without descriptors."""
        self.id = name
        self.profile = profile
        self.folder = folder
        self.group = group
        self.programs: list[StartedProgram] = []
        """Programs that have not ended."""
        self.removal: Future[BoxUsage] | None = None
        self._output = ""
        made: list[int] = []
        try:
            for _ in range(3):
                made += os.pipe2(os.O_CLOEXEC)
        except OSError:
            for descriptor in made:
                os.close(descriptor)
            raise
        self.inside = [made[0], made[3], made[5]]
        """Other pipe ends: standard input, output and error of the first program; closed here once it has them."""
        self.requests, self.replies, self._complaints = made[1], made[2], made[4]
        self.oom_events = -1
        """Readable when memory is exhausted; -1 if the kernel itself kills the whole box."""
        self.namespace = -1
        """Mount namespace in which it starts, if it has its own; closed with its pipes."""
        self.overdrawn = False
        """True if killed for memory by us instead of the kernel; counted as one more OOM kill."""
        for descriptor in (self.requests, self.replies, self._complaints):
            os.set_blocking(descriptor, False)

    def complaint(self) -> str:
        """Returns the end of the isolating program's own error output. Hostile text: a guest may write there too."""
        if self._complaints >= 0:
            self._output = (self._output + read_now(self._complaints))[-COMPLAINT:]
        return self._output.strip()

    def close_inside(self) -> None:
        while self.inside:
            os.close(self.inside.pop())

    def kill(self) -> None:
        """Kills everything that runs for the box and gives it all CPUs: throttled processes exit only in their turn."""
        for program in self.programs:
            program.process.kill()
        self.group.kill()
        with contextlib.suppress(InfrastructureError):  # then it only takes longer
            self.group.give_way(False)
            self.group.limit_cpus(float(os.cpu_count() or 1))

    def rest(self) -> None:
        """Throttles the box to almost no CPU until `wake`: an idle gVisor uses some for its timers."""
        self._limit_cpus(RESTING_CPUS)

    def wake(self) -> None:
        """Restores the box's CPU limit after `rest`."""
        self._limit_cpus(self.profile.cpus)

    def _limit_cpus(self, cpus: float) -> None:
        with contextlib.suppress(InfrastructureError):  # it has ended, as its pipes show
            self.group.limit_cpus(cpus)

    def usage(self, *, waits: bool = False) -> BoxUsage:
        """Reads the box's resource usage from its control groups."""
        found = self.group.usage(waits=waits)
        return found.model_copy(update={"oom_kills": found.oom_kills + 1}) if self.overdrawn else found

    def close(self) -> None:
        """Closes the box's descriptors; captured error output stays available."""
        self.complaint()
        self.close_inside()
        for descriptor in (self.requests, self.replies, self._complaints, self.oom_events, self.namespace):
            if descriptor >= 0:
                os.close(descriptor)
        self.requests = self.replies = self._complaints = self.oom_events = self.namespace = -1

    def remove(self) -> BoxUsage:
        """Waits until the killed box is empty, removes its groups and folder, and returns its final usage. Blocks some
        5 ms. Raises InfrastructureError if something cannot be removed."""
        deadline = time.monotonic() + REMOVE_SECONDS
        while self.group.members() and time.monotonic() < deadline:
            time.sleep(0.001)
            self.group.kill()
        last = self.usage()
        self.group.remove()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder)
        return last


class SlowTimer:
    """Timer of one step of a box. It expires after an interval in which the box was stuck, and at last in any case: a
    box that computes, or waits for a CPU, is only slow."""

    def __init__(self, reactor: Reactor, box: ProcessBox, seconds: float, expired: Callable[[str], None]) -> None:
        """Starts a step's timer with intervals of `seconds`. `expired` gets the reason, at most once."""
        self._reactor, self._box, self._seconds, self._expired = reactor, box, seconds, expired
        self._before, self._intervals = BoxUsage(), 0
        self._timer = reactor.after(seconds, self._look)

    @property
    def over(self) -> bool:
        """True once the timer was cancelled, or has expired and its owner cancelled it."""
        return self._timer.cancelled

    def cancel(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        self._intervals += 1
        before, now = self._before, self._box.usage(waits=True)
        waited = sum(max(0.0, seconds - before.waits.get(thread, 0.0)) for thread, seconds in now.waits.items())
        busy = now.cpu_seconds - before.cpu_seconds + waited
        slow = busy >= BUSY_SHARE * self._seconds
        if slow and self._intervals < INTERVALS:
            self._before = now
            self._timer = self._reactor.after(self._seconds, self._look)
            return
        state = "it is slow: the machine may be too busy" if slow else "it neither computes nor waits for a CPU"
        self._expired(f"no end after {self._intervals * self._seconds:g} s; {state}")


def read_now(descriptor: int) -> str:
    """Returns the text available in a pipe now, up to OUTPUT_BYTES."""
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, OUTPUT_BYTES).decode(errors="replace")
    return ""
