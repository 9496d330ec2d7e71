"""Channel from the service to the zygote: two pipes, its isolation, and a way to kill it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from runtime.errors import SandboxError
from runtime.profile import Cause
from verifiers.boxes.box import ToolBox, ToolBoxes
from verifiers.workers.process import ConfinedProcess
from verifiers.workers.program import NAME

BASE_MIB = 512
"""Memory of a zygote and its idle workers, in MiB."""
PIDS = 128


class Channel(Protocol):
    isolation: str
    """Isolation of the workers, as verdicts name it."""

    @property
    def descriptors(self) -> tuple[int, int]:
        """Descriptors for requests to the zygote and its replies, both non-blocking."""

    def out_of_memory(self) -> int:
        """Returns the number of the zygote's processes that the kernel killed for lack of memory."""

    def give_way(self, others_first: bool) -> None:
        """Lowers (or restores) the CPU priority of zygote and workers; best effort."""

    def kill(self) -> str:
        """Kills zygote and workers immediately. Returns why the zygote had ended, for people."""


Launch = Callable[[], Channel]
"""Starts a zygote, on the service's thread. Raises OSError or SandboxError."""


class BoxChannel:
    def __init__(self, box: ToolBox) -> None:
        self._box = box
        self.isolation: str = box.isolation

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._box.descriptors

    def out_of_memory(self) -> int:
        try:
            return self._box.usage().oom_kills
        except SandboxError:
            return 0

    def give_way(self, others_first: bool) -> None:
        self._box.give_way(others_first)

    def kill(self) -> str:
        cause = self._box.kill().cause
        return "it was ended" if cause is Cause.ASKED else f"its box ended: {cause.value}"


def in_boxes(boxes: ToolBoxes, memory_mib: int, workers: int) -> Launch:
    """Returns a launcher of zygotes in boxes. `memory_mib` is per worker; `workers` of them may use it all before the
    kernel kills the largest."""

    def launch() -> Channel:
        memory = BASE_MIB + workers * memory_mib
        return BoxChannel(boxes.box(NAME, memory_mib=memory, pids=PIDS, cpus=float(workers + 1), open_files=1024))

    return launch


def in_process(memory_mib: int) -> Launch:
    return lambda: ConfinedProcess(memory_mib)
