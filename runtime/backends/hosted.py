"""Boxes as the host holds them, whatever isolates them: pipes, groups, programs, a folder, and one way to end.

What always holds: `end` kills at once and answers when nothing of the box runs any more, with the kernel's last
figures; then no process, group, folder or descriptor of it is left. What will not go is logged, stays listed, and is
tried again by `close`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from runtime.backends.backend import BoxUsage
from runtime.backends.cgroups import Group
from runtime.backends.reaper import Program
from runtime.backends.site import Site
from runtime.errors import InfrastructureError, SandboxError
from runtime.profile import Profile

REMOVE_SECONDS = 5.0
OOM_LOOK_SECONDS, OOM_LOOKS = 0.002, 250
"""How often it is asked whether the kernel, which has told that memory is used up, has killed somebody for it."""
SAID_BYTES = 1 << 14
COMPLAINT = 600
"""Characters."""
HINT = "Free some disk space, allow more open files to the broker (LimitNOFILE), or use fewer sandboxes."
log = logging.getLogger(__name__)


class HostedBox:
    """A box with three pipes: requests, replies, and what the program that isolates it says."""

    def __init__(self, name: str, profile: Profile, folder: Path, group: Group) -> None:
        """Raises OSError without descriptors."""
        self.id = name
        self.profile = profile
        self.folder = folder
        self.group = group
        self.programs: list[Program] = []
        """Those that have not ended."""
        self.ending: Future[BoxUsage] | None = None
        self._said = ""
        made: list[int] = []
        try:
            for _ in range(3):
                made += os.pipe2(os.O_CLOEXEC)
        except OSError:
            for descriptor in made:
                os.close(descriptor)
            raise
        self.inside = [made[0], made[3], made[5]]
        """The other ends: standard input, output and error of the first program; closed here once it has them."""
        self.requests, self.replies, self._complaints = made[1], made[2], made[4]
        self.oom_events = -1
        """Can be read when there is no memory left; -1 where the kernel kills all of the box itself."""
        self.overdrawn = False
        """It was killed for memory by us and not by the kernel; its figures count that as one more."""
        for descriptor in (self.requests, self.replies, self._complaints):
            os.set_blocking(descriptor, False)

    def complaint(self) -> str:
        """The end of what the program said on its own. Hostile text: a guest may write there too."""
        if self._complaints >= 0:
            self._said = (self._said + read_now(self._complaints))[-COMPLAINT:]
        return self._said.strip()

    def close_inside(self) -> None:
        while self.inside:
            os.close(self.inside.pop())

    def kill(self) -> None:
        """Kills all that runs for it. What has used up its share of the processors could not even end before its next
        turn, so it has all of them from now on."""
        for program in self.programs:
            program.kill()
        self.group.kill()
        with contextlib.suppress(InfrastructureError):  # then it takes a little longer
            self.group.give_way(False)
            self.group.limit_cpus(float(os.cpu_count() or 1))

    def usage(self, *, waits: bool = False) -> BoxUsage:
        """What its groups have counted."""
        found = self.group.usage(waits=waits)
        return found.model_copy(update={"oom_kills": found.oom_kills + 1}) if self.overdrawn else found

    def close(self) -> None:
        """Closes its descriptors; what was said stays known."""
        self.complaint()
        self.close_inside()
        for descriptor in (self.requests, self.replies, self._complaints, self.oom_events):
            if descriptor >= 0:
                os.close(descriptor)
        self.requests = self.replies = self._complaints = self.oom_events = -1

    def remove(self) -> BoxUsage:
        """Waits until the killed box is empty, reads its figures, removes its groups and its folder. Blocks, some 5 ms.

        Raises InfrastructureError when something will not go.
        """
        deadline = time.monotonic() + REMOVE_SECONDS
        while self.group.members() and time.monotonic() < deadline:
            time.sleep(0.001)
            self.group.kill()
        last = self.usage()
        self.group.remove()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.folder)
        return last


class Boxes:
    """All boxes of one backend. Called, and calls back, on the reactor's thread."""

    def __init__(self, site: Site, *, tasks: Callable[[int], int] = int, together: bool = False) -> None:
        """`tasks`: how many processes and threads of the host it takes to have so many in a guest. `together`: where
        the kernel kills one process of a box for memory, all of it is killed."""
        self._site = site
        self._together = together
        self._tasks = tasks
        self._boxes: dict[str, HostedBox] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._boxes)

    def add(self, profile: Profile) -> HostedBox:
        """Folder, groups and pipes of a new box, in which nothing runs yet. Raises InfrastructureError."""
        if self._closed:
            raise InfrastructureError("the sandbox backend is closed")
        name = self._site.new_name()
        folder = self._site.folder / name
        group = None
        try:
            folder.mkdir()
            group = self._site.group(name, profile, pids=self._tasks(profile.pids), together=self._together)
            box = self._boxes[name] = HostedBox(name, profile, folder, group)
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
        box: HostedBox,
        argv: Sequence[str],
        *,
        group: Group,
        seconds: float | None,
        finished: Callable[[int, str], None],
    ) -> None:
        """Runs a program for a box: the first one gets its pipes, later ones none. Killed after so many seconds.

        `finished` gets its exit status and what there is to complain about.
        """
        first, problem = bool(box.inside), ""
        ours = -1
        try:
            if first:
                stdin, stdout, stderr = box.inside
            else:
                stdin = stdout = subprocess.DEVNULL
                ours, stderr = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            why = str(error)
            self._site.reactor.call(lambda: finished(127, why))
            return

        def too_late() -> None:
            nonlocal problem
            problem = f"no end after {seconds:.0f} s"
            program.kill()

        def exited(code: int) -> None:
            if timer is not None:
                timer.cancel()
            box.programs.remove(program)
            said = box.complaint() if first else read_now(ours)[-COMPLAINT:].strip()
            if ours >= 0:
                os.close(ours)
            finished(code, "; ".join(filter(None, (problem, said))) or f"exit status {code}")

        try:
            program = self._site.reaper.start(
                argv, entrances=group.entrances, stdin=stdin, stdout=stdout, stderr=stderr, exited=exited
            )
        except OSError as error:
            if ours >= 0:
                os.close(ours)
            why = str(error)
            self._site.reactor.call(lambda: finished(127, why))
            return
        finally:
            if first:
                box.close_inside()
            else:
                os.close(stderr)
        box.programs.append(program)
        timer = self._site.reactor.after(seconds, too_late) if seconds is not None else None

    def end(self, box: HostedBox, done: Callable[[BoxUsage], None]) -> None:
        """Kills everything inside; calls back when nothing of it runs any more. Ending twice is fine."""
        if box.ending is None:
            box.kill()
            if box.oom_events >= 0:
                self._site.reactor.watch(box.oom_events, 0, lambda: None)
            box.close()
            box.ending = self._site.background(box.remove, lambda finished: self._ended(box, finished, done))
        else:
            box.ending.add_done_callback(lambda finished: self._site.reactor.call(lambda: done(last_figures(finished))))

    def close(self) -> None:
        """Ends every box and waits until nothing is left. Closing twice is fine.

        Raises InfrastructureError when something will not go.
        """
        self._closed = True
        boxes = list(self._boxes.values())
        for box in boxes:
            self.end(box, lambda _: None)
        problems = []
        for box in boxes:
            assert box.ending is not None
            try:
                box.ending.exception(timeout=2 * REMOVE_SECONDS)
                box.remove()
                self._boxes.pop(box.id, None)
            except (OSError, TimeoutError, InfrastructureError) as error:
                problems.append(f"{box.id}: {error}")
        if problems:
            raise InfrastructureError(
                f"sandboxes could not be removed: {'; '.join(problems)}",
                hint="The next start sweeps them; if that fails too, look for processes that cannot be killed.",
            )

    def _kill_when_starved(self, box: HostedBox) -> None:
        """Has all of the box killed once the kernel has killed a process of it for memory, where it does not do so
        itself. Its last figures then tell why it ended. Raises InfrastructureError."""
        box.oom_events = box.group.oom_events()
        reactor = self._site.reactor

        def look(looks: int) -> None:
            if box.ending is not None:
                return
            if box.group.oom_kills():
                box.kill()
            elif looks:
                reactor.after(OOM_LOOK_SECONDS, lambda: look(looks - 1))

        def told() -> None:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(box.oom_events)
            look(OOM_LOOKS)

        if box.oom_events >= 0:
            reactor.watch(box.oom_events, selectors.EVENT_READ, told)

    def _ended(self, box: HostedBox, finished: Future[BoxUsage], done: Callable[[BoxUsage], None]) -> None:
        self._site.reaper.adopt()
        problem = finished.exception()
        if problem is None:
            self._boxes.pop(box.id, None)
        else:
            log.error("sandbox %s could not be removed: %s", box.id, problem)
        done(last_figures(finished))


def last_figures(finished: Future[BoxUsage]) -> BoxUsage:
    return BoxUsage() if finished.exception() is not None else finished.result()


def read_now(descriptor: int) -> str:
    """What waits in a pipe, up to SAID_BYTES."""
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, SAID_BYTES).decode(errors="replace")
    return ""
