"""The nsjail backend: boxes on the host's own kernel, behind namespaces, a system-call policy and control groups.

**The host's kernel is shared with the guest.** What gVisor answers in a program of its own, Linux answers here: a flaw
in one of the system calls that the policy allows is a way out. So it is for tools that are trusted more than what a
model wrote, and for machines where gVisor cannot run and the owner has said so.

What always holds:
- nsjail, and so all that comes from it, is in limited control groups of ours before its first instruction.
- A guest's users are users of the host that own nothing, another one for each box.
- The guest's first process ends with nsjail, and everything in its pid namespace with that one. This process waits for
  nsjail; if it is killed, its keeper kills what is in the groups, and the next start sweeps the folders.
- Nothing is mounted or made on the host outside the box's folder.
Not promised: snapshots (refused), protection against flaws of the kernel or side channels of the processor.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from runtime.backends import nsjail_mounts
from runtime.backends.backend import Box, BoxUsage
from runtime.backends.cgroups import remove_folders
from runtime.backends.gvisor_detached import GVisorBox as HostedBox
from runtime.backends.nsjail_find import HINT, find_nsenter, find_nsjail, nsjail_version, require_user_namespaces
from runtime.backends.nsjail_jail import jail
from runtime.backends.rootfs import ensure_root
from runtime.backends.site import Site
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.profile import BackendName, Profile
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

REMOVE_SECONDS = 5.0
FIRST_HOST_ID, HOST_IDS = 1_900_000_000, 200_000_000
"""Users of the host that no distribution gives to anybody (systemd, "Users, Groups, UIDs and GIDs"). One for each box,
because older kernels count the processes of a user over all its namespaces."""
NO_SNAPSHOTS = RefusedError(
    "nsjail cannot freeze a sandbox or restore one",
    hint="Use gVisor for snapshots, branches and rollbacks.",
)


class NsJail:
    """Everything but the constructor is called, and calls back, on the reactor's thread."""

    name = BackendName.NSJAIL

    def __init__(self, settings: BrokerSettings, reactor: Reactor, site: Site) -> None:
        """Builds the guest's root when it is not there yet (a second). Raises RefusedError without a usable nsjail or
        Python, InfrastructureError when the disk does not take the root."""
        self._reactor = reactor
        self._site = site
        self.nsjail = find_nsjail(settings.nsjail)
        nsjail_version(self.nsjail, settings.nsjail)
        require_user_namespaces()
        self._nsenter = find_nsenter()
        self._machine = os.uname().machine
        root = ensure_root(settings.root_dir, settings.python).resolve()
        self._mounts = nsjail_mounts.make(root)
        self._ids = itertools.count(int.from_bytes(os.urandom(4), "little"))
        self._boxes: dict[str, HostedBox] = {}
        self._closed = False

    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """Raises RefusedError: there are no images."""
        raise NO_SNAPSHOTS

    def start(self, profile: Profile, image: Path | None, done: Callable[[Box | SandboxError], None]) -> None:
        """A new box; its worker says READY some 30 ms later. An image is refused."""
        try:
            if image is not None:
                raise NO_SNAPSHOTS
            box = self._prepare(profile)
        except SandboxError as error:
            done(error)
            return
        # nsjail runs in the namespace where its folders are, and finds its configuration through this process
        here = f"/proc/{os.getpid()}"
        program = ["--rw", "--config", f"{here}/root{box.folder}/jail.json"]
        argv = [self._nsenter, f"--mount={here}/fd/{self._mounts}", "--", str(self.nsjail), *program]
        stdin, stdout, stderr = box.inside
        try:
            box.programs.append(
                self._site.reaper.start(
                    argv,
                    entrances=box.group.entrances,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    exited=lambda _: box.programs.clear(),
                )
            )
        except OSError as error:
            problem = InfrastructureError(f"sandbox {box.id} could not be started: {error}", hint=HINT)
            self.end(box, lambda _: done(problem))
            return
        box.close_inside()
        done(box)

    def checkpoint(
        self, box: Box, folder: Path, *, leave_running: bool, done: Callable[[SandboxError | None], None]
    ) -> None:
        """Refused."""
        done(NO_SNAPSHOTS)

    def usage(self, box: Box) -> BoxUsage:
        assert isinstance(box, HostedBox)
        return box.group.usage()

    def end(self, box: Box, done: Callable[[BoxUsage], None]) -> None:
        """Kills everything inside; the figures come once nothing of it runs any more (some 5 ms)."""
        assert isinstance(box, HostedBox)
        if box.ending is not None:
            box.ending.add_done_callback(lambda _: self._reactor.call(lambda: done(BoxUsage())))
            return
        for program in box.programs:
            program.kill()
        box.group.kill()
        box.close()
        last: list[BoxUsage] = []
        box.ending = self._site.background(
            lambda: _remove(box, last), lambda finished: self._ended(box, finished, last, done)
        )

    def close(self) -> None:
        """Ends every box and waits until nothing is left. Closing twice is fine.

        Raises InfrastructureError when something will not go.
        """
        if not self._closed:
            self._closed = True
            os.close(self._mounts)
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

    def _prepare(self, profile: Profile) -> HostedBox:
        """Folder, configuration, groups and pipes of a new box."""
        if self._closed:
            raise RefusedError("the sandbox backend is closed")
        host_id = FIRST_HOST_ID + next(self._ids) % HOST_IDS
        text = jail(profile, host_id=host_id, machine=self._machine)
        name = self._site.new_name()
        folder = self._site.folder / name
        group = None
        try:
            folder.mkdir()
            (folder / "jail.json").write_text(text)
            group = self._site.group(name, profile)
            box = self._boxes[name] = HostedBox(name, profile, folder, group)
        except OSError as error:
            if group is not None:
                group.remove()
            shutil.rmtree(folder, ignore_errors=True)
            raise InfrastructureError(
                f"sandbox {name} could not be prepared: {error}",
                hint="Free disk space in the data folder, or allow more open files to the broker (LimitNOFILE).",
            ) from error
        except SandboxError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return box

    def _ended(
        self, box: HostedBox, finished: Future[None], last: list[BoxUsage], done: Callable[[BoxUsage], None]
    ) -> None:
        self._site.reaper.adopt()
        if finished.exception() is None:
            self._boxes.pop(box.id, None)
        done(last[0] if last else BoxUsage())


def _remove(box: HostedBox, last: list[BoxUsage]) -> None:
    """On another thread: waits until the groups are empty, reads them for the last time, removes all."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while box.group.members() and time.monotonic() < deadline:
        time.sleep(0.001)
        box.group.kill()
    last.append(box.group.usage())
    remove_folders(box.group.folders, seconds=REMOVE_SECONDS)
    shutil.rmtree(box.folder)
