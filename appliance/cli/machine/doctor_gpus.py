"""GPU checks of `assay doctor`, and how training and sampling processes share weights.

Invariants: nothing runs on a GPU except a small copy between each two of them, in a process with a deadline that also
reports how many GPUs torch can use. Foreign GPU processes are named and left alone. A machine without a GPU has one
line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from appliance.cli.machine.doctor_checks import DoctorCheck, ok, warning
from appliance.inference.vllm.transfers.folders import SPARE
from appliance.planning import Gpu
from appliance.planning.hardware import SECONDS

GIB, MIB = 1 << 30, 1 << 20
SHOWN = 5
USER = re.compile(r"\s*([0-9]+)\s*,\s*(.*?)\s*,\s*([^,]*?)\s*")
"""Process id, name and memory."""
PROBE = (
    "import itertools, torch; n = torch.cuda.device_count() if torch.cuda.is_available() else 0; bad = []\n"
    "print(n, torch.version.cuda, flush=True)\n"
    "for a, b in itertools.permutations(range(n), 2):\n"
    "    there = torch.arange(1 << 20, device=f'cuda:{a}').to(f'cuda:{b}')\n"
    "    same = bool((there.cpu() == torch.arange(1 << 20)).all())\n"
    "    if not same: bad.append(f'{a} to {b}: wrong bytes')\n"
    "    elif not torch.cuda.can_device_access_peer(a, b): bad.append(f'{a} to {b}: through the host')\n"
    "print('; '.join(bad))"
)
PROBE_COMMAND = (sys.executable, "-I", "-c", PROBE)
PROBE_SECONDS = 60.0
"""Timeout in seconds; some consumer cards hang forever on peer access."""
SEEN = re.compile(r"([0-9]+) (\S+)\n?(.*)", re.DOTALL)
"""Usable GPUs, the CUDA version of torch's build, and faults between GPUs."""
NO_PEERS = (
    "set NCCL_P2P_DISABLE=1 for the daemon: under [Service] of `systemctl edit assay` as "
    "Environment=NCCL_P2P_DISABLE=1, or before `assay serve`; learners and vLLM inherit it"
)


@dataclass(frozen=True)
class Probed:
    """Result of a process that tried the GPUs with torch."""

    usable: int | None = None
    """GPUs that torch can use; None if it did not get that far."""
    cuda: str = ""
    """CUDA version of torch's build; `None` for a CPU build."""
    bad: str = ""
    """Faults between two GPUs."""
    trouble: str = ""
    """Reason why the process hung or failed."""
    hung: bool = False
    warned: str = ""
    """Torch's own warning about unusable GPUs."""


