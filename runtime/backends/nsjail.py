"""nsjail backend: boxes on the host's own kernel, behind namespaces, a system-call policy and control groups.

**The host's kernel is shared with the guest.** Linux itself answers the system calls that gVisor handles in a program
of its own: a flaw in an allowed call is a way out. So nsjail is for tools that are trusted more than model code, and
for machines without gVisor whose owner has accepted this.

Invariants:

- nsjail and its descendants are in limited control groups of ours before their first instruction.
- A guest's users map to host users that own nothing, different for each box.
- A box has its own mount namespace to start in, and shares no inode with another box or the host.
- The guest's first process ends with nsjail, and its pid namespace with that process. This process waits for nsjail; if
  it is killed, its keeper kills the groups' processes, and the next start sweeps the folders.
- Nothing is mounted or created on the host outside the box's folder.

Not promised: snapshots (refused), protection against flaws of the kernel or side channels of the processor.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from runtime.backends import nsjail_jail
from runtime.backends.backend import Backend
from runtime.backends.host import SandboxHost
from runtime.backends.locate import find_nsenter, find_nsjail, nsjail_version, require_user_namespaces
from runtime.backends.nsjail_jail import FOLDER, ROOT, jail
from runtime.backends.process_box import HINT, ProcessBox
from runtime.backends.rootfs import ensure_root
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.profile import BackendName, Profile
from runtime.programs import Program
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

FIRST_HOST_ID, HOST_IDS = 1_900_000_000, 200_000_000
"""First host uid, and number of uids, that no distribution assigns (systemd, "Users, Groups, UIDs and GIDs"). One per
box, because older kernels count a user's processes over all its namespaces."""
NO_SNAPSHOTS = RefusedError(
    "nsjail cannot freeze a sandbox or restore one", hint="Use gVisor for snapshots, branches and rollbacks."
)
NO_SETS = RefusedError("nsjail does not support package sets", hint="Use gVisor for packages installed by an adapter.")


class NsJail(Backend):
    """Sandbox backend that uses nsjail. All but the constructor is called, and calls back, on the reactor's thread."""

    name = BackendName.NSJAIL

    def __init__(self, settings: BrokerSettings, reactor: Reactor, host: SandboxHost) -> None:
        """Creates the nsjail backend; builds the guest's root if missing (a second), if guests are enabled. Raises
        RefusedError without a usable nsjail or Python, InfrastructureError on a disk error."""
        self._reactor = reactor
        super().__init__(host)
        self.nsjail = find_nsjail(settings.nsjail)
        nsjail_version(self.nsjail, settings.nsjail)
        require_user_namespaces()
        self._nsenter = find_nsenter()
        self._machine = os.uname().machine
        self._settings = settings
        self._mounts: dict[str | bool, int] = {}
        """Descriptors of base mount namespaces, by program name; for the guests' Python by userland flag."""
        if settings.guests:
            self._mounts[False] = self._make_guests(False)
            os.close(nsjail_jail.copy(self._mounts[False], [ROOT]))
        self._host_ids = itertools.count(int.from_bytes(os.urandom(4), "little"))

    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """Always raises RefusedError: nsjail cannot save or restore images."""
        raise NO_SNAPSHOTS

    def start(self, profile: Profile, image: Path | None, done: Callable[[ProcessBox | SandboxError], None]) -> None:
        """Starts a new nsjail box; its worker sends READY some 30 ms later, a program once warm. Images are refused."""
        if image is not None:
            done(NO_SNAPSHOTS)
            return
        if profile.packages is not None:
            done(NO_SETS)
            return
        if profile.userland and True not in self._mounts:
            self._host.background(partial(self._make_guests, True), partial(self._userland_made, profile, done))
            return
        program = self._settings.program(profile.program)
        host_id = FIRST_HOST_ID + next(self._host_ids) % HOST_IDS
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        try:
            base = self._namespace(program, profile.userland)
            text = jail(profile, program, host_id=host_id, nice=nice, machine=self._machine)
            box = self.add(profile)
        except SandboxError as error:
            done(error)
            return
        try:
            places = [ROOT] if program is None else [FOLDER.format(number) for number in range(len(program.mounts))]
            box.namespace = nsjail_jail.copy(base, places)
        except SandboxError as error:
            self._fail(box, str(error), done)
            return
        try:
            (box.folder / "jail.json").write_text(text)
        except OSError as error:
            self._fail(box, str(error), done)
            return
        # nsjail runs in the namespace where its folders are, and finds its configuration through this process
        here = f"/proc/{os.getpid()}"
        argv = [self._nsenter, f"--mount={here}/fd/{box.namespace}", "--", str(self.nsjail)]
        argv += [*([] if program else ["--rw"]), "--config", f"{here}/root{box.folder}/jail.json"]
        answered = False

        def finished(_: int, problem: str) -> None:
            if not answered:
                self._fail(box, problem, done)

        def started() -> None:
            nonlocal answered
            if box.programs:
                answered = True
                done(box)

        self.run(box, argv, group=box.group, seconds=None, finished=finished)
        self._reactor.call(started)

    def checkpoint(
        self, box: ProcessBox, folder: Path, *, done: Callable[[SandboxError | None], None], settled: bool = False
    ) -> None:
        """Always refuses: nsjail cannot save a box's state."""
        done(NO_SNAPSHOTS)

    def close(self) -> None:
        while self._mounts:
            os.close(self._mounts.popitem()[1])
        super().close()

    def _make_guests(self, programs: bool) -> int:
        """Creates the base mount namespace with the guests' root, which is built if missing; returns its descriptor."""
        settings = self._settings
        root = ensure_root(settings.root_dir, settings.python, settings.packages, programs=programs)
        return nsjail_jail.make({ROOT: root.resolve()})

    def _userland_made(
        self, profile: Profile, done: Callable[[ProcessBox | SandboxError], None], finished: Future[int]
    ) -> None:
        problem = finished.exception()
        if problem is not None:
            done(problem if isinstance(problem, SandboxError) else InfrastructureError(str(problem), hint=HINT))
        elif self._closed:
            os.close(finished.result())
            done(InfrastructureError("the sandbox backend is closed"))
        else:
            if self._mounts.setdefault(True, finished.result()) != finished.result():
                os.close(finished.result())  # others asked for it, too
            self.start(profile, None, done)

    def _namespace(self, program: Program | None, userland: bool) -> int:
        """Returns the base mount namespace of a program or guest, created on first use. Raises RefusedError for a
        missing folder."""
        if self._closed:
            raise InfrastructureError("the sandbox backend is closed")
        name = program.name if program is not None else userland
        if name not in self._mounts:
            assert program is not None
            folders = {FOLDER.format(number): path for number, path in enumerate(program.mounts)}
            self._mounts[name] = nsjail_jail.make(folders)
        return self._mounts[name]

    def _fail(self, box: ProcessBox, why: str, done: Callable[[ProcessBox | SandboxError], None]) -> None:
        problem = InfrastructureError(f"sandbox {box.id} could not be started: {why}", hint=HINT)
        self.end(box, lambda _: done(problem))
