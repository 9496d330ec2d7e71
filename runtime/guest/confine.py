"""What a process does to itself before it may run user code; none of it can be undone.

The filters are seccomp-bpf, installed through `prctl`; what they hold is said in `runtime.guest.filters`. A filter is
inherited by all that a process forks or runs, and further ones only take more away.
"""

from __future__ import annotations

import ctypes
import os
import struct

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2


_LIBC = ctypes.CDLL(None, use_errno=True)


def begin() -> None:
    """Nobody of the same user may trace this process or read its memory and descriptors through /proc; it and those it
    forks gain no rights by running a program, without which no filter may be installed."""
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def end_with_parent(signal: int) -> None:
    """The kernel sends this to the process once the thread that started it has ended. (prctl(2))"""
    _prctl(PR_SET_PDEATHSIG, signal)


class Filter:
    """A program of `runtime.guest.filters`, in memory of its own, for one process or many."""

    def __init__(self, program: bytes) -> None:
        self._program = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("@HP", len(program) // 8, ctypes.addressof(self._program))
        self._header = ctypes.create_string_buffer(header)

    def install(self) -> None:
        """After `begin`. Raises OSError when the kernel refuses it."""
        _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(self._header))


def _prctl(option: int, first: int, second: int = 0) -> None:
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    if _LIBC.prctl(ctypes.c_int(option), *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
