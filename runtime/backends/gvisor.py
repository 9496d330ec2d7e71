"""gVisor backend: starts, freezes, restores, measures and ends boxes.

Invariants:

- Every runsc and its descendants are in limited control groups of the box before their first instruction.
- Boxes run detached: no runsc waits beside them. The host's reaper waits for their orphans; if this process is killed,
  its keeper kills them, and the next start sweeps their folders.
- An OOM kill of one process ends the whole box, because gVisor may otherwise hang (it did in 1 % of such calls).
- An image is used only with the exact bundle, flags and runsc that made it; `image_parts` names all three.

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

from runtime.backends.backend import Backend
from runtime.backends.bundle import config
from runtime.backends.cgroups import ControlGroup
from runtime.backends.host import SandboxHost
from runtime.backends.locate import RUNSC_HINT, digest, find_runsc
from runtime.backends.packages import find_set
from runtime.backends.process_box import HINT, ProcessBox
from runtime.backends.rootfs import ensure_root, root_folder
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.profile import BackendName, Profile
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

FLAGS = ("--network=none", "--platform=systrap", "--overlay2=none", "--ignore-cgroups")
START_SECONDS = 20.0
CHECKPOINT_SECONDS = 60.0
LOWER_SECONDS = 10.0
OVERDRAWN = 1.05
"""Factor of the memory limit, without cached files, above which a box has used the extra room of a checkpoint."""
IMAGE_HINT = "A fresh sandbox may still work; forget this snapshot."
FREEZE_HINT = "Free disk space where snapshots are kept."
NO_IMAGES = RefusedError("a host program cannot be frozen", hint="Take snapshots of guests with Python only.")
log = logging.getLogger(__name__)


def host_tasks(pids: int) -> int:
    """Returns the host tasks that gVisor needs for `pids` of a guest: 25 of its own and up to 3 each, with margin.

    The guest's own limit must be hit first, as an error of its fork; at the host's limit gVisor dies.
    """
    return 4 * pids + 64


class GVisor(Backend):
    """Sandbox backend that uses gVisor. All but the constructor is called, and calls back, on the reactor's thread."""

    name = BackendName.GVISOR

    def __init__(self, settings: BrokerSettings, reactor: Reactor, host: SandboxHost) -> None:
        """Creates the gVisor backend; builds the guest's root if missing (a second). Raises RefusedError without a
        usable runsc or Python, InfrastructureError on a disk error."""
        self._settings = settings
        self._reactor = reactor
        super().__init__(host, tasks=host_tasks, together=True)
        self.runsc = find_runsc(settings.runsc)
        digest(self.runsc)
        self._roots = {(False, ""): self._ensure_root(False, "")}
        """Roots by userland flag and package set; all but the plain one are built on demand."""
        self._bundles: dict[Profile, Path] = {}
        self._cores = float(os.cpu_count() or 1)

    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """Returns digests of everything an image of this profile depends on besides its state; about 40 ms at first.
        Raises RefusedError without runsc, and for programs, which always start fresh because their files may change on
        the host."""
        if profile.program is not None:
            raise NO_IMAGES
        bundle = json.dumps(config(profile, Path("/")), sort_keys=True)
        return (
            self.name.value,
            digest(self.runsc),
            " ".join(FLAGS),
            hashlib.sha256(bundle.encode()).hexdigest(),
            self._root_of(profile).name,
        )

    def start(self, profile: Profile, image: Path | None, done: Callable[[ProcessBox | SandboxError], None]) -> None:
        """Starts a gVisor box, fresh or from an image; calls back when runsc has finished (some 80 ms) or failed."""
        try:
            is_built = self._root_of(profile).is_dir()
        except RefusedError as problem:
            done(problem)
            return
        if is_built:
            self._start(profile, image, done)
            return

        def built(finished: Future[Path]) -> None:
            problem = finished.exception()
            if problem is None:
                self._start(profile, image, done)
            else:
                done(problem if isinstance(problem, SandboxError) else InfrastructureError(str(problem), hint=HINT))

        self._host.background(
            partial(self._ensure_root, profile.userland, profile.packages or ""), built
        )  # built on first use, or rebuilt after a cleanup

    def _start(self, profile: Profile, image: Path | None, done: Callable[[ProcessBox | SandboxError], None]) -> None:
        try:
            bundle = self._bundle(profile)
            box = self.add(profile)
        except SandboxError as error:
            done(error)
            return
        what = ["run"] if image is None else ["restore", "--image-path", str(image)]
        argv = [*what, "--detach", "--bundle", str(bundle), box.id]

        def started(code: int, problem: str) -> None:
            if code == 0 and box.removal is None:
                done(box)
                return
            action, hint = ("started", RUNSC_HINT) if image is None else ("restored", IMAGE_HINT)
            failure = InfrastructureError(f"sandbox {box.id} could not be {action}: {problem}", hint=hint)
            self.end(box, lambda _: done(failure))

        self._run(box, argv, box.group, START_SECONDS, started)

    def checkpoint(
        self, box: ProcessBox, folder: Path, *, done: Callable[[SandboxError | None], None], settled: bool = False
    ) -> None:
        """Saves a box's state into an empty folder on disk, about 40 ms; the box continues.

        The kernel charges the image, as cached files, to the box that writes it. So the box gets extra memory
        meanwhile, and returns to its own limit in the background: after `done`, unless `settled`. InfrastructureError
        on a disk error.
        """
        argv = ["checkpoint", "--image-path", str(folder), "--compression", "none", "--leave-running", box.id]

        def finished(code: int, problem: str) -> None:
            error = InfrastructureError(f"sandbox {box.id} could not be frozen: {problem}", hint=FREEZE_HINT)
            answer = partial(done, None if code == 0 else error)
            if settled:
                self._take_room_back(box, answer)
            else:
                self._take_room_back(box, lambda: None)
                answer()

        try:
            group = self._host.tools()
            box.group.limit_memory(2 * box.profile.memory_mib)
        except InfrastructureError as error:
            done(error)
            return
        self._run(box, argv, group, CHECKPOINT_SECONDS, finished)

    def _ensure_root(self, programs: bool, packages: str) -> Path:
        settings = self._settings
        folder = find_set(packages, settings.package_sets) if packages else settings.packages
        return ensure_root(settings.root_dir, settings.python, folder, programs=programs).resolve()

    def _root_of(self, profile: Profile) -> Path:
        """Returns the path of the guest root for a profile, built or not. Raises RefusedError without programs for a
        userland, or for an unknown package set."""
        kind = (profile.userland, profile.packages or "")
        if kind not in self._roots:
            settings = self._settings
            folder = find_set(profile.packages, settings.package_sets) if profile.packages else settings.packages
            wanted = root_folder(settings.root_dir, settings.python, folder, programs=profile.userland)
            self._roots[kind] = wanted.resolve()
        return self._roots[kind]

    def _take_room_back(self, box: ProcessBox, done: Callable[[], None]) -> None:
        """Restores the box's memory limit after a checkpoint, or kills the box if that fails.

        Failure means the guest used the extra room, or the image is in memory instead of on disk. To its holder the box
        appears to end by itself.
        """

        def lower() -> None:
            deadline = time.monotonic() + LOWER_SECONDS
            while box.removal is None:
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
            if problem is not None and box.removal is None:
                log.error("sandbox %s is killed, because its memory limit cannot be restored: %s", box.id, problem)
                box.overdrawn = True
                box.kill()
            done()

        if box.removal is None:
            self._host.background(lower, lowered)
        else:
            done()

    def _bundle(self, profile: Profile) -> Path:
        """Writes and returns the OCI configuration folder of this profile's boxes. Raises InfrastructureError."""
        if profile not in self._bundles:
            folder = self._host.folder / "bundles" / str(len(self._bundles))
            try:
                program = self._settings.program(profile.program)
                # runsc creates a program's mount points in there
                root = self._root_of(profile) if program is None else folder / "root"
                root.mkdir(parents=True, exist_ok=True)
                folder.mkdir(parents=True, exist_ok=True)
                bundle = config(profile, root, program)
                (folder / "config.json").write_text(json.dumps(bundle))
            except OSError as error:
                raise InfrastructureError(f"{folder} could not be written: {error}", hint=HINT) from error
            self._bundles[profile] = folder
        return self._bundles[profile]

    def _run(
        self,
        box: ProcessBox,
        argv: list[str],
        group: ControlGroup,
        seconds: float,
        finished: Callable[[int, str], None],
    ) -> None:
        """Runs one runsc command for a box with all CPUs, because guest and caller wait for it."""

        def at_its_share(code: int, problem: str) -> None:
            try:
                if box.removal is None:
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
        self.run(box, whole, group=group, seconds=seconds, finished=at_its_share)
