"""Is what `assay doctor` says of GPUs, and of what processes that train and sample on them hand weights over by.

What always holds: nothing runs on a GPU but one small copy between two of them, in a process with a deadline; a process
that somebody else has there is named and left alone. A machine without a GPU has one line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from appliance.cli.documents.doctor_checks import DoctorCheck, ok, warning
from appliance.hardware import SECONDS
from appliance.inference.vllm.transfers.folders import SPARE
from appliance.planning import Gpu

GIB, MIB = 1 << 30, 1 << 20
SHOWN = 5
USER = re.compile(r"\s*([0-9]+)\s*,\s*(.*?)\s*,\s*([^,]*?)\s*")
"""A process, its name, its memory."""
PEERS = (
    "import itertools, torch; n = torch.cuda.device_count(); bad = []\n"
    "for a, b in itertools.permutations(range(n), 2):\n"
    "    there = torch.arange(1 << 20, device=f'cuda:{a}').to(f'cuda:{b}')\n"
    "    same = bool((there.cpu() == torch.arange(1 << 20)).all())\n"
    "    if not same: bad.append(f'{a} to {b}: wrong bytes')\n"
    "    elif not torch.cuda.can_device_access_peer(a, b): bad.append(f'{a} to {b}: through the host')\n"
    "print('; '.join(bad))"
)
PEER_COMMAND = (sys.executable, "-I", "-c", PEERS)
PEER_SECONDS = 60.0
"""Some consumer cards hang for ever when one is to read the other's memory."""


def gpus(found: Sequence[Gpu], listed: int, *, learners: int, engine: str, weights: int = 0) -> Iterator[DoctorCheck]:
    """All lines about `found`, where the driver itself lists so many; `learners`, `engine` and the bytes of `weights`
    are those of the configuration."""
    if not found and listed:
        yield warning(
            "gpus",
            f"the driver lists {listed}, and nvidia-smi finds none or does not answer",
            "nothing is planned for them: see what `nvidia-smi -L` says to the daemon's user, and put it into its PATH",
        )
    elif not found:
        yield ok("gpus", "none that nvidia-smi finds", "models are trained and sampled from on the processor")
    else:
        yield ok("gpus", f"{len(found)}: {', '.join(f'{one.name}, {one.total // GIB} GiB' for one in found)}", driver())
        yield others(ask("--query-compute-apps=pid,process_name,used_memory"), os.getpid())
    if learners > max(1, len(found)) and found:
        yield warning(
            "learners", f"{learners} on {len(found)} GPUs", "set model.learners to the number of GPUs at most"
        )
    if found or listed or learners > 1 or engine == "vllm":
        yield shared_memory(Path("/dev/shm"), weights)  # noqa: S108 - it is looked at
        yield ptrace(Path("/proc/sys/kernel/yama/ptrace_scope"))
    if len(found) > 1:
        yield peers()


def ask(query: str, program: str = "nvidia-smi") -> str | None:
    """What the driver's tool answers; None where it is not there, fails, or takes too long."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        asked = subprocess.run(
            [path, query, "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=SECONDS, check=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout


def driver() -> str:
    version = (ask("--query-gpu=driver_version") or "").strip().splitlines()
    return f"driver {ascii(version[0].strip())[1:-1]}" if version else ""


def others(table: str | None, own: int) -> DoctorCheck:
    """Who computes on the GPUs, by lines of `process id, name, MiB`, the last of which the driver does not always know;
    the process `own` is not named. None is a driver's tool that could not be asked."""
    if table is None:
        return warning("gpu users", "nvidia-smi could not be asked who computes on them", "see what `nvidia-smi` says")
    rows = [row.groups() for row in map(USER.fullmatch, table.splitlines()) if row is not None]
    users = [row for row in rows if int(row[0]) != own]
    if not users:
        return ok("gpu users", "nobody computes on them")
    named = [
        f"{ascii(name)[1:-1][-40:]} (process {pid}, {f'{int(mib):,} MiB' if mib.isdecimal() else 'memory not known'})"
        for pid, name, mib in users[:SHOWN]
    ]
    more = f" and {len(users) - SHOWN} more" if len(users) > SHOWN else ""
    return warning(
        "gpu users", f"{', '.join(named)}{more}", "their memory is missing for models; nothing that others run is ended"
    )


def shared_memory(folder: Path, weights: int = 0) -> DoctorCheck:
    """Weights are handed over there where there is room for them, of a model of so many bytes: `SPARE` times that."""
    try:
        space = os.statvfs(folder)
    except OSError as error:
        return warning("shared memory", f"{folder}: {error.strerror}", "weights go through temporary files: slower")
    free, needed = space.f_bavail * space.f_frsize, SPARE * weights or GIB
    figure = f"{free / GIB:.1f} GiB free in {folder}"
    if weights:
        figure += f"; to hand over the configured model takes {needed / GIB:.1f}"
    if free <= needed:
        return warning(
            "shared memory",
            figure,
            f"what has no room goes through temporary files, which is slower: mount -o remount,size=50% {folder}",
        )
    return ok("shared memory", figure)


def ptrace(file: Path) -> DoctorCheck:
    """Yama's scope of ptrace(2), under which one process opens no memory of another's GPU (CUDA IPC)."""
    try:
        scope = file.read_text().strip()
    except OSError:
        return ok("ptrace", "no Yama in this kernel")
    note = "" if scope == "0" else "weights are handed over as files in shared memory, which needs no such right"
    return ok("ptrace", f"kernel.yama.ptrace_scope is {ascii(scope)[1:-1]}", note)


def peers(command: Sequence[str] = PEER_COMMAND, seconds: float = PEER_SECONDS) -> DoctorCheck:
    """Copies from each GPU to each other one, in a process that is killed when that comes to no end."""
    off = "set NCCL_P2P_DISABLE=1 in the service's environment"
    try:
        tried = subprocess.run(
            list(command), capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return warning("peer access", f"a copy between two GPUs did not end within {seconds:g} s", off)
    if tried.returncode:
        last = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
        return warning("peer access", f"it could not be tried: {ascii(last)[1:-1][:200]}", "look at the driver")
    said = tried.stdout.strip()
    if "wrong bytes" in said:
        return warning("peer access", ascii(said)[1:-1][:200], off)
    return ok("peer access", ascii(said)[1:-1][:200] if said else "each GPU reads each other one")
