"""Guest definition as data: command, environment, limits and mounts, in one place.

`config` builds the OCI bundle of one gVisor sandbox (Open Container Initiative runtime specification 1.0.2); the rest
is common to all backends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.profile import Profile
from runtime.programs import Program

UID = 1000
FILE_MIB = 32
"""Minimum of the largest file size in MiB; a larger /work raises it."""
CAPABILITIES = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETUID")
"""Capabilities of a guest with users in gVisor's own kernel, the minimum to have users. They mean nothing to the host's
kernel, which gVisor itself uses without any."""
ETC_MIB, HOME_MIB = 1, 16
SHARED_MIB = 16
WORKER_FILES = 256
"""Descriptors that the worker may need; user code gets no more than its profile allows."""
COMMAND = ("/usr/bin/python3", "-P", "-s", "-S", "-B", "-u", "-W", "ignore", "/opt/runtime/guest/worker.py")
"""Guest command; mode and limits follow as arguments. Not -I, which also ignores PYTHONHASHSEED: sets of strings have
the same order in every guest, so that a history can be replayed anywhere."""
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/work",
    "TMPDIR": "/tmp",  # noqa: S108 - the guest's own
    "LANG": "C.UTF-8",
    "TZ": "UTC0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def command(profile: Profile, program: Program | None) -> tuple[str, ...]:
    return program.argv if program is not None else (*COMMAND, profile.mode, profile.worker_limits())


def environment(program: Program | None) -> dict[str, str]:
    return ENVIRONMENT if program is None else ENVIRONMENT | {"HOME": "/tmp"} | program.environment  # noqa: S108


def folder(program: Program | None) -> str:
    """Returns the working folder in which a guest, or this host program, starts."""
    return "/work" if program is None else "/tmp"  # noqa: S108 - the guest's own


def rlimits(profile: Profile, program: Program | None = None) -> dict[str, int]:
    """Returns the rlimits of every process of a guest, enforced by gVisor's or the host's kernel; bytes and counts."""
    limits = {
        "RLIMIT_NOFILE": max(profile.open_files, WORKER_FILES),
        "RLIMIT_FSIZE": max(FILE_MIB, profile.work_mib) << 20,
        "RLIMIT_NPROC": profile.pids,
        "RLIMIT_CORE": 0,
    }
    if program is None or program.address_space:
        limits["RLIMIT_AS"] = (4 * profile.memory_mib) << 20
    return limits


def _tmpfs(path: str, mib: int, mode: str = "1777") -> dict[str, Any]:
    options = ["nosuid", "nodev", f"size={mib}m", f"mode={mode}"]
    return {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": options}


def _bind(path: Path) -> dict[str, Any]:
    options = ["bind", "ro", "nosuid", "nodev"]
    return {"destination": str(path), "type": "bind", "source": str(path.resolve()), "options": options}


def config(profile: Profile, root: Path, program: Program | None = None) -> dict[str, Any]:
    """Returns a guest's OCI configuration: read-only root, small tmpfs mounts, no network, no capabilities, an ordinary
    user, and a program's folders. A guest with users starts as its root, with writable /etc and homes."""
    held = list(CAPABILITIES) if profile.users else []
    kept = {"bounding": held, "effective": held, "permitted": held, "inheritable": [], "ambient": []}
    homes = [_tmpfs("/etc", ETC_MIB, "755"), _tmpfs("/home", HOME_MIB, "755"), _tmpfs("/root", HOME_MIB, "700")]
    homes.append(_tmpfs("/dev/shm", HOME_MIB))  # noqa: S108 - semaphores of Python's multiprocessing
    uid = 0 if profile.users else UID
    proc = {"destination": "/proc", "type": "tmpfs", "source": "tmpfs", "options": ["ro", "size=4k", "mode=555"]}
    if program is not None and program.proc:
        proc = {"destination": "/proc", "type": "proc", "source": "proc", "options": []}
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": uid},
            "args": list(command(profile, program)),
            "env": [f"{name}={value}" for name, value in environment(program).items()],
            "cwd": folder(program),
            "capabilities": kept,
            "rlimits": [{"type": name, "hard": most, "soft": most} for name, most in rlimits(profile, program).items()],
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "hostname": "sandbox",
        "mounts": [
            proc,  # empty for guests: through a real one gVisor lets a process open the pipes of its supervisor
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            _tmpfs("/dev/shm", SHARED_MIB),  # noqa: S108 - semaphores and shared memory, as of `multiprocessing`
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
            _tmpfs("/tmp", profile.tmp_mib),  # noqa: S108
            *(homes if profile.users else []),
            *([_tmpfs("/work", profile.work_mib)] if program is None else map(_bind, program.mounts)),
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network")]},
    }
