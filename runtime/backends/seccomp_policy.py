"""System calls allowed to a guest when only nsjail separates it from the host, as Kafel text.

Invariants: unlisted calls are denied with EPERM, and the numbers of another architecture (i386, x32) are no way around
that. The list is what CPython, numpy and small programs were observed to need: files, memory, clocks, pipes, threads
and, by mode, processes. Excluded on purpose: every socket but a connected pair, namespaces, mounts, tracing, other
processes' memory, keys, BPF, perf, io_uring, userfaultfd, priority futexes, POSIX timers, huge pages, memory merging,
page-cache probes, and anything that needs a capability. Arguments are compared with allowed values, never with
forbidden ones, unless a flag mask decides. Not promised: that the rest of the kernel has no flaw.

(Kafel's language: github.com/google/kafel; numbers: Linux, include/uapi.)
"""

from __future__ import annotations

from runtime.errors import RefusedError
from runtime.profile import Mode

FILES = """
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close close_range openat
    newfstat newfstatat statx faccessat faccessat2 readlinkat getdents64 getcwd chdir fchdir umask dup dup3 pipe2
    ftruncate truncate fallocate fsync fdatasync flock sendfile64
    mkdirat unlinkat renameat renameat2 linkat symlinkat fchmod fchmodat utimensat
    ppoll pselect6 epoll_create1 epoll_ctl epoll_pwait eventfd2
    open creat newstat newlstat access readlink getdents dup2 pipe mkdir rmdir unlink rename link symlink
    chmod utime utimes futimesat poll select epoll_create epoll_wait eventfd
"""
"""File calls; the last two lines are older forms that only x86-64 has."""
MEMORY = "brk munmap mprotect mremap msync getrandom"
THREADS = "set_tid_address set_robust_list rseq gettid sched_yield sched_getaffinity exit exit_group"
SIGNALS = """
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack restart_syscall
    tgkill setitimer getitimer
"""
CLOCKS = "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday times time alarm pause"
IDENTITY = """
    getpid getppid getuid geteuid getgid getegid getgroups getresuid getresgid getpgid getsid newuname getrusage
    getrlimit setrlimit getpgrp execve
"""
PROCESSES = "fork vfork kill wait4 waitid setpgid setsid"
PROGRAM = "setpriority getpriority sysinfo"
"""Calls of host programs only: lowering priority in a long process, and reading the memory size."""
ABSENT = """
    clone3 openat2 execveat fchmodat2 futex_waitv futex_wait futex_wake futex_requeue epoll_pwait2 pidfd_open
    io_uring_setup copy_file_range membarrier map_shadow_stack landlock_create_ruleset
"""
"""Calls reported as unknown to the kernel, so that libraries use the older call, whose arguments can be checked."""
UNSUPPORTED = "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr"
"""Calls denied as by a file system without extended attributes: file copies continue without them."""
WITHOUT_EFFECT = "fadvise64"
"""Advice about the page cache, which all guests share: accepted and ignored."""

