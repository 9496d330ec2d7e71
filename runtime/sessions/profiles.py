"""What the sandboxes of each tier may use, and which modules they have imported before the first call."""

from __future__ import annotations

import os

from runtime.profile import Mode, Profile
from runtime.sandbox import Limits
from runtime.settings import RuntimeSettings


def profile(mode: Mode, preload: tuple[str, ...], limits: Limits, settings: RuntimeSettings) -> Profile:
    """Those with many sessions get a multiple of a session's limits, each session its own part. Only a sandbox of its
    own ends by its CPU time and its age: the others belong to nobody."""
    memory, address_space, pids, cpus, ahead = {
        "shared": (2 * limits.memory_mib, limits.memory_mib, limits.pids, limits.cpus, 0),
        "process": (
            4 * limits.memory_mib,
            limits.memory_mib,
            limits.pids + 8 * settings.process_sessions,
            max(limits.cpus, float(os.cpu_count() or 1)),
            settings.process_children,
        ),
        "sandbox": (limits.memory_mib, 4 * limits.memory_mib, limits.pids, limits.cpus, 1),
    }[mode]
    own = mode == "sandbox"
    return Profile(
        backend=settings.backend,
        mode=mode,
        preload=preload,
        memory_mib=memory,
        process_memory_mib=address_space,
        pids=pids,
        cpus=cpus,
        tmp_mib=limits.tmp_mib,
        work_mib=limits.work_mib,
        open_files=limits.open_files,
        output_bytes=limits.output_bytes,
        slice_seconds=settings.slice_seconds,
        ahead=ahead,
        cpu_seconds=limits.cpu_seconds if own else None,
        life_seconds=limits.life_seconds if own else None,
    )


PRELOADED = ("numpy", "sympy", "scipy", "mpmath")


def preload_for(source: str) -> tuple[str, ...]:
    return ()
