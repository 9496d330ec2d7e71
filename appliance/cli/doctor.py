"""`assay doctor`: what this machine can do for Assay, and what to do about the rest.

What always holds: it changes nothing that outlives it; each check is an observation of the machine as it is now, with
a figure; it fails only for what keeps model code from running safely or the product from running at all. Versions of
heavy parts come from their metadata: nothing is imported to be looked at.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from appliance import places
from appliance.cli.checks import Check, Grade, failed, ok, warning
from appliance.cli.doctor_isolation import isolation
from appliance.cli.doctor_verifiers import programs, verifiers
from appliance.cli.show import show_json, show_line
from appliance.daemon.listening import MAX_PATH_BYTES
from policies.policy import PolicyError

if TYPE_CHECKING:
    from appliance.config import Settings

SOUND, UNSOUND = 0, 5
SAFE_SQLITE = (3, 51, 3)
GIB = 1 << 30


def run(settings: Settings, json_out: bool, *, selftest: bool) -> int:
    """Prints every check, and returns the exit code: 0, or 5 when one of them failed."""
    checks: list[Check] = []
    for check in examine(settings, selftest=selftest):
        checks.append(check)
        if not json_out:
            _show(check)
    broken = [check.name for check in checks if check.grade is Grade.FAILED]
    if json_out:
        show_json({"sound": not broken, "checks": [check.model_dump(mode="json") for check in checks]})
    else:
        warned = sum(check.grade is Grade.WARNING for check in checks)
        show_line(f"failed: {', '.join(broken)}" if broken else f"model code can be run safely here; {warned} warnings")
    return UNSOUND if broken else SOUND


def _show(check: Check) -> None:
    colours = {Grade.OK: typer.colors.GREEN, Grade.WARNING: typer.colors.YELLOW, Grade.FAILED: typer.colors.RED}
    grade = typer.style(f"{check.grade:<8}", fg=colours[check.grade])
    typer.echo(grade, nl=False)
    show_line(f"{check.name:<16} {check.figure}")
    if check.advice:
        show_line(f"{'':<25}{check.advice}")


def examine(settings: Settings, *, selftest: bool) -> Iterator[Check]:
    """Every check in the order in which a person would repair things; the slow ones (sandboxes) last."""
    yield python(sys.version_info[:3])
    yield sqlite(sqlite3.sqlite_version_info)
    yield torch()
    yield ok("config", f"valid; data in {settings.data}")
    rules = policy(settings.data)
    yield rules
    yield disk(settings.data)
    yield memory(Path("/proc/meminfo").read_text())
    yield socket_path(settings.socket_path)
    yield from verifiers()
    if rules.grade is Grade.OK:
        seen = []
        for check in isolation(settings, selftest=selftest):
            seen.append(check)
            yield check
        yield programs(seen)


def python(version: tuple[int, ...]) -> Check:
    figure = f"{'.'.join(map(str, version))} at {sys.executable}"
    if version < (3, 11):
        return failed("python", figure, "Python 3.11 or newer is needed")
    return ok("python", figure)


def sqlite(version: tuple[int, ...]) -> Check:
    """The bug is in resetting the write-ahead log while two connections checkpoint; here only one process writes."""
    note = "" if version >= SAFE_SQLITE else "before 3.51.3 only one process may write to a file, and only one does"
    return ok("sqlite", ".".join(map(str, version)), note)


def torch() -> Check:
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return failed("torch", "not installed", "run install.sh")
    return torch_build(version, cores=len(os.sched_getaffinity(0)), gpus=_gpus(Path("/proc/driver/nvidia/gpus")))


def torch_build(version: str, *, cores: int, gpus: int) -> Check:
    figure = f"{version}, {cores} cores, {gpus} NVIDIA GPUs"
    if gpus and version.endswith("+cpu"):
        return warning("torch", figure, "a build for CPU only: run install.sh again")
    return ok("torch", figure)


def _gpus(folder: Path) -> int:
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def policy(data: Path) -> Check:
    try:
        loaded = places.load_policy(data)
    except PolicyError as error:
        return failed("policy", str(error), error.hint)
    return ok("policy", f"{places.policy_file(data) or 'the packaged default'}, {loaded.digest[:12]}")


def disk(folder: Path) -> Check:
    """Free space where the data folder is or would be made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    figure = f"{free / GIB:.1f} GiB free at {there}"
    if not there.is_dir() or not os.access(there, os.W_OK):
        return failed("disk", f"{there} cannot be written", "choose another folder with --data")
    if free < GIB // 2:
        return failed("disk", figure, "make room, or choose another disk with --data")
    if free < 4 * GIB:
        return warning("disk", figure, "checkpoints of many nights want more; make room in time")
    return ok("disk", figure)


def memory(meminfo: str) -> Check:
    """`meminfo` is the text of /proc/meminfo (proc(5)), in KiB."""
    fields = dict(line.split(":", 1) for line in meminfo.splitlines() if ":" in line)
    available, total = (int(fields[name].split()[0]) << 10 for name in ("MemAvailable", "MemTotal"))
    figure = f"{available / GIB:.1f} of {total / GIB:.1f} GiB available"
    if available < 2 * GIB:
        advice = "training and its sandboxes want 2 GiB; end something else first"
        return warning("memory", figure, advice)
    return ok("memory", figure)


def socket_path(path: Path) -> Check:
    length = len(os.fsencode(path))
    figure = f"{length} of {MAX_PATH_BYTES} bytes"
    if length > MAX_PATH_BYTES:
        advice = f"`assay serve` cannot listen at {path}: set a shorter path with ASSAY_API__SOCKET"
        return failed("socket", figure, advice)
    return ok("socket", figure)
