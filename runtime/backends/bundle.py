"""What a guest gets, as data: its command, environment, limits and mounts are decided here and nowhere else.

`config` makes the OCI bundle of one gVisor sandbox of it (Open Container Initiative runtime specification 1.0.2); the
rest is the same under every backend.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.profile import Profile

UID = 1000
FILE_MIB = 32
WORKER_FILES = 256
"""Descriptors that the worker itself may need; it gives what runs user code no more than the profile says."""
COMMAND = ("/usr/bin/python3", "-P", "-s", "-S", "-B", "-u", "-W", "ignore", "/opt/runtime/guest/worker.py")
"""Mode and limits follow as arguments. Not -I, which ignores PYTHONHASHSEED too: strings have the same order in sets of
every guest, so that a history repeats itself anywhere."""
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


def rlimits(profile: Profile) -> dict[str, int]:
    """What the kernel, gVisor's or the host's, enforces on every process of a guest; bytes and counts."""
    return {
        "RLIMIT_AS": (4 * profile.memory_mib) << 20,
        "RLIMIT_NOFILE": max(profile.open_files, WORKER_FILES),
        "RLIMIT_FSIZE": FILE_MIB << 20,
        "RLIMIT_NPROC": profile.pids,
        "RLIMIT_CORE": 0,
    }


def _tmpfs(path: str, mib: int) -> dict[str, Any]:
    options = ["nosuid", "nodev", f"size={mib}m", "mode=1777"]
    return {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": options}


def config(profile: Profile, root: Path) -> dict[str, Any]:
    """A read-only root, two small tmpfs, no network, no capability, an ordinary user."""
    return {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": UID, "gid": UID},
            "args": [*COMMAND, profile.mode, profile.worker_limits()],
            "env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
            "cwd": "/work",
            "capabilities": {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")},
            "rlimits": [{"type": name, "hard": value, "soft": value} for name, value in rlimits(profile).items()],
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": True},
        "hostname": "sandbox",
        "mounts": [
            # empty: through a real /proc gVisor lets a process open the pipes of its supervisor
            {"destination": "/proc", "type": "tmpfs", "source": "tmpfs", "options": ["ro", "size=4k", "mode=555"]},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
            _tmpfs("/tmp", profile.tmp_mib),  # noqa: S108
            _tmpfs("/work", profile.work_mib),
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network")]},
    }
