"""The zygote as the service sees it: two pipes, what it is held in, and an end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from runtime.errors import SandboxError
from runtime.profile import Cause
from verifiers.boxes.box import ToolBox, ToolBoxes
from verifiers.workers.process import ConfinedProcess
from verifiers.workers.program import NAME

BASE_MIB = 512
"""What a zygote and its idle workers take."""
PIDS = 128


class Channel(Protocol):
    isolation: str
    """As a verdict names it."""

    @property
    def descriptors(self) -> tuple[int, int]:
        """Requests and replies, neither of which blocks."""

    def out_of_memory(self) -> int:
        """How many of its processes the kernel has ended for want of memory."""

    def give_way(self, others_first: bool) -> None:
        """Whether it computes mostly when nobody else does, as far as that can be had."""

    def kill(self) -> str:
        """Ends it at once; why it had ended, for a person."""


Launch = Callable[[], Channel]
"""Raises OSError or SandboxError. Called on the thread of the service."""


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
    """`memory_mib` for a worker's own use; so many may use it all at once before the kernel ends the largest."""

    def launch() -> Channel:
        memory = BASE_MIB + workers * memory_mib
        return BoxChannel(boxes.box(NAME, memory_mib=memory, pids=PIDS, cpus=float(workers + 1), open_files=1024))

    return launch


def in_process(memory_mib: int) -> Launch:
    return lambda: ConfinedProcess(memory_mib)
