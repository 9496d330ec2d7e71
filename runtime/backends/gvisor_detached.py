"""The gVisor backend: boxes started, frozen into images, restored from them, measured and ended.

What always holds:
- Every runsc, and all that comes from it, is in a limited control group of the box from before its first instruction.
- Boxes run detached: no runsc waits beside them. This process is their subreaper and waits for every one of them; if it
  is killed, its keeper kills them, and the next start sweeps their folders.
- An image is used with the very bundle, flags and runsc that made it; `image_parts` names all three.
Not promised: protection against side channels of the processor (gVisor, security model).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from runtime.backends.backend import Box, BoxUsage
from runtime.backends.bundle import config
from runtime.backends.cgroups import Group, remove_folders
from runtime.backends.gvisor_find import RUNSC_HINT, Digest, find_runsc
from runtime.backends.reaper import Program
from runtime.backends.rootfs import ensure_root
from runtime.backends.site import Site
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.profile import BackendName, Profile
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

FLAGS = ("--network=none", "--platform=systrap", "--overlay2=none", "--ignore-cgroups")
START_SECONDS = 20.0
CHECKPOINT_SECONDS = 60.0
REMOVE_SECONDS = 5.0
COMPLAINT_BYTES = 1 << 14
PIPE_HINT = "Allow more open files to the broker (LimitNOFILE), or fewer sandboxes."


class GVisorBox:
    """A started sandbox: two pipes to its worker, one from runsc, its groups and its folder."""

    def __init__(self, name: str, profile: Profile, folder: Path, group: Group) -> None:
        """Raises OSError without descriptors."""
        self.id = name
        self.profile = profile
        self.folder = folder
        self.group = group
        self.programs: list[Program] = []
        """Runs of runsc that have not ended."""
        self.ending: Future[None] | None = None
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
        """The other ends: standard input, output and error of runsc."""
        self.requests, self.replies, self._complaints = made[1], made[2], made[4]
        for descriptor in (self.requests, self.replies, self._complaints):
            os.set_blocking(descriptor, False)

    def close_inside(self) -> None:
        while self.inside:
            os.close(self.inside.pop())

    def complaint(self) -> str:
        """The end of what runsc itself said, for the person who has to repair it."""
        if self._complaints >= 0:
            with contextlib.suppress(BlockingIOError):
                self._said += os.read(self._complaints, COMPLAINT_BYTES).decode(errors="replace")
        return self._said.strip()[-600:]

    def close(self) -> None:
        self.close_inside()
        self.complaint()
        for descriptor in (self.requests, self.replies, self._complaints):
            os.close(descriptor)
        self.requests = self.replies = self._complaints = -1


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
        self._root = ensure_root(settings.root_dir, settings.python).resolve()
        self._boxes: dict[str, GVisorBox] = {}
        self._bundles: dict[Profile, Path] = {}
        self._closed = False

    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """What an image depends on besides the state in it; about 40 ms at first. RefusedError when runsc is gone."""
        bundle = json.dumps(config(profile, Path("/")), sort_keys=True)
        return (
            self.name.value,
            self._digest(),
            " ".join(FLAGS),
            hashlib.sha256(bundle.encode()).hexdigest(),
            self._root.name,
        )

    def start(self, profile: Profile, image: Path | None, done: Callable[[Box | SandboxError], None]) -> None:
        """A new box, cold or from an image. Calls back within START_SECONDS."""
        try:
            box = self._prepare(profile)
        except SandboxError as error:
            done(error)
            return
        what = ["run"] if image is None else ["restore", "--image-path", str(image)]
        argv = [*what, "--detach", "--bundle", str(self._bundles[profile]), box.id]

        def started(code: int, problem: str) -> None:
            if code == 0 and box.ending is None:
                done(box)
                return
            action = "started" if image is None else "restored"
            why = box.complaint() or problem
            hint = RUNSC_HINT if image is None else "A fresh sandbox may still work; remove the snapshot."
            self.end(
                box, lambda _: done(InfrastructureError(f"sandbox {box.id} could not be {action}: {why}", hint=hint))
            )

        self._run(box, argv, box.group, START_SECONDS, started)
        box.close_inside()

    def checkpoint(
        self, box: Box, folder: Path, *, leave_running: bool, done: Callable[[SandboxError | None], None]
    ) -> None:
        """Freezes the box into an empty folder, about 50 ms; it runs on, or has ended."""
        assert isinstance(box, GVisorBox)
        go_on = ["--leave-running"] if leave_running else []
        argv = ["checkpoint", "--image-path", str(folder), "--compression", "none", *go_on, box.id]

        def finished(code: int, problem: str) -> None:
            if code == 0:
                done(None)
                return
            why = box.complaint() or problem
            done(
                InfrastructureError(
                    f"sandbox {box.id} could not be frozen: {why}", hint="Free disk space where snapshots are kept."
                )
            )

        self._run(box, argv, self._site.tools(), CHECKPOINT_SECONDS, finished)

    def usage(self, box: Box) -> BoxUsage:
        assert isinstance(box, GVisorBox)
        return box.group.usage()

    def end(self, box: Box, done: Callable[[BoxUsage], None]) -> None:
        """Kills everything inside; the figures come once nothing of it runs any more (some 5 ms)."""
        assert isinstance(box, GVisorBox)
        if box.ending is None:
            self._kill(box)
            box.close()
            last: list[BoxUsage] = []
            box.ending = self._site.background(
                lambda: self._remove(box, last), lambda finished: self._ended(box, finished, last, done)
            )
        else:
            box.ending.add_done_callback(lambda _: self._reactor.call(lambda: done(BoxUsage())))

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
                box.ending.result(timeout=2 * REMOVE_SECONDS)
                self._boxes.pop(box.id, None)
            except (OSError, TimeoutError, InfrastructureError) as error:
                problems.append(f"{box.id}: {error}")
        if problems:
            raise InfrastructureError(
                f"sandboxes could not be removed: {'; '.join(problems)}",
                hint="The next start sweeps them; if that fails too, look for processes that cannot be killed.",
            )

    def _prepare(self, profile: Profile) -> GVisorBox:
        """Folder, groups and pipes of a new box."""
        if self._closed:
            raise RefusedError("the sandbox backend is closed")
        name = self._site.new_name()
        folder = self._site.folder / name
        group = None
        try:
            if profile not in self._bundles:
                self._bundles[profile] = self._write_bundle(profile)
            folder.mkdir()
            group = self._site.group(name, profile)
            box = self._boxes[name] = GVisorBox(name, profile, folder, group)
        except OSError as error:
            if group is not None:
                group.remove()
            shutil.rmtree(folder, ignore_errors=True)
            raise InfrastructureError(f"sandbox {name} could not be prepared: {error}", hint=PIPE_HINT) from error
        except SandboxError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return box

    def _write_bundle(self, profile: Profile) -> Path:
        folder = self._site.folder / f"bundle-{len(self._bundles)}"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config(profile, self._root)))
        return folder

    def _run(
        self, box: GVisorBox, argv: list[str], group: Group, seconds: float, finished: Callable[[int, str], None]
    ) -> None:
        """One runsc for a box, for so long at most; `finished` gets its exit status and what was wrong."""
        problem = "runsc said nothing"

        def too_late() -> None:
            nonlocal problem
            problem = f"no end after {seconds:.0f} s"
            program.kill()

        def exited(code: int) -> None:
            timer.cancel()
            box.programs.remove(program)
            finished(code, problem)

        whole = [str(self.runsc), "--root", str(box.folder / "s"), *FLAGS, *argv]
        stdin, stdout, stderr = box.inside or (subprocess.DEVNULL,) * 3
        try:
            program = self._site.reaper.start(
                whole, entrances=group.entrances, stdin=stdin, stdout=stdout, stderr=stderr, exited=exited
            )
        except OSError as error:
            why = str(error)
            self._reactor.call(lambda: finished(127, why))
            return
        box.programs.append(program)
        timer = self._reactor.after(seconds, too_late)

    def _kill(self, box: GVisorBox) -> None:
        for program in box.programs:
            program.kill()
        box.group.kill()

    def _remove(self, box: GVisorBox, last: list[BoxUsage]) -> None:
        """On another thread: waits until the groups are empty, reads them for the last time, removes all."""
        deadline = time.monotonic() + REMOVE_SECONDS
        while box.group.members() and time.monotonic() < deadline:
            time.sleep(0.001)
            box.group.kill()
        last.append(box.group.usage())
        remove_folders(box.group.folders, seconds=REMOVE_SECONDS)
        shutil.rmtree(box.folder)

    def _ended(
        self, box: GVisorBox, finished: Future[None], last: list[BoxUsage], done: Callable[[BoxUsage], None]
    ) -> None:
        self._site.reaper.adopt()
        if finished.exception() is None:
            self._boxes.pop(box.id, None)
        done(last[0] if last else BoxUsage())
