"""Drops rights of a host process before it reads hostile text; the kernel enforces this irrevocably.

`runtime.guest.filters` defines the system-call filters.
"""

from __future__ import annotations

import os

from runtime.guest import confine, filters
from runtime.guest.confine import end_with_parent

__all__ = ["allow_reading_only", "end_with_parent", "stay_in_namespaces"]


def allow_reading_only() -> None:
    """Restricts this process to reading: no files opened for writing, processes, programs, signals to others or
    sockets. Raises OSError if the kernel refuses the filter."""
    confine.begin()
    confine.Filter(filters.reading_only(os.uname().machine)).install()


def stay_in_namespaces() -> None:
    """Forbids this process and its children new namespaces, mounts and access to other processes' memory. They may
    install further filters. Raises OSError if the kernel refuses the filter."""
    confine.begin()
    confine.Filter(filters.one_world(os.uname().machine, filters=True)).install()
