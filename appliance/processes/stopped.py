"""Tells whether a signal holds a process: it is there, ends nothing, and does nothing."""

from __future__ import annotations

from pathlib import Path


def is_stopped(pid: int) -> bool:
    """Whether it was stopped (SIGSTOP, a debugger) and has not been told to go on. See proc(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False
