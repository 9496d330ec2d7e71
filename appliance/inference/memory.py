"""Memory limits, and the thresholds of the KV cache and of a learner's offloading."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

SHORT = 1024
"""Maximum conversation tokens without blocks: each row then has slots for two such conversations."""
WINDOW = 512
"""Slots per row beside the blocks, for longer conversations."""
CHUNK = 512
"""Maximum tokens of a row read per step with blocks."""
READ_TOKENS = 2048
"""Maximum tokens of a pass that reads prompts, including padding."""
KEPT_TOKENS = 4096
"""Maximum tokens of an engine's cached prompts."""
SCORE_LOGITS = 1 << 24
"""Maximum logits per scoring pass: 64 MiB."""

IN_FLIGHT = 5
"""Inputs of layers that a GPU has beside a learner's computation while they move to main memory."""


def trim_heap() -> None:
    """Returns the freed blocks of malloc's heap to the system, as far as the C library can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


def memory_limit() -> int:
    """Returns the memory limit of this process in bytes: the machine's, or its control group's (version 2) if lower."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    root = Path("/sys/fs/cgroup")
    own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), "")
    group = root / own.lstrip("/")
    for folder in (group, *group.parents):
        if folder.is_relative_to(root) and (folder / "memory.max").is_file():
            limit = (folder / "memory.max").read_text().strip()
            limits += [int(limit)] if limit.isdigit() else []
    return min(limits)
