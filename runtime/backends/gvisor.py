"""The gVisor backend: starts, limits, kills and removes sandboxes. Knows nothing of sessions or of what runs inside.

What always holds:
- runsc runs attached and is killed by the kernel when the thread that started it ends, and its own children with it; so
  a kill -9 of this process leaves no process behind, only files and empty cgroups, which the sweep removes.
- Every sandbox is in a cgroup of ours before runsc starts. Where there is no cgroup, no runsc or no right to use them,
  RefusedError says what to do: nothing ever runs with less isolation.
Not promised: protection against side channels of the processor (gVisor, security model).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from runtime.backends.bundle import Profile, config
from runtime.backends.cgroups import Group, Parents, find_parents
from runtime.backends.owner import Owner, state_mark, working_folder
from runtime.backends.rootfs import ensure_root
from runtime.errors import BadRequestError, InfrastructureError, RefusedError, SandboxError
from runtime.settings import RuntimeSettings

USUAL_PLACES = ("/usr/local/bin/runsc", "/usr/bin/runsc", "/usr/local/sbin/runsc", "/opt/gvisor/runsc")
RUNSC_HINT = (
    "Run install.sh, or install gVisor (https://gvisor.dev) and name its program: sandbox.runsc in the configuration, "
    "or ASSAY_SANDBOX__RUNSC."
)
FLAGS = ("--network=none", "--platform=systrap", "--overlay2=none", "--ignore-cgroups")
ENTER = (
    'parent=$1; shift; [ "$PPID" = "$parent" ] || exit 125; '
    'while [ "$1" != -- ]; do echo $$ > "$1" || exit 124; shift; done; shift; exec "$@"'
)
"""Ends at once when its parent died before the kernel could be told to watch it; then enters the groups, then becomes
the program."""


class Description(BaseModel):
    """What `assay doctor` shows about this backend."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    works: bool
    runsc: str = ""
    version: str = ""
    platform: str = "systrap"
    cgroup_version: int = 0
    problem: str = ""
    hint: str = ""


def find_runsc(path: str | None = None) -> Path:
    """The runsc to use: the given one, else beside this interpreter, where the installer puts it, else on PATH or in
    the usual places. Raises RefusedError when there is none."""
    if path is not None:
        candidates = [path]
    else:
        found = shutil.which("runsc")
        candidates = [str(Path(sys.executable).with_name("runsc")), *([found] if found else []), *USUAL_PLACES]
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and Path(candidate).is_file():
            return Path(candidate).resolve()
    raise RefusedError(
        f"gVisor is not here: no runsc at {path}" if path else "gVisor is not here: no runsc was found", hint=RUNSC_HINT
    )


