"""Builds system-call filters for the kernel's packet filter; gVisor's or the host's kernel enforces them.

`compute_only` lists allowed calls for compute-only processes: they work on open descriptors, memory and clocks, so they
can neither name a file nor reach another process; any other call ends the process. `one_world` lists refused calls for
all other processes: new namespaces and mounts (through a `/proc` mounted in its own namespace, user code could open the
pipes of its supervisor), other processes' memory, and own filters. Everything else stays possible. `reading_only` is
between the two, for host programs.

(Linux, Documentation/userspace-api/seccomp_filter.rst; linux/filter.h)
"""

from __future__ import annotations

import struct

KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
PERMISSION = 0x00050000 | 1
"""Fails with EPERM."""
NOT_THERE = 0x00050000 | 38
"""Fails with ENOSYS: the C library then uses the older call."""
SIGCONT = 18
LOAD_WORD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
OFFSET_NUMBER, OFFSET_ARCHITECTURE, OFFSET_FIRST_ARGUMENT, ARGUMENT_BYTES = 0, 4, 16, 8
OTHER_ABI = 0x40000000
"""First system-call number of x32."""
NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
PR_SET_SECCOMP = 22
NEW_THREAD = 0x00010000
WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND and the distinct bit of O_TMPFILE."""
SET_FLAGS = 4
"""F_SETFL. Lower fcntl commands copy a descriptor or read flags; this one and higher ones are not needed."""

COMPUTE = {
    "x86_64": {
        "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12,
        "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "writev": 20, "sched_yield": 24, "mremap": 25,
        "madvise": 28, "exit": 60, "gettimeofday": 96, "getuid": 102, "sigaltstack": 131, "gettid": 186,
        "time": 201, "futex": 202, "clock_gettime": 228, "clock_getres": 229, "exit_group": 231,
    },
    "aarch64": {
        "close": 57, "lseek": 62, "read": 63, "write": 64, "writev": 66, "fstat": 80, "exit": 93, "exit_group": 94,
        "futex": 98, "clock_gettime": 113, "clock_getres": 114, "sched_yield": 124, "sigaltstack": 132,
        "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "gettimeofday": 169,
        "getuid": 174, "gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222, "mprotect": 226,
        "madvise": 233,
    },
}  # fmt: skip
_REFUSED_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "open_tree_attr": 467,
}  # fmt: skip
REFUSED = {
    "x86_64": _REFUSED_EVERYWHERE | {
        "ptrace": 101, "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "kexec_load": 246,
        "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "seccomp": 317, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    },
    "aarch64": _REFUSED_EVERYWHERE | {
        "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "unshare": 97, "kexec_load": 104, "ptrace": 117,
        "add_key": 217, "request_key": 218, "keyctl": 219, "perf_event_open": 241, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "seccomp": 277, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
    },
}  # fmt: skip
READING = {
    "x86_64": {
        "open": 2, "stat": 4, "lstat": 6, "poll": 7, "pread64": 17, "readv": 19, "access": 21, "select": 23,
        "nanosleep": 35, "getitimer": 36, "alarm": 37, "setitimer": 38, "getpid": 39, "clone": 56, "uname": 63,
        "fcntl": 72,
        "getcwd": 79, "readlink": 89, "getrlimit": 97, "getrusage": 98, "sysinfo": 99, "times": 100, "getgid": 104,
        "geteuid": 107, "getegid": 108, "getppid": 110, "sched_getaffinity": 204, "getdents64": 217,
        "clock_nanosleep": 230, "openat": 257, "newfstatat": 262, "readlinkat": 267, "faccessat": 269, "ppoll": 271,
        "set_robust_list": 273, "prlimit64": 302, "getrandom": 318, "statx": 332, "rseq": 334,
        "faccessat2": 439,
    },
    "aarch64": {
        "fcntl": 25, "faccessat": 48, "openat": 56, "getdents64": 61, "readv": 65, "pread64": 67, "ppoll": 73,
        "readlinkat": 78, "newfstatat": 79, "set_robust_list": 99, "nanosleep": 101, "getitimer": 102,
        "setitimer": 103, "clock_nanosleep": 115, "sched_getaffinity": 123, "times": 153, "uname": 160, "getpid": 172,
        "getrlimit": 163, "getrusage": 165, "getppid": 173, "geteuid": 175, "getgid": 176, "getegid": 177,
        "sysinfo": 179, "getcwd": 17, "clone": 220, "prlimit64": 261, "getrandom": 278,
        "statx": 291, "rseq": 293, "faccessat2": 439,
    },
}  # fmt: skip
"""Additional calls of host programs, for loading modules, sleeping and starting threads."""
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE = {"x86_64": 56, "aarch64": 220}
PRCTL = {"x86_64": 157, "aarch64": 167}
CLONE3 = 435

Line = bytes | tuple[int, int, str, str]
"""Instruction, or a jump: code, value, and the labels for true and false; an empty label means the next line."""


def compute_only(machine: str) -> bytes:
    """Builds the seccomp filter of compute-only processes. It ends a process at the first unlisted call, and at a
    handler for SIGCONT, which wakes a stopped process. Calls that cannot be replayed are not listed: kernel random
    numbers, the pid. Raises KeyError for an unsupported machine."""
    cases = dict.fromkeys(COMPUTE[machine].values(), "listed") | {COMPUTE[machine]["rt_sigaction"]: "handler"}
    lines, labels = _begin(machine)
    _search(lines, labels, cases, "foreign")
    return _assemble(
        lines,
        labels,
        {
            "handler": [instruction(LOAD_WORD, OFFSET_FIRST_ARGUMENT), (JUMP_IF_EQUAL, SIGCONT, "foreign", "listed")],
            "listed": [_return(ALLOW)],
            "foreign": [_return(KILL_PROCESS)],
        },
    )


def reading_only(machine: str) -> bytes:
    """Builds the seccomp filter of host programs that read hostile input: they may compute, load modules and start
    threads.

    Everything else fails: opening for writing, starting processes or programs, signalling, tracing or limiting others,
    every socket. Raises KeyError for an unsupported machine.
    """
    numbers = COMPUTE[machine] | READING[machine]
    cases = dict.fromkeys(numbers.values(), "listed") | {CLONE3: "absent", CLONE[machine]: "clone"}
    cases[numbers["openat"]] = "openat"
    cases[numbers["fcntl"]] = "fcntl"
    cases[numbers["prlimit64"]] = "limits"
    if "open" in numbers:
        cases[numbers["open"]] = "open"
    lines, labels = _begin(machine)
    _search(lines, labels, cases, "refused")

    def argument(number: int) -> bytes:
        return instruction(LOAD_WORD, OFFSET_FIRST_ARGUMENT + ARGUMENT_BYTES * number)

    return _assemble(
        lines,
        labels,
        {
            "open": [argument(1), (JUMP_IF_ANY_BIT, WRITING, "refused", "listed")],
            "openat": [argument(2), (JUMP_IF_ANY_BIT, WRITING, "refused", "listed")],
            "fcntl": [argument(1), (JUMP_IF_AT_LEAST, SET_FLAGS, "refused", "listed")],
            "clone": [argument(0), (JUMP_IF_ANY_BIT, NEW_THREAD, "listed", "refused")],
            "limits": [argument(0), (JUMP_IF_EQUAL, 0, "listed", "refused")],
            "absent": [_return(NOT_THERE)],
            "refused": [_return(PERMISSION)],
            "listed": [_return(ALLOW)],
            "foreign": [_return(KILL_PROCESS)],
        },
    )


def one_world(machine: str, *, filters: bool) -> bytes:
    """Builds a seccomp filter that refuses the listed calls, limiting other processes, and, unless `filters`, new
    filters. Raises KeyError for an unsupported machine."""
    cases = dict.fromkeys(REFUSED[machine].values(), "refused") | {CLONE3: "absent", CLONE[machine]: "clone"}
    cases[READING[machine]["prlimit64"]] = "limits"
    if not filters:
        cases[PRCTL[machine]] = "prctl"
    lines, labels = _begin(machine)
    lines.append((JUMP_IF_AT_LEAST, OTHER_ABI, "refused", ""))
    _search(lines, labels, cases, "other")
    first_argument = instruction(LOAD_WORD, OFFSET_FIRST_ARGUMENT)
    return _assemble(
        lines,
        labels,
        {
            "clone": [first_argument, (JUMP_IF_ANY_BIT, NEW_NAMESPACES, "refused", "other")],
            "prctl": [first_argument, (JUMP_IF_EQUAL, PR_SET_SECCOMP, "refused", "other")],
            "limits": [first_argument, (JUMP_IF_EQUAL, 0, "other", "refused")],
            "absent": [_return(NOT_THERE)],
            "refused": [_return(PERMISSION)],
            "other": [_return(ALLOW)],
            "foreign": [_return(KILL_PROCESS)],
        },
    )


def answering(machine: str, answers: dict[int, int], *, foreign: int) -> bytes:
    """Builds a seccomp filter that gives the listed calls fixed answers, calls of another architecture `foreign`, and
    passes the rest. Raises KeyError for an unsupported machine."""
    lines, labels = _begin(machine)
    _search(lines, labels, {number: f"answer {answer}" for number, answer in answers.items()}, "other")
    ends: dict[str, list[Line]] = {f"answer {answer}": [_return(answer)] for answer in answers.values()}
    return _assemble(lines, labels, ends | {"other": [_return(ALLOW)], "foreign": [_return(foreign)]})


def _begin(machine: str) -> tuple[list[Line], dict[str, int]]:
    """Returns a seccomp filter's first lines: load the call number; jump to `foreign` for another architecture."""
    lines: list[Line] = [
        instruction(LOAD_WORD, OFFSET_ARCHITECTURE),
        (JUMP_IF_EQUAL, AUDIT[machine], "", "foreign"),
        instruction(LOAD_WORD, OFFSET_NUMBER),
    ]
    return lines, {}


