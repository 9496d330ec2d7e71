"""A system-call filter for processes that may only compute: everything else ends the process with SIGSYS.

The filter is seccomp-bpf, installed through `prctl` by the process itself before it runs any user code; gVisor's kernel
enforces it. What is allowed can neither name a file nor reach another process: it works on open descriptors, on memory
and on clocks. (Linux, Documentation/userspace-api/seccomp_filter.rst; struct layouts from linux/filter.h)
"""

from __future__ import annotations

import ctypes
import os
import struct

PR_SET_DUMPABLE = 4
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
LOAD_WORD = 0x20
JUMP_IF_EQUAL = 0x15
RETURN = 0x06
OFFSET_NUMBER, OFFSET_ARCHITECTURE = 0, 4

X86_64 = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
    "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "writev": 20, "sched_yield": 24, "mremap": 25,
    "madvise": 28, "getpid": 39, "exit": 60, "gettimeofday": 96, "getuid": 102, "sigaltstack": 131, "gettid": 186,
    "time": 201, "futex": 202, "clock_gettime": 228, "clock_getres": 229, "exit_group": 231, "getrandom": 318,
}  # fmt: skip
AARCH64 = {
    "close": 57, "lseek": 62, "read": 63, "write": 64, "writev": 66, "fstat": 80, "exit": 93, "exit_group": 94,
    "futex": 98, "clock_gettime": 113, "clock_getres": 114, "sched_yield": 124, "sigaltstack": 132,
    "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "gettimeofday": 169, "getpid": 172,
    "getuid": 174, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226,
    "madvise": 233, "getrandom": 278,
}  # fmt: skip
ARCHITECTURES = {"x86_64": (0xC000003E, X86_64), "aarch64": (0xC00000B7, AARCH64)}


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """One `struct sock_filter`."""
    return struct.pack("<HBBI", code, if_true, if_false, value)


def program(machine: str) -> bytes:
    """The filter for one architecture: a foreign architecture or an unlisted number ends the process.

    Raises KeyError for a machine without a table: no filter, no process tier.
    """
    audit, numbers = ARCHITECTURES[machine]
    allowed = sorted(numbers.values())
    checks = [
        instruction(JUMP_IF_EQUAL, number, if_true=len(allowed) - position) for position, number in enumerate(allowed)
    ]
    return b"".join(
        [
            instruction(LOAD_WORD, OFFSET_ARCHITECTURE),
            instruction(JUMP_IF_EQUAL, audit, if_true=1),
            instruction(RETURN, KILL_PROCESS),
            instruction(LOAD_WORD, OFFSET_NUMBER),
            *checks,
            instruction(RETURN, KILL_PROCESS),
            instruction(RETURN, ALLOW),
        ]
    )


def _prctl(option: int, first: int, second: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_ulong(value) for value in (first, second, 0, 0)]
    if libc.prctl(ctypes.c_int(option), *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def hide() -> None:
    """Nobody of the same user may trace this process or read its memory and descriptors through /proc."""
    _prctl(PR_SET_DUMPABLE, 0)


def compute_only(machine: str) -> None:
    """Irrevocably confines the calling process. Raises OSError when the kernel refuses the filter."""
    code = program(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(header))