def runsc_version(runsc: Path) -> str:
    """What runsc calls itself. Raises RefusedError when it does not start."""
    try:
        answer = subprocess.run([runsc, "--version"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise RefusedError(f"{runsc} does not start: {error}", hint=RUNSC_HINT) from error
    return answer.stdout.splitlines()[0].removeprefix("runsc version ").strip() if answer.stdout else ""


def _own_cgroups(owner: Owner, mark: str) -> Parents:
    mountinfo, membership = Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
    return find_parents(mountinfo, membership, f"assay-{mark}.{owner}.trial")


def describe(runsc_path: str | None = None) -> Description:
    """Finds out what works here without starting a sandbox; never raises for what is missing."""
    version, runsc = "", ""
    try:
        found = find_runsc(runsc_path)
        runsc, version = str(found), runsc_version(found)
        _require_rights()
        parents = _own_cgroups(Owner.current(), "doctor")
    except SandboxError as error:
        return Description(works=False, runsc=runsc, version=version, problem=str(error), hint=error.hint)
    return Description(works=True, runsc=runsc, version=version, cgroup_version=parents.version)


def _require_rights() -> None:
    if os.geteuid() != 0:
        raise RefusedError(
            "gVisor sandboxes need root: namespaces and cgroups are made for each of them",
            hint="Run as root, or start the service that install.sh sets up.",
        )
    if shutil.which("setpriv") is None:
        raise RefusedError("setpriv is not here", hint="Install util-linux (apt install util-linux).")


class Box:
    """A started sandbox: its process, its three pipes (non-blocking on our side), its cgroup and its folder."""

    def __init__(self, name: str, folder: Path, group: Group, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.id = name
        self.process = process
        self.requests, self.replies = process.stdin.fileno(), process.stdout.fileno()
        self._folder, self._group, self._complaints = folder, group, process.stderr
        for descriptor in (self.requests, self.replies, self._complaints.fileno()):
            os.set_blocking(descriptor, False)

    def ran_out_of_memory(self) -> bool:
        return self._group.oom_kills() > 0

    def complaint(self) -> str:
        """The end of what runsc itself said, for the person who has to repair it."""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._complaints.fileno(), 1 << 14)
            return said.decode(errors="replace").strip()[-600:]
        return ""

    def kill(self) -> None:
        self.process.kill()
        self._group.kill()

    def remove(self) -> None:
        """Kills everything inside, waits for it, and removes pipes, cgroup and folder (about 10 ms)."""
        self.kill()
        self.process.wait(timeout=10)
        for pipe in (self.process.stdin, self.process.stdout, self._complaints):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._group.remove()
        shutil.rmtree(self._folder)


class GVisorBackend:
    """Starts boxes from one long-lived thread, because the kernel ties their lives to it."""

    def __init__(self, settings: RuntimeSettings) -> None:
        """Raises RefusedError when isolation cannot be had here, before anything is started."""
        self.settings = settings
        self.runsc = find_runsc(settings.runsc)
        _require_rights()
        self._mark = state_mark(settings.state_dir)
        self._owner = Owner.current()
        self._folder = working_folder(settings.state_dir) / str(self._owner)
        try:
            settings.state_dir.mkdir(parents=True, exist_ok=True)
            self._folder.mkdir(parents=True, mode=0o711)
        except OSError as error:
            raise InfrastructureError(
                f"{self._folder} cannot be made: {error}", hint="Free disk space, or choose another data folder."
            ) from error
        try:
            self._parents = _own_cgroups(self._owner, self._mark)
            places = sorted({str(folder) for folder in self._parents.folders.values()})
            (self._folder / "cgroups").write_text("\n".join(places) + "\n")
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._numbers = itertools.count(1)
        self._boxes: dict[str, Box] = {}
        self._root: Path | None = None
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sandbox-launcher")
        self._closed = False

    def launch(self, profile: Profile) -> Future[Box]:
        """A box that has been started; it says READY on its pipe about 0.2 s later.

        The future raises InfrastructureError when runsc cannot be started, RefusedError without a guest Python.
        """
        with self._lock:
            if self._closed:
                raise BadRequestError("the sandbox backend is closed")
            return self._thread.submit(self._launch, profile)

    def remove(self, box: Box) -> Future[None]:
        """Kills at once, cleans up on the launcher's thread; a backend that is closing does so by itself."""
        box.kill()
        with self._lock:
            if not self._closed:
                return self._thread.submit(self._remove, box)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def close(self) -> None:
        """Removes every box and every trace. Closing twice is fine."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        try:
            self._thread.submit(self._remove_all).result()
        finally:
            self._thread.shutdown()
        shutil.rmtree(self._folder)
        if self._folder.parent != self.settings.state_dir.resolve():
            with contextlib.suppress(OSError):
                self._folder.parent.rmdir()

    def _launch(self, profile: Profile) -> Box:
        if self._root is None or not self._root.is_dir():
            self._root = ensure_root(self.settings.root_dir, self.settings.python)
        name = f"{self._owner.token}-{next(self._numbers)}"
        folder = self._folder / name
        try:
            (folder / "bundle").mkdir(parents=True)
            (folder / "bundle/config.json").write_text(json.dumps(config(profile, self._root.resolve())))
            group = Group(
                self._parents,
                f"assay-{self._mark}.{self._owner}.{name}",
                memory_mib=profile.memory_mib,
                pids=profile.pids,
                cpus=profile.cpus,
            )
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise InfrastructureError(
                f"sandbox {name} could not be prepared: {error}", hint="Free disk space in the data folder."
            ) from error
        runsc = [str(self.runsc), "--root", str(folder / "s"), *FLAGS, "run", "--bundle", str(folder / "bundle"), name]
        enter = ["/bin/sh", "-c", ENTER, "assay", str(os.getpid()), *group.entrances, "--", *runsc]
        try:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *enter],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                start_new_session=True,
            )
        except OSError as error:
            group.remove()
            shutil.rmtree(folder, ignore_errors=True)
            raise InfrastructureError(f"sandbox {name} could not be started: {error}", hint=RUNSC_HINT) from error
        box = self._boxes[name] = Box(name, folder, group, process)
        return box

    def _remove(self, box: Box) -> None:
        """What will not go stays listed: `close` tries again."""
        if box.id in self._boxes:
            box.remove()
            del self._boxes[box.id]

    def _remove_all(self) -> None:
        boxes, problems = list(self._boxes.values()), []
        for box in boxes:
            box.kill()
        for box in boxes:
            try:
                self._remove(box)
            except (OSError, subprocess.SubprocessError, InfrastructureError) as error:
                problems.append(f"{box.id}: {error}")
        if problems:
            raise InfrastructureError(
                f"sandboxes could not be removed: {'; '.join(problems)}",
                hint="The next start sweeps them; if that fails too, look for processes that cannot be killed.",
            )