def probe(command: Sequence[str] = PROBE_COMMAND, seconds: float = PROBE_SECONDS) -> Probed:
    """Counts the GPUs that torch can use, and tries copies between each two of them. Runs in a process that is killed
    at the timeout."""
    try:
        tried = subprocess.run(
            list(command), capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as late:
        said, hung = late.output, True  # bytes, though text was asked for
        out, error = said.decode(errors="replace") if isinstance(said, bytes) else said or "", ""
        trouble = f"it did not end within {seconds:g} s"
    else:
        out, error, hung = tried.stdout, tried.stderr, False
        trouble = (error.strip().splitlines() or ["no reason given"])[-1] if tried.returncode else ""
    seen, warned = SEEN.fullmatch(out.strip()), re.findall(r"UserWarning: (.+)", error)
    usable, cuda, bad = (int(seen[1]), seen[2], seen[3]) if seen else (None, "", "")
    return Probed(usable, cuda, bad, trouble, hung, warned[-1] if warned else "")


def gpus(
    found: Sequence[Gpu],
    listed: int,
    *,
    shown: int,
    learners: int,
    engine: str,
    weights: int = 0,
    ours: Collection[int] = (),
    ask_torch: Callable[[], Probed] | None = probe,
) -> Iterator[DoctorCheck]:
    """Yields all GPU checks of the doctor. The driver lists `listed` GPUs and CUDA shows `shown`; `learners`, `engine`
    and the bytes of `weights` are configured; `ours` are the appliance's processes. Without `ask_torch` torch is not
    tried, since another check already failed."""
    probed = ask_torch() if found and ask_torch is not None else None
    if not found and listed:
        yield warning(
            "gpus",
            f"the driver lists {listed}, but nvidia-smi finds none or does not answer",
            "they are not used: run `nvidia-smi -L` as the daemon's user, and put it on its PATH",
        )
    elif not found:
        yield ok("gpus", "none found by nvidia-smi", "models train and sample on the CPU")
    else:
        yield usable(found, shown, driver(), probed)
        yield others(ask("--query-compute-apps=pid,process_name,used_memory"), ours)
    if learners > max(1, shown) and found:
        yield warning("learners", f"{learners} on {shown} GPUs", "set model.learners to at most the number of GPUs")
    if found or listed or learners > 1 or engine == "vllm":
        yield shared_memory(Path("/dev/shm"), weights)  # noqa: S108 - it is looked at
        yield ptrace(Path("/proc/sys/kernel/yama/ptrace_scope"))
    if probed is not None and (probed.usable or 0) > 1:
        yield peers(probed)


def usable(found: Sequence[Gpu], shown: int, driver: str, probed: Probed | None) -> DoctorCheck:
    """Lists the GPUs, and warns if torch cannot use all that CUDA shows."""
    figure = f"{len(found)}: {', '.join(f'{one.name}, {one.total // GIB} GiB' for one in found)}"
    figure += "" if shown == len(found) else f"; CUDA_VISIBLE_DEVICES shows {shown}"
    if probed is None or probed.usable == shown:
        return ok("gpus", figure, driver)
    if probed.usable is None:
        trouble = ascii(probed.trouble)[1:-1][:200]
        return warning("gpus", f"{figure}; the torch test failed: {trouble}", f"check the driver ({driver})")
    why = f"torch says: {ascii(probed.warned)[1:-1][:200]}" if probed.warned else "check who may open /dev/nvidia*"
    why = f"it was built for CUDA {ascii(probed.cuda)[1:-1]}, which needs a matching driver (found: {driver}); {why}"
    mend = "it is CPU-only build: run install.sh again" if probed.cuda == "None" else why
    return warning(
        "gpus",
        f"{figure}; torch can use {probed.usable or 'none'}",
        f"the others stay unused, though `assay plan` counts them: {mend}",
    )


def ask(query: str, program: str = "nvidia-smi") -> str | None:
    """Returns the output of nvidia-smi for a query; None if it is missing, failed or too slow."""
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


def others(table: str | None, own: Collection[int]) -> DoctorCheck:
    """Names foreign processes on the GPUs, from lines of `process id, name, MiB` (memory may be unknown). Those in
    `own` are skipped. A table of None means that the driver's tool did not answer."""
    if table is None:
        return warning("gpu users", "nvidia-smi did not list their users", "run `nvidia-smi` to see why")
    rows = [row.groups() for row in map(USER.fullmatch, table.splitlines()) if row is not None]
    users = [row for row in rows if int(row[0]) not in own]
    if not users:
        return ok("gpu users", "no process uses them" if not rows else "only the daemon uses them")
    named = [
        f"{ascii(name)[1:-1][-40:]} (process {pid}, {f'{int(mib):,} MiB' if mib.isdecimal() else 'memory unknown'})"
        for pid, name, mib in users[:SHOWN]
    ]
    more = f" and {len(users) - SHOWN} more" if len(users) > SHOWN else ""
    return warning(
        "gpu users",
        f"{', '.join(named)}{more}",
        "end them yourself, or lower vllm.memory_share: models lack their memory",
    )


def shared_memory(folder: Path, weights: int = 0) -> DoctorCheck:
    """Checks that shared memory has space for passing model weights of this size, which takes `SPARE` times as much."""
    try:
        space = os.statvfs(folder)
    except OSError as error:
        return warning(
            "shared memory", f"{folder}: {error.strerror}", "weights go through slower temporary files in TMPDIR"
        )
    free, needed = space.f_bavail * space.f_frsize, SPARE * weights or GIB
    figure = f"{free / GIB:.1f} GiB free in {folder}"
    if weights:
        figure += f"; passing the configured model's weights takes {needed / GIB:.1f}"
    if free <= needed:
        return warning(
            "shared memory",
            figure,
            f"run `mount -o remount,size=50% {folder}`; in a container use --shm-size; temporary files, which are "
            "slower, go to TMPDIR",
        )
    return ok("shared memory", figure)


def ptrace(file: Path) -> DoctorCheck:
    """Reports Yama's scope of ptrace(2), which limits sharing of GPU memory between processes (CUDA IPC)."""
    try:
        scope = file.read_text().strip()
    except OSError:
        return ok("ptrace", "this kernel has no Yama")
    note = "" if scope == "0" else "weights are passed as files in shared memory, which needs no such right"
    return ok("ptrace", f"kernel.yama.ptrace_scope is {ascii(scope)[1:-1]}", note)


def peers(probed: Probed) -> DoctorCheck:
    """Checks that the tried copies between each two GPUs arrived intact."""
    if probed.hung:
        return warning("peer access", f"a copy between two GPUs: {probed.trouble}", NO_PEERS)
    if probed.trouble:
        return warning("peer access", f"the test failed: {ascii(probed.trouble)[1:-1][:200]}", "check the driver")
    said = ascii(probed.bad)[1:-1][:200]
    if "wrong bytes" in probed.bad:
        return warning("peer access", said, NO_PEERS)
    return ok("peer access", said or "each GPU reads each other one")
