"""Removes leftovers of a killed process: processes, cgroups, sandbox folders.

Invariants: only things named after a dead owner of this very state folder are touched, and empty cgroups of any dead
owner; an owner is alive while a process with its pid *and* start time exists. Repeated and concurrent sweeps are fine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

from runtime.backends.cgroups import located, members, remove_folders
from runtime.backends.lease import Owner, state_mark, working_folder
from runtime.errors import InfrastructureError
from runtime.model import FrozenModel

PROGRAMS = (b"runsc", b"runsc-sandbox", b"runsc-gofer", b"exe", b"nsjail", b"sh")
HINT = "Stop the named processes, then start again; a live owner's things are never removed."


class SweepReport(FrozenModel):
    """Counts of what was removed of brokers that died."""

    owners: int = 0
    processes: int = 0
    cgroups: int = 0
    """Removed cgroups, including empty ones of other state folders."""
    folders: int = 0
    """Removed sandbox folders."""


def sweep(state_dir: Path) -> SweepReport:
    """Removes what dead brokers of this state folder left: processes, control groups, folders. Cheap if there is
    nothing. Raises InfrastructureError if something cannot be removed."""
    working = working_folder(state_dir)
    report = Counter(cgroups=_remove_empty_groups())
    if not working.is_dir():
        return SweepReport(**report)
    mark = state_mark(state_dir)
    for folder in sorted(working.iterdir()):
        owner = Owner.parse(folder.name)
        if owner is None or owner.alive():
            continue
        try:
            processes, cgroups = _remove_cgroups(folder / "cgroups", f"assay-{mark}.{owner}.")
            processes += _kill_strays(folder)
            sandboxes = sum(1 for entry in folder.iterdir() if entry.name.startswith(f"{owner.token}-"))
            shutil.rmtree(folder)
        except FileNotFoundError:
            continue  # somebody else sweeps here too
        except OSError as error:
            raise InfrastructureError(f"{folder} cannot be swept: {error}", hint=HINT) from error
        report.update(owners=1, processes=processes, cgroups=cgroups, folders=sandboxes)
    if working != state_dir.resolve():
        with contextlib.suppress(OSError):  # not empty: somebody lives there
            working.rmdir()
    return SweepReport(**report)


def _remove_cgroups(paths: Path, prefix: str) -> tuple[int, int]:
    """Removes the cgroups of a dead broker; returns the numbers of processes and groups. Searches where the broker
    recorded its groups and where this process would create them, because a broker killed early has recorded nothing."""
    parents = {Path(line) for line in paths.read_text().splitlines()} if paths.is_file() else set()
    parents.update(folder for candidate in located() for folder in candidate.folders.values())
    inside: set[int] = set()
    groups: set[str] = set()
    for parent in sorted(parents):
        if not parent.is_dir():
            continue
        found = [entry for entry in parent.iterdir() if entry.name.startswith(prefix)]
        for entry in found:
            inside.update(members(entry))
            groups.add(entry.name)
        remove_folders(found)
    return len(inside), len(groups)


def _remove_empty_groups() -> int:
    """Removes empty cgroups of dead brokers of any state folder, which may itself be gone; returns their number."""
    removed: set[str] = set()
    for parent in {folder for candidate in located() for folder in candidate.folders.values()}:
        for entry in parent.glob("assay-*.*.*") if parent.is_dir() else ():
            owner = Owner.parse(entry.name.split(".")[1])
            if owner is None or owner.alive():
                continue
            with contextlib.suppress(OSError):  # not empty after all, or removed concurrently
                entry.rmdir()
                removed.add(entry.name)
    return len(removed)


def _kill_strays(folder: Path) -> int:
    """Kills programs with a dead broker's folder in their command line: not yet in their groups, or with groups
    elsewhere. Returns their number."""
    wanted = os.fsencode(folder) + b"/"
    found = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) != os.getpid() and wanted in _command_line(entry)
    ]
    killed = [pid for pid in found if _is_ours(pid, wanted)]
    for pid in killed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + 2.0
    while any(_is_ours(pid, wanted) for pid in killed) and time.monotonic() < deadline:
        time.sleep(0.005)
    return len(killed)


def _is_ours(pid: int, wanted: bytes) -> bool:
    """True if the process runs an isolation program on that folder; another process may merely inspect it."""
    arguments = _command_line(Path(f"/proc/{pid}")).split(b"\0")
    name = os.path.basename(arguments[0])  # noqa: PTH119 - bytes, as the kernel has them
    return name in PROGRAMS and any(wanted in argument for argument in arguments)


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
