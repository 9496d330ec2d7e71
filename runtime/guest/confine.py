"""Takes rights from a process before it may run user code; none of it can be undone.

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
    """Makes sure that nobody of the same user may trace this process or read its memory and descriptors through /proc;
    it and those it forks gain no rights by running a program, without which no filter may be installed."""
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def end_with_parent(signal: int) -> None:
    """Has the kernel send this to the process once the thread that started it has ended. (prctl(2))"""
    prctl(PR_SET_PDEATHSIG, signal)


class Filter:
    """Holds a program of `runtime.guest.filters`, in memory of its own, for one process or many."""

    def __init__(self, program: bytes) -> None:
        self._program = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("@HP", len(program) // 8, ctypes.addressof(self._program))
        self._header = ctypes.create_string_buffer(header)
        self.address = ctypes.addressof(self._header)
        """Of its `struct sock_fprog`."""

    def install(self) -> None:
        """After `begin`. Raises OSError when the kernel refuses it."""
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, self.address)


def prctl(option: int, first: int, second: int = 0) -> None:
    """Raises OSError with the option in it when the kernel refuses."""
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    if _LIBC.prctl(ctypes.c_int(option), *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
