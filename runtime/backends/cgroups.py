"""Creates, limits, reads and removes control groups of the host, in cgroup versions 1 and 2.

Invariants: a sandbox is in its limited group before it runs a single instruction of runsc; a limit that the kernel
rejects is an error.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from runtime.errors import InfrastructureError, RefusedError
from runtime.profile import BoxUsage

NEEDED = ("memory", "pids", "cpu")
MEASURED = {1: (*NEEDED, "cpuacct"), 2: NEEDED}
"""Controllers by version; in version 1 a separate controller reports CPU time."""
PERIOD_US = 100_000
SHARES = {1: ("cpu.shares", "1024", "32"), 2: ("cpu.weight", "100", "3")}
"""Weight file, normal value, and low-priority value: a thirty-second of one busy group's share, plus all idle CPU time
(Linux, sched-design-CFS). A busy group's weight is split among its CPUs: beside a group busy on two CPUs, the share is
a sixteenth of one."""
COUNTED: dict[int, tuple[tuple[str, ...], float, str, str, str, str]] = {
    1: (("cpuacct", "cpuacct.usage"), 1e9, "usage_in_bytes", "max_usage_in_bytes", "oom_control", "cache"),
    2: (("cpu", "cpu.stat", "usage_usec"), 1e6, "current", "peak", "events", "file"),
}
"""CPU time source with its ticks per second; files of current memory, peak memory and OOM kills; the `memory.stat` line
with cached files."""
THREADS = {1: "tasks", 2: "cgroup.threads"}
MOST_WAITS = 512
"""Most threads reported: an answer must fit into one packet."""
HINT = "Run as root where the cgroup controllers memory, pids and cpu are mounted (in a systemd unit: Delegate=yes)."


class Parents(NamedTuple):
    """Folders in which control groups may be created: one for all in version 2, one per controller in version 1."""

    version: int
    folders: dict[str, Path]


class Mount(NamedTuple):
    root: str
    point: Path
    kind: str
    options: frozenset[str]


def read_mounts(mountinfo: str) -> list[Mount]:
    """Parses the cgroup mounts in /proc/self/mountinfo (proc(5))."""
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) >= 5 and len(kind) >= 3 and kind[0] in ("cgroup", "cgroup2"):
            found.append(Mount(fields[3], Path(fields[4]), kind[0], frozenset(kind[2].split(","))))
    return found


def own_folder(mount: Mount, path: str) -> Path:
    """Returns the folder of control group `path` below a cgroup mount, which may show only part of the tree."""
    root = mount.root.rstrip("/")
    if ".." not in path and (path == root or path.startswith(root + "/")):
        return mount.point / path[len(root) :].strip("/")
    return mount.point


def locate(mountinfo: str, membership: str) -> list[Parents]:
    """Returns the folders in which control groups might be created, nearest to the process first. Reads the texts of
    /proc/self/mountinfo and /proc/self/cgroup."""
    mounts = read_mounts(mountinfo)
    paths: dict[str, str] = {}
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    folders = {
        controller: own_folder(mount, paths.get(controller, "/"))
        for controller in MEASURED[1]
        for mount in mounts
        if mount.kind == "cgroup" and controller in mount.options
    }
    candidates = [Parents(1, folders)] if set(folders) == set(MEASURED[1]) else []
    for mount in mounts:
        if mount.kind == "cgroup2" and not folders:
            folder = own_folder(mount, paths.get("", "/"))
            above = [folder, *(parent for parent in folder.parents if parent.is_relative_to(mount.point))]
            candidates += [Parents(2, dict.fromkeys(NEEDED, each)) for each in above]
    return candidates


def located() -> list[Parents]:
    """Returns the folders in which this process might create control groups, nearest first."""
    return locate(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())


def find_parents(candidates: Iterable[Parents], name: str) -> Parents:
    """Returns the first candidate folders in which a control group with all three controllers can be created; `name` is
    used for the trial.

    In version 2 a group that holds processes cannot have limited groups below it, so the search goes up the tree.
    Raises RefusedError if no candidate works: without limits nothing runs.
    """
    reasons = []
    for parents in candidates:
        try:
            if parents.version == 2:
                control = parents.folders["memory"] / "cgroup.subtree_control"
                missing = set(NEEDED) - set(control.read_text().split())
                if missing:
                    control.write_text(" ".join(f"+{controller}" for controller in sorted(missing)))
            trial = ControlGroup(parents, name, memory_mib=64, pids=16, cpus=1.0, together=True)
            try:
                events = trial.oom_events()
                if events >= 0:
                    os.close(events)
            finally:
                trial.remove()
        except (OSError, InfrastructureError) as error:
            reasons.append(str(error))
            continue
        return parents
    why = "; ".join(reasons[:3]) or "no cgroup hierarchy with the controllers memory, pids and cpu is mounted"
    raise RefusedError(f"sandboxes cannot be limited: {why}", hint=HINT)


def quota(version: int, cpus: float) -> str:
    """Formats a limit of CPUs as the kernel's quota in microseconds per period."""
    share = int(cpus * PERIOD_US)
    return str(share) if version == 1 else f"{share} {PERIOD_US}"


