"""Drops rights of a process irrevocably before it may run user code.

The filters are seccomp-bpf, installed through `prctl`; `runtime.guest.filters` defines them. Children inherit a filter,
and further filters only remove more.
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
    """Protects this process against tracing and /proc access by the same user, and sets no_new_privs for filters."""
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def end_with_parent(signal: int) -> None:
    """Makes the kernel send this signal to the process once the thread that started it has ended. (prctl(2))"""
    prctl(PR_SET_PDEATHSIG, signal)


class Filter:
    """Seccomp filter from a program of `runtime.guest.filters`, in its own memory, for one process or many."""

    def __init__(self, program: bytes) -> None:
        self._program = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("@HP", len(program) // 8, ctypes.addressof(self._program))
        self._header = ctypes.create_string_buffer(header)
        self.address = ctypes.addressof(self._header)
        """Address of its `struct sock_fprog`."""

    def install(self) -> None:
        """Installs the seccomp filter on this process, after `begin`. Raises OSError if the kernel refuses."""
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, self.address)


def prctl(option: int, first: int, second: int = 0) -> None:
    """Calls prctl(2). Raises OSError that names the option if the kernel refuses."""
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    if _LIBC.prctl(ctypes.c_int(option), *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")
