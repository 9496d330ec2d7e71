"""The gVisor backend: boxes started, frozen into images, restored from them, measured and ended.

What always holds:
- Every runsc, and all that comes from it, is in limited control groups of the box from before its first instruction.
- Boxes run detached: no runsc waits beside them. The site's reaper waits for what they leave; if this process is
  killed, its keeper kills them, and the next start sweeps their folders.
- A box of which the kernel has killed one process for memory ends whole: gVisor may wait for that process without end
  (it did in 1 % of such calls).
- An image is used with the very bundle, flags and runsc that made it; `image_parts` names all three.
Not promised: protection against side channels of the processor (gVisor, security model).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from runtime.backends.backend import Box, BoxUsage
from runtime.backends.bundle import config
from runtime.backends.cgroups import Group
from runtime.backends.gvisor_find import RUNSC_HINT, Digest, find_runsc
from runtime.backends.hosted import HINT, Boxes, HostedBox
from runtime.backends.rootfs import ensure_root
from runtime.backends.site import Site
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.profile import BackendName, Profile
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

FLAGS = ("--network=none", "--platform=systrap", "--overlay2=none", "--ignore-cgroups")
START_SECONDS = 20.0
CHECKPOINT_SECONDS = 60.0
LOWER_SECONDS = 10.0
OVERDRAWN = 1.05
"""Limits of memory, without cached files: a box that has more than this after a checkpoint has used its room."""
IMAGE_HINT = "A fresh sandbox may still work; forget this snapshot."
FREEZE_HINT = "Free disk space where snapshots are kept."
NO_IMAGES = RefusedError("a program of the host is not frozen", hint="Snapshots are of the guests' Python.")
log = logging.getLogger(__name__)


def host_tasks(pids: int) -> int:
    """How many tasks of the host gVisor takes for so many of a guest: 25 of its own and up to 3 for each, with room.

    The guest's own limit has to come first, as an error of its fork; where the host's does, gVisor dies.
    """
    return 4 * pids + 64


class GVisor:
    """Everything but the constructor is called, and calls back, on the reactor's thread."""

    name = BackendName.GVISOR

    def __init__(self, settings: BrokerSettings, reactor: Reactor, site: Site) -> None:
        """Builds the guest's root when it is not there yet (a second). Raises RefusedError without a usable runsc or
        Python, InfrastructureError when the disk does not take the root."""
        self._settings = settings
        self._reactor = reactor
        self._site = site
        self.runsc = find_runsc(settings.runsc)
        self._digest = Digest(self.runsc)
        self._digest()
        self._root = self._ensure_root()
        self._boxes = Boxes(site, tasks=host_tasks, together=True)
        self._bundles: dict[Profile, Path] = {}
        self._cores = float(os.cpu_count() or 1)

    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """What an image depends on besides the state in it; about 40 ms at first. RefusedError when runsc is gone, and
        for programs, which always start fresh: what they are made of may change on the host."""
        if profile.program is not None:
            raise NO_IMAGES
        bundle = json.dumps(config(profile, Path("/")), sort_keys=True)
        return (
            self.name.value,
            self._digest(),
            " ".join(FLAGS),
            hashlib.sha256(bundle.encode()).hexdigest(),
            self._root.name,
        )

    def start(self, profile: Profile, image: Path | None, done: Callable[[Box | SandboxError], None]) -> None:
        """A new box, cold or from an image; calls back when runsc has done its part (some 80 ms), or failed."""
        if self._root.is_dir():
            self._start(profile, image, done)
            return

        def built(finished: Future[Path]) -> None:
            problem = finished.exception()
            if problem is None:
                self._start(profile, image, done)
            else:
                done(problem if isinstance(problem, SandboxError) else InfrastructureError(str(problem), hint=HINT))

        self._site.background(self._ensure_root, built)  # somebody has tidied up

    def _start(self, profile: Profile, image: Path | None, done: Callable[[Box | SandboxError], None]) -> None:
        try:
            bundle = self._bundle(profile)
            box = self._boxes.add(profile)
        except SandboxError as error:
            done(error)
            return
        what = ["run"] if image is None else ["restore", "--image-path", str(image)]
        argv = [*what, "--detach", "--bundle", str(bundle), box.id]

        def started(code: int, problem: str) -> None:
            if code == 0 and box.ending is None:
                done(box)
                return
            action, hint = ("started", RUNSC_HINT) if image is None else ("restored", IMAGE_HINT)
            failure = InfrastructureError(f"sandbox {box.id} could not be {action}: {problem}", hint=hint)
            self._boxes.end(box, lambda _: done(failure))

        self._run(box, argv, box.group, START_SECONDS, started)

    def checkpoint(
        self,
        box: Box,
        folder: Path,
        *,
        leave_running: bool,
        done: Callable[[SandboxError | None], None],
        settled: bool = False,
    ) -> None:
        """Freezes the box into an empty folder on a disk, about 40 ms; it runs on, or has ended.

        The kernel counts the image, as cached files, to the box that writes it. So the box has room for it meanwhile,
        and goes back to its own limit afterwards, in the background: after `done`, unless `settled`.
        InfrastructureError when the disk does not take the image.
        """
        assert isinstance(box, HostedBox)
        go_on = ["--leave-running"] if leave_running else []
        argv = ["checkpoint", "--image-path", str(folder), "--compression", "none", *go_on, box.id]

        def finished(code: int, problem: str) -> None:
            error = InfrastructureError(f"sandbox {box.id} could not be frozen: {problem}", hint=FREEZE_HINT)
            answer = partial(done, None if code == 0 else error)
            if settled:
                self._take_room_back(box, answer)
            else:
                self._take_room_back(box, lambda: None)
                answer()

        try:
            group = self._site.tools()
            box.group.limit_memory(2 * box.profile.memory_mib)
        except InfrastructureError as error:
            done(error)
            return
        self._run(box, argv, group, CHECKPOINT_SECONDS, finished)

    def usage(self, box: Box, *, waits: bool = False) -> BoxUsage:
        assert isinstance(box, HostedBox)
        return box.usage(waits=waits)

    def give_way(self, box: Box, others_first: bool) -> None:
        assert isinstance(box, HostedBox)
        box.group.give_way(others_first)

    def end(self, box: Box, done: Callable[[BoxUsage], None]) -> None:
        """Kills everything inside; the figures come when nothing of it runs any more (some 8 ms)."""
        assert isinstance(box, HostedBox)
        self._boxes.end(box, done)

    def close(self) -> None:
        """Ends every box and waits until nothing is left. Closing twice is fine.

        On the reactor's thread, or when it has stopped. Raises InfrastructureError when something will not go.
        """
        self._boxes.close()

    def _ensure_root(self) -> Path:
        return ensure_root(self._settings.root_dir, self._settings.python, self._settings.packages).resolve()

    def _take_room_back(self, box: HostedBox, done: Callable[[], None]) -> None:
        """A box that cannot go back to its own limit is killed for memory: it used the room for itself, or its image
        lies in memory and not on a disk. Who holds the box sees it end as by itself, and ends it."""

        def lower() -> None:
            deadline = time.monotonic() + LOWER_SECONDS
            while box.ending is None:
                try:
                    box.group.limit_memory(box.profile.memory_mib)
                except InfrastructureError:
                    too_much = box.group.usage().memory_mib > OVERDRAWN * box.profile.memory_mib
                    if too_much or time.monotonic() > deadline:
                        raise
                    time.sleep(0.2)
                else:
                    break

        def lowered(finished: Future[None]) -> None:
            problem = finished.exception()
            if problem is not None and box.ending is None:
                log.error("sandbox %s is killed, its memory cannot be limited again: %s", box.id, problem)
                box.overdrawn = True
                box.kill()
            done()

        if box.ending is None:
            self._site.background(lower, lowered)
        else:
            done()

    def _bundle(self, profile: Profile) -> Path:
        """The folder with the configuration that boxes of this profile share. Raises InfrastructureError."""
        if profile not in self._bundles:
            folder = self._site.folder / "bundles" / str(len(self._bundles))
            try:
                program = self._settings.program(profile.program)
                root = self._root if program is None else folder / "root"  # runsc makes its mounts' places in there
                root.mkdir(parents=True, exist_ok=True)
                folder.mkdir(parents=True, exist_ok=True)
                bundle = config(profile, root, program)
                (folder / "config.json").write_text(json.dumps(bundle))
            except OSError as error:
                raise InfrastructureError(f"{folder} could not be written: {error}", hint=HINT) from error
            self._bundles[profile] = folder
        return self._bundles[profile]

    def _run(
        self, box: HostedBox, argv: list[str], group: Group, seconds: float, finished: Callable[[int, str], None]
    ) -> None:
        """One runsc for a box, which has all processors meanwhile: its guest waits, and so does who wants it."""

        def at_its_share(code: int, problem: str) -> None:
            try:
                if box.ending is None:
                    box.group.limit_cpus(box.profile.cpus)
            except InfrastructureError as error:
                code, problem = code or 126, str(error)
                box.kill()
            finished(code, problem)

        if box.profile.cpus < self._cores:
            try:
                box.group.limit_cpus(self._cores)
            except InfrastructureError as error:
                finished(126, str(error))
                return
        whole = [str(self.runsc), "--root", str(box.folder / "s"), *FLAGS, *argv]
        self._boxes.run(box, whole, group=group, seconds=seconds, finished=at_its_share)