def limit_files(
    version: int, *, memory_mib: int, pids: int, cpus: float, together: bool = False
) -> list[tuple[str, str, str, bool]]:
    """Returns a control group's limits as controller, file, text to write, and True if a kernel may lack the file."""
    memory = str(memory_mib << 20)
    if version == 1:
        return [
            ("memory", "memory.limit_in_bytes", memory, False),
            ("memory", "memory.memsw.limit_in_bytes", memory, True),
            ("pids", "pids.max", str(pids), False),
            ("cpu", "cpu.cfs_period_us", str(PERIOD_US), False),
            ("cpu", "cpu.cfs_quota_us", quota(version, cpus), False),
        ]
    return [
        ("memory", "memory.max", memory, False),
        ("memory", "memory.swap.max", "0", True),
        ("memory", "memory.oom.group", "1" if together else "0", not together),
        ("pids", "pids.max", str(pids), False),
        ("cpu", "cpu.max", quota(version, cpus), False),
    ]


class ControlGroup:
    """Control group of one sandbox, limited from its creation."""

    def __init__(
        self, parents: Parents, name: str, *, memory_mib: int, pids: int, cpus: float, together: bool = False
    ) -> None:
        """Creates a control group with these limits. With `together`, an OOM kill takes the whole group if the kernel
        supports it (see `oom_events`). Raises InfrastructureError if the kernel rejects a limit."""
        self._version = parents.version
        self._of = {controller: folder / name for controller, folder in parents.folders.items()}
        self.folders = sorted(set(self._of.values()))
        try:
            for folder in self.folders:
                folder.mkdir()
            for controller, file, text, optional in limit_files(
                parents.version, memory_mib=memory_mib, pids=pids, cpus=cpus, together=together
            ):
                path = self._of[controller] / file
                if path.exists() or not optional:
                    path.write_text(text)
        except OSError as error:
            self.remove()
            raise InfrastructureError(f"the cgroup {name} could not be limited: {error}", hint=HINT) from error

    def limit_cpus(self, cpus: float) -> None:
        """Changes the group's CPU limit. Raises InfrastructureError if the kernel rejects it."""
        self._set_cpu("cpu.cfs_quota_us" if self._version == 1 else "cpu.max", quota(self._version, cpus))

    def give_way(self, others_first: bool) -> None:
        """Sets CPU priority, low with `others_first`. Raises InfrastructureError if the kernel rejects it."""
        file, usual, less = SHARES[self._version]
        self._set_cpu(file, less if others_first else usual)

    def _set_cpu(self, file: str, text: str) -> None:
        try:
            (self._of["cpu"] / file).write_text(text)
        except OSError as error:
            raise InfrastructureError(f"{self._of['cpu'] / file} could not be set: {error}", hint=HINT) from error

    def limit_memory(self, memory_mib: int) -> None:
        """Changes the group's memory limit. Lowering it makes the kernel write out and drop cached files first, which
        may block. Raises InfrastructureError if the kernel rejects it."""
        files = [
            (self._of[controller] / file, text)
            for controller, file, text, _ in limit_files(self._version, memory_mib=memory_mib, pids=1, cpus=1.0)
            if file in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max")
        ]
        try:
            present = [(path, text) for path, text in files if path.exists()]
            higher = memory_mib << 20 > int(present[0][0].read_text())
            for path, text in (
                reversed(present) if higher else present
            ):  # the limit with swap must never be the lower one
                path.write_text(text)
        except (OSError, IndexError, ValueError) as error:
            raise InfrastructureError(f"{self._of['memory']} could not be limited: {error}", hint=HINT) from error

    @property
    def entrances(self) -> list[str]:
        """Returns the files to which a single-threaded process writes 0 to enter the group. In version 1 not
        `cgroup.procs`: moving a whole process waits for a kernel grace period, up to 13 ms."""
        file = "tasks" if self._version == 1 else "cgroup.procs"
        return [str(folder / file) for folder in self.folders]

    def members(self) -> list[int]:
        """Returns the ids of processes in the group, including those in only some of its folders."""
        return sorted({pid for folder in self.folders for pid in members(folder)})

    def usage(self, *, waits: bool = False) -> BoxUsage:
        """Reads the group's resource usage from the kernel's counters; zeros for unavailable ones. Cached files count
        in the peak but not in current memory, because images are cached files. `waits` omits threads that have ended.
        """
        cpu, ticks, now, peak, oom, cached = COUNTED[self._version]
        files = max(0, self._number("memory", "memory.stat", cached) - self._number("memory", "memory.stat", "shmem"))
        return BoxUsage(
            cpu_seconds=self._number(*cpu) / ticks,
            memory_mib=(self._number("memory", f"memory.{now}") - files) / 2**20,
            peak_memory_mib=self._number("memory", f"memory.{peak}") / 2**20,
            oom_kills=self._number("memory", f"memory.{oom}", "oom_kill"),
            pids_denied=self._number("pids", "pids.events", "max"),
            waits=self._waits() if waits else {},
        )

    def _waits(self) -> dict[int, float]:
        """Returns, for the group's longest-waiting threads, the seconds runnable without a CPU (Linux, sched-stats);
        empty if the kernel does not count them."""
        found: dict[int, float] = {}
        with _may_be_gone():
            for thread in (self._of["cpu"] / THREADS[self._version]).read_text().split():
                with contextlib.suppress(OSError, IndexError, ValueError):  # ended, or not counted by this kernel
                    found[int(thread)] = int(Path(f"/proc/{thread}/schedstat").read_text().split()[1]) / 1e9
        longest = sorted(found, key=lambda thread: found[thread], reverse=True)[:MOST_WAITS]
        return {thread: found[thread] for thread in longest}

    def _number(self, controller: str, file: str, key: str = "") -> int:
        """Returns the number in a control file, or the one after `key` at the start of a line; 0 if there is none."""
        text = ""
        with _may_be_gone():
            text = (self._of[controller] / file).read_text()
        for line in text.splitlines():
            first, _, rest = line.rpartition(" ")
            if first == key:
                return int(rest)
        return 0

    def oom_events(self) -> int:
        """Opens a descriptor that becomes readable when the group runs out of memory, just before the kernel kills a
        process.

        The caller closes it. Returns -1 in version 2, where `memory.oom.group` can make the kernel kill all of them
        (Linux, cgroup v1 memory controller, "OOM control"). Raises InfrastructureError if the kernel gives none.
        """
        if self._version == 2:
            return -1
        events = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            with (self._of["memory"] / "memory.oom_control").open() as control:
                (self._of["memory"] / "cgroup.event_control").write_text(f"{events} {control.fileno()}")
        except OSError as error:
            os.close(events)
            raise InfrastructureError(f"{self._of['memory']} gives no OOM events: {error}", hint=HINT) from error
        return events

    def kill(self) -> None:
        """Kills all processes in the group, atomically if the kernel has `cgroup.kill`."""
        kill_folders(self.folders)

    def remove(self) -> None:
        """Kills the group's remaining processes and removes its folders. Raises InfrastructureError on failure."""
        remove_folders(self.folders)


def members(folder: Path) -> list[int]:
    """Returns the ids of processes in a control group's folder; empty if the group is gone."""
    text = ""
    with _may_be_gone():
        text = (folder / "cgroup.procs").read_text()
    return [int(line) for line in text.split()]


@contextlib.contextmanager
def _may_be_gone() -> Iterator[None]:
    """Suppresses errors for a control group removed before its file is opened (ENOENT) or read (ENODEV)."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):
            raise


def kill_folders(folders: list[Path]) -> None:
    for folder in folders:
        at_once = folder / "cgroup.kill"
        if at_once.exists():
            with _may_be_gone():
                at_once.write_text("1")
            continue
        for pid in members(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def remove_folders(folders: list[Path], *, seconds: float = 30.0) -> None:
    """Removes control groups' folders with retries, because a killed process leaves its group only after it is dead."""
    deadline = time.monotonic() + seconds
    for folder in folders:
        while True:
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError as error:
                if time.monotonic() > deadline:
                    raise InfrastructureError(f"{folder} cannot be removed: {error}") from error
                kill_folders([folder])
                time.sleep(0.002)
                continue
            break
