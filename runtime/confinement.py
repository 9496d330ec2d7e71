"""Takes rights from a process of ours before it meets hostile text; the kernel keeps it, and none of it can be undone.

`runtime.guest.filters` says what the filters of system calls hold.
"""

from __future__ import annotations

import os

from runtime.guest import confine, filters
from runtime.guest.confine import end_with_parent

__all__ = ["allow_reading_only", "end_with_parent", "stay_in_namespaces"]


def allow_reading_only() -> None:
    """Leaves reading only: from here on this process can open no file for writing, start no process or program, signal
    no other and have no socket. Raises OSError when the kernel refuses the filter."""
    confine.begin()
    confine.Filter(filters.reading_only(os.uname().machine)).install()


def stay_in_namespaces() -> None:
    """Sees to it that from here on this process and all that it starts make no namespaces or mounts and reach no
    other's memory; they may install further filters. Raises OSError when the kernel refuses the filter."""
    confine.begin()
    confine.Filter(filters.one_world(os.uname().machine, filters=True)).install()
