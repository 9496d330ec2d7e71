"""Resources shared by all boxes of one broker: owner name, folder, control groups, reaper and keeper.

Invariants: every group, folder and process of a box carries the owner's name, so that a sweep finds them; without
control groups nothing starts. Created once per broker, before its backends, and closed after them.

Keeper process that kills a dead broker's sandboxes: a small child that briefly outlives its broker.

Invariants: however the broker ends, the keeper's pipe closes, because nobody else holds the other end; the keeper then
kills every process in that owner's control groups until none has appeared for a while, and exits. An orderly `close`
dismisses it first. A keeper that ends unexpectedly is restarted, which is logged. Folders are left to the next sweep.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from runtime.backends.cgroups import ControlGroup, find_parents, located
from runtime.backends.lease import Owner, state_mark, working_folder
from runtime.backends.reaper import Reaper
from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import Profile
from runtime.reactor import Reactor

log = logging.getLogger("runtime.broker")
PAUSE_SECONDS = 1.0
"""Delay before a keeper that ended is restarted, in seconds."""

WATCH = """trap '' HUP INT TERM
read -r word && exit 0
quiet=0; round=0
while [ $quiet -lt 20 ] && [ $round -lt 500 ]; do
  quiet=$((quiet + 1)); round=$((round + 1))
  for prefix; do
    for group in "$prefix"*/cgroup.procs; do
      [ -e "$group" ] || continue
      while read -r pid; do kill -9 "$pid" && quiet=0; done < "$group"
    done
  done 2> /dev/null
  sleep 0.02
done"""
"""Shell script of the keeper. It waits for a word or the end of its pipe, then checks every 20 ms until 20 checks in a
row find no process; at most 500 times."""


class Keeper:
    def __init__(self, prefixes: Iterable[Path]) -> None:
        """Starts the keeper, a process that kills the sandboxes if this process dies: the control groups whose folders
        start with these prefixes. Raises InfrastructureError if it cannot start."""
        self._command = ["/bin/sh", "-c", WATCH, "assay-keeper", *map(str, prefixes)]
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._process = self._started()
        threading.Thread(target=self._watch, name="keeper-watch", daemon=True).start()

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                process_group=0,
            )
        except OSError as error:
            raise InfrastructureError(f"the keeper of sandboxes could not be started: {error}") from error

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _watch(self) -> None:
        while True:
            self._process.wait()
            if self._closing.wait(PAUSE_SECONDS):
                return
            with self._lock:
                if self._closing.is_set():
                    return
                try:
                    self._process = self._started()
                except InfrastructureError as error:
                    log.error("news: %s", error)
                else:
                    log.warning("news: the keeper of sandboxes had ended and was started again")

    def close(self) -> None:
        """Ends the keeper process without killing any sandbox."""
        with self._lock:
            self._closing.set()
        try:
            self._process.communicate(b"home\n", timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=5)


T = TypeVar("T")
THREADS = 4
TOOLS_MIB, TOOLS_PIDS = 1024, 2048


def require_root() -> None:
    if os.geteuid() != 0:
        raise RefusedError(
            "sandboxes need root: each gets its own namespaces and cgroups",
            hint="Run as root, or start the service that install.sh sets up.",
        )


class SandboxHost:
    def __init__(self, state_dir: Path, reactor: Reactor) -> None:
        """Creates what all backends share: a folder, parent cgroups and the keeper process. Raises RefusedError if
        isolation is unavailable, InfrastructureError if the folder cannot be created."""
        require_root()
        self.reactor = reactor
        self.mark = state_mark(state_dir)
        self.owner = Owner.current()
        self.folder = working_folder(state_dir) / str(self.owner)
        self._state_dir = state_dir
        try:
            state_dir.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(parents=True, mode=0o711)
        except OSError as error:
            raise InfrastructureError(
                f"{self.folder} cannot be created: {error}", hint="Free disk space, or choose another data folder."
            ) from error
        try:
            self._parents = find_parents(located(), f"{self._prefix}trial")
            paths = sorted({str(folder) for folder in self._parents.folders.values()})
            (self.folder / "cgroups").write_text("\n".join(paths) + "\n")
            self._keeper = Keeper(Path(path) / self._prefix for path in paths)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.reaper = Reaper(reactor)
        self._numbers = itertools.count(1)
        self._tools: ControlGroup | None = None
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="sandbox-work")

    @property
    def _prefix(self) -> str:
        return f"assay-{self.mark}.{self.owner}."

    def new_name(self) -> str:
        """Returns a new identity for a box, practically unique on this host."""
        return f"{self.owner.token}-{next(self._numbers)}"

    def group(self, name: str, profile: Profile, *, pids: int, together: bool) -> ControlGroup:
        """Creates the control groups of a box with its profile's limits, except that `pids` limits host tasks;
        `together` as in `ControlGroup`.

        Raises InfrastructureError if the kernel rejects a limit.
        """
        if not self._keeper.alive:
            raise InfrastructureError(
                "the keeper has ended, so nothing would end sandboxes if the broker were killed",
                hint="Try again; it is being restarted.",
            )
        return ControlGroup(
            self._parents,
            f"{self._prefix}{name}",
            memory_mib=profile.memory_mib,
            pids=pids,
            cpus=profile.cpus,
            together=together,
        )

    def tools(self) -> ControlGroup:
        """Returns the control group, made at first use, of programs that serve boxes, such as the image writer."""
        if self._tools is None:
            self._tools = ControlGroup(
                self._parents,
                f"{self._prefix}tools",
                memory_mib=TOOLS_MIB,
                pids=TOOLS_PIDS,
                cpus=float(os.cpu_count() or 1),
            )
        return self._tools

    def background(self, job: Callable[[], T], done: Callable[[Future[T]], None] | None = None) -> Future[T]:
        """Runs a blocking job on another thread; `done` is called back on the reactor."""
        future = self._threads.submit(job)
        if done is not None:
            future.add_done_callback(lambda finished: self.reactor.call(lambda: done(finished)))
        return future

    def close(self) -> None:
        """Stops the threads and programs that all backends share, and deletes this host's state folder. Runs after the
        backends' own close, on the reactor's thread or after it stopped."""
        self._threads.shutdown()
        if self._tools is not None:
            self._tools.remove()
        self.reaper.close()
        self._keeper.close()
        shutil.rmtree(self.folder)
        if self.folder.parent != self._state_dir.resolve():
            with contextlib.suppress(OSError):  # another owner lives there
                self.folder.parent.rmdir()