NAMESPACES = 0x7E020000
"""Mask of every CLONE_NEW* flag of clone(2) (CLONE_NEWTIME is not one, and clone3 is absent)."""
CLONE_THREAD = 0x10000
FUTEX_OPERATIONS = (0, 1, 3, 4, 5, 9, 10)
"""WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, WAIT_BITSET, WAKE_BITSET; FUTEX_PRIVATE and _CLOCK_REALTIME are masked."""
FCNTL_COMMANDS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1031, 1032)
"""F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, both kinds of locks, F_DUPFD_CLOEXEC, pipe sizes. Locks belong to an
inode, and boxes share none (`nsjail_jail`). Excluded: leases, notices, owners and signals."""
IOCTL_COMMANDS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS and TIOCGWINSZ (terminal detection), FIONREAD, FIONBIO, FIONCLEX, FIOCLEX."""
ADVICE = (0, 1, 2, 3, 4, 8, 14, 15)
"""NORMAL, RANDOM, SEQUENTIAL, WILLNEED, DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE; nothing that merges or poisons pages."""
PRCTL_OPTIONS = (1, 3, 4, 15, 16, 38, 39)
"""PDEATHSIG, DUMPABLE, NAME, NO_NEW_PRIVS."""
MAP_HUGETLB = 0x40000
"""Huge pages come from a host pool that the memory group does not count."""
MSG_OOB = 1
SECCOMP_FILTER = "option == 22 && arg2 == 2"
"""Condition for the worker's own filters; its first filter denies this to everything afterwards, except to compute-only
processes, which need one more."""
FILE_TYPE, FIFO, REGULAR = 0o170000, 0o010000, 0o100000
SET_FS, GET_FS = 0x1002, 0x1003


def _one_of(expression: str, values: tuple[int, ...]) -> str:
    return " || ".join(f"{expression} == {value}" for value in values)


CONDITIONS = {
    "futex": _one_of("(op & 127)", FUTEX_OPERATIONS),
    "fcntl": _one_of("cmd", FCNTL_COMMANDS),
    "ioctl": _one_of("cmd", IOCTL_COMMANDS),
    "madvise": _one_of("behavior", ADVICE),
    "mmap": f"(flags & {MAP_HUGETLB}) == 0",
    "prlimit64": "pid == 0",
    "prctl": f"{_one_of('option', PRCTL_OPTIONS)} || ({SECCOMP_FILTER})",
    "mknod": _one_of(f"(mode & {FILE_TYPE})", (FIFO, REGULAR)),
    "mknodat": _one_of(f"(mode & {FILE_TYPE})", (FIFO, REGULAR)),
    "arch_prctl": _one_of("code", (SET_FS, GET_FS)),
}
FORKING = {"clone": f"(clone_flags & {NAMESPACES}) == 0"}
THREADING = {"clone": f"(clone_flags & {NAMESPACES}) == 0 && (clone_flags & {CLONE_THREAD}) == {CLONE_THREAD}"}
SOCKET_PAIR = {
    "socketpair": "family == 1 && ((type & 15) == 1 || (type & 15) == 5)",
    "sendto": f"addr == 0 && (flags & {MSG_OOB}) == 0",
    "recvfrom": f"addr == 0 && (flags & {MSG_OOB}) == 0",
}
"""Sockets connected from birth: a stream or packet sequence between two processes of the guest."""
PASSING = dict.fromkeys(("sendmsg", "recvmsg"), f"(flags & {MSG_OOB}) == 0")
"""Descriptor passing from the worker to its fork server; no user code runs there unconfined."""


def _conditions(mode: Mode) -> dict[str, str]:
    found = dict(CONDITIONS)
    if mode == "shared":
        found |= THREADING
    else:
        found |= FORKING | SOCKET_PAIR
    if mode == "process":
        found |= PASSING
    return found


def policy(mode: Mode, machine: str, *, program: bool = False) -> str:
    """Returns the system-call policy of one worker mode, or of a host program, for nsjail's `seccomp_string`. Raises
    RefusedError on an untested machine: without a policy nothing runs."""
    if machine != "x86_64":
        raise RefusedError(f"no system-call policy for {machine}", hint="Use an x86-64 machine, or gVisor.")
    groups = [FILES, MEMORY, THREADS, SIGNALS, CLOCKS, IDENTITY, *([] if mode == "shared" else [PROCESSES])]
    groups += [PROGRAM] if program else []
    actions = {
        "ALLOW": " ".join(groups).split() + [f"{name} {{ {test} }}" for name, test in _conditions(mode).items()],
        "ERRNO(38)": ABSENT.split(),
        "ERRNO(95)": UNSUPPORTED.split(),
        "ERRNO(0)": WITHOUT_EFFECT.split(),
    }
    rules = ", ".join(f"{action} {{ {', '.join(rules)} }}" for action, rules in actions.items())
    return f"POLICY guest {{ {rules} }} USE guest DEFAULT ERRNO(1)"
