"""The control groups of a sandbox as the kernel shows them, in whichever version there is."""

from __future__ import annotations

from pathlib import Path

from runtime.backends.cgroups import located, quota
from runtime.backends.process_box import RESTING_CPUS


def groups(pattern: str) -> list[Path]:
    """Control groups of this machine whose names are like that."""
    here = located()
    return [found for each in here for folder in set(each.folders.values()) for found in folder.glob(pattern)]


def is_resting(box: str) -> bool:
    """Whether a sandbox gets next to no processor."""
    for group in groups(f"assay-*.{box}"):
        for file, version in (("cpu.cfs_quota_us", 1), ("cpu.max", 2)):
            if (group / file).exists():
                return (group / file).read_text().strip() == quota(version, RESTING_CPUS)
    raise AssertionError(f"nothing limits what {box} takes")
