"""Measures the load of the daemon's machine: processors, memory, disk, GPUs, own processes, the broker's figures.

Invariants: nothing is changed, every query of another program has a timeout, and unknown values are left out; GPUs and
broker are queried at most once in `SECONDS`, by any number of callers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from appliance.client.screen import GpuUse, MachineView, ProcessUse
from runtime.broker import BrokerClient, connect
from runtime.errors import SandboxError
from runtime.reactor import Reactor

SECONDS = 2.0
ANSWER_SECONDS = 2.0
MIB = 1 << 20
GPU_QUERY = "--query-gpu=name,utilization.gpu,memory.used,memory.total"


class MachineWatch:
    """Measures the load of the daemon's machine; thread-safe. `broker` is the sandbox broker's socket."""

    def __init__(self, data: Path, broker: Path, proc: Path = Path("/proc")) -> None:
        self._data = data
        self._broker = broker
        self._proc = proc
        self._lock = threading.Lock()
        self._ticks: tuple[float, float] | None = None
        self._asked = float("-inf")
        self._gpus: tuple[GpuUse, ...] = ()
        self._sandboxes: dict[str, float] | None = None

    def view(self, processes: dict[str, int]) -> MachineView:
        """Returns the machine's current load: processors, memory, disk, GPUs and sandboxes. `processes` maps names to
        the pids to include."""
        with self._lock:
            if time.monotonic() - self._asked >= SECONDS:
                self._gpus, self._sandboxes = _gpus(), _broker_figures(self._broker)
                self._asked = time.monotonic()
            busy, whole = cpu_ticks((self._proc / "stat").read_text())
            before, self._ticks = self._ticks, (busy, whole)
            passed = whole - before[1] if before is not None else 0.0
            cpu = (busy - before[0]) / passed if before is not None and passed > 0 else None
            memory = memory_bytes((self._proc / "meminfo").read_text())
            disk = shutil.disk_usage(self._data)
            used = (_process(self._proc, name, pid) for name, pid in processes.items())
            return MachineView(
                cores=os.cpu_count() or 1,
                cpu=cpu,
                load=os.getloadavg()[0],
                memory_total=memory.get("MemTotal", 0),
                memory_available=memory.get("MemAvailable", 0),
                disk_total=disk.total,
                disk_free=disk.free,
                gpus=self._gpus,
                processes=tuple(one for one in used if one is not None),
                sandboxes=self._sandboxes,
            )


def cpu_ticks(stat: str) -> tuple[float, float]:
    """Returns (busy, all) ticks over all processors from /proc/stat (proc(5)): waiting for a disk is not busy."""
    ticks = [float(one) for one in stat.splitlines()[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def memory_bytes(meminfo: str) -> dict[str, int]:
    """Parses /proc/meminfo into bytes by name."""
    lines = (line.split() for line in meminfo.splitlines())
    return {name.rstrip(":"): int(size) << 10 for name, size, *_ in lines if size.isdigit()}


def gpu_uses(table: str) -> tuple[GpuUse, ...]:
    """Parses `nvidia-smi`'s lines of `name, percent, MiB, MiB` into each GPU's use; malformed lines are skipped."""
    found = []
    for line in table.splitlines():
        name, *rest = (part.strip() for part in line.rsplit(",", 3))
        if len(rest) == 3 and rest[1].isdigit() and rest[2].isdigit():
            busy = int(rest[0]) / 100 if rest[0].isdigit() else None
            found.append(GpuUse(name=name, busy=busy, used_bytes=int(rest[1]) * MIB, total_bytes=int(rest[2]) * MIB))
    return tuple(found)


def _gpus() -> tuple[GpuUse, ...]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, GPU_QUERY, "--format=csv,noheader,nounits"]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return gpu_uses(asked.stdout)


def _process(proc: Path, name: str, pid: int) -> ProcessUse | None:
    """Returns a process's memory and CPU time; None if it has ended."""
    try:
        fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    ticks = os.sysconf("SC_CLK_TCK")
    return ProcessUse(
        name=name,
        pid=pid,
        memory_bytes=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / ticks,
    )


def _broker_figures(path: Path) -> dict[str, float] | None:
    """Returns the sandbox broker's statistics; None if it does not answer in time."""
    if not path.exists():
        return None
    reactor = Reactor()
    answer: Future[dict[str, float] | None] = Future()
    try:
        connection = connect(path)

        def ask() -> None:
            client = BrokerClient(reactor, connection)

            def answered(values: dict[str, float] | None) -> None:
                answer.set_result(values)
                client.close()

            client.stats(lambda found: answered(None if isinstance(found, SandboxError) else found.values))

        reactor.call(ask)
        return answer.result(timeout=ANSWER_SECONDS)
    except (OSError, SandboxError, TimeoutError):
        return None
    finally:
        reactor.stop()
