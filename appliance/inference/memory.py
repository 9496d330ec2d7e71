"""Says how much memory there is to use, and what of it keys and values take."""

from __future__ import annotations

import os
from pathlib import Path

SHORT = 1024
"""Tokens of the longest conversation up to which each row has slots for two of them: then nothing is in blocks."""
WINDOW = 512
"""Slots of each row beside the blocks, where conversations may be longer."""


def memory_limit() -> int:
    """Bytes that this process may ever have: the machine's, or less by its control group (version 2)."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    root = Path("/sys/fs/cgroup")
    own = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), "")
    group = root / own.lstrip("/")
    for folder in (group, *group.parents):
        if folder.is_relative_to(root) and (folder / "memory.max").is_file():
            limit = (folder / "memory.max").read_text().strip()
            limits += [int(limit)] if limit.isdigit() else []
    return min(limits)