def _search(lines: list[Line], labels: dict[str, int], cases: dict[int, str], default: str) -> None:
    """Appends a binary search for the system call's number to a seccomp filter: gVisor runs a new filter once for every
    existing number."""
    numbers = sorted(cases)
    if len(numbers) == 1:
        lines.append((JUMP_IF_EQUAL, numbers[0], cases[numbers[0]], default))
        return
    middle = numbers[len(numbers) // 2]
    lines.append((JUMP_IF_AT_LEAST, middle, f"from {middle}", ""))
    _search(lines, labels, {number: cases[number] for number in numbers if number < middle}, default)
    labels[f"from {middle}"] = len(lines)
    _search(lines, labels, {number: cases[number] for number in numbers if number >= middle}, default)


def _assemble(lines: list[Line], labels: dict[str, int], ends: dict[str, list[Line]]) -> bytes:
    """Assembles a seccomp filter's lines and labels into its bytes. Raises struct.error for a jump beyond one byte."""
    for label, end in ends.items():
        labels[label] = len(lines)
        lines += end
    program = []
    for position, line in enumerate(lines):
        if isinstance(line, bytes):
            program.append(line)
        else:
            code, value, so, not_so = line
            distances = [labels[label] - position - 1 if label else 0 for label in (so, not_so)]
            program.append(instruction(code, value, *distances))
    return b"".join(program)


def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Returns one seccomp filter instruction, a `struct sock_filter`."""
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _return(value: int) -> bytes:
    return instruction(RETURN, value)
