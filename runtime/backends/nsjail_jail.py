"""nsjail configuration of one guest, as data.

Invariants: a guest has its own user, pid, mount, network, ipc, uts and cgroup namespaces; it is user 1000 there and a
host user that owns nothing; its root is read-only, its only devices are null, zero and urandom, its devices and files
share no inode with another box or the host, and /proc and /sys are empty folders; none of its network
interfaces is up; it has no capability and cannot gain one. nsjail does not manage control groups: the box is in ours
before nsjail starts.

(nsjail, config.proto)

Creates mount namespaces in which nsjail starts, so that its preparations are never visible on the host.

nsjail needs two working folders on the host, and the guest's unmapped user would need a path to the guest's root. Here
both are in a small private tmpfs over /run: in a *base* for all boxes of one kind, and in a copy of it for each box.

Invariants: the host's mounts and folders stay unchanged; a namespace is gone when its descriptor is closed and its last
jail has ended. In a copy, everything a box sees of the host, including devices, is below its own unwritable overlay. An
overlay has inodes of its own, and the kernel keeps locks, leases, notices and access times per inode; so no action of a
box on a file is visible to another box or the host, and nothing can be changed. The content in the page cache is
shared. (Linux, filesystems/overlayfs.rst)
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from runtime.backends import bundle
from runtime.backends.seccomp_policy import policy
from runtime.errors import RefusedError
from runtime.profile import Profile
from runtime.programs import Program

CLONE_FS, CLONE_NEWNS = 0x00000200, 0x00020000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = (
    1, 2, 4, 8, 32, 1 << 12, 1 << 14, 1 << 19,
)  # fmt: skip
DEVICES_FOLDER = "/run/devices"
"""Path of the host's devices in a copy; a jail takes single ones from there."""
NOTHING = "/run/nothing"
"""Empty folder: an unwritable overlay needs at least two layers."""
FOLDERS = (DEVICES_FOLDER, NOTHING, "/run/user", "/run/user/nsjail.0.root", "/run/user/nsjail.0.tmp")
"""Folders to create; the last two are those that nsjail would otherwise create in /tmp."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    _check(_LIBC.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def _make(binds: Mapping[str, Path]) -> int:
    """Creates a base mount namespace with these host folders below /run; returns its descriptor. Leaves the calling
    thread in the namespace, so the thread must end afterwards."""
    _check(_LIBC.unshare(ctypes.c_int(CLONE_NEWNS)), "unshare")
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    origins: dict[str, int] = {}
    try:
        for path, folder in binds.items():
            origins[path] = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        _mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755")
        for made in (*FOLDERS, *binds):
            Path(made).mkdir()
            Path(made).chmod(0o755)  # independent of the umask: the guest's user must pass through
        for path, origin in origins.items():
            _mount(f"/proc/thread-self/fd/{origin}", path, None, MS_BIND)
            _mount(None, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
    finally:
        for origin in origins.values():
            os.close(origin)
    return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)


def _overlay(source: str, target: str, flags: int) -> None:
    _mount("overlay", target, "overlay", MS_RDONLY | MS_NOSUID | flags, f"lowerdir={source}:{NOTHING}")


def _copy(base: int, places: Iterable[str]) -> int:
    """Copies a base mount namespace for one box; returns the copy's descriptor. Leaves the calling thread in the copy,
    so the thread must end afterwards."""
    _check(_LIBC.unshare(ctypes.c_int(CLONE_FS)), "unshare")
    _check(_LIBC.setns(ctypes.c_int(base), ctypes.c_int(CLONE_NEWNS)), "setns")
    _check(_LIBC.unshare(ctypes.c_int(CLONE_NEWNS)), "unshare")
    for place in places:
        _overlay(place, place, MS_NODEV)
    _overlay("/dev", DEVICES_FOLDER, MS_NOEXEC)
    return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)


def _made(namespace: Callable[[], int]) -> int:
    with ThreadPoolExecutor(1, thread_name_prefix="nsjail-mounts") as thread:
        try:
            return thread.submit(namespace).result()
        except OSError as error:
            raise RefusedError(
                f"cannot create a mount namespace for nsjail: {error}",
                hint="Run as root with the capability to mount (CAP_SYS_ADMIN), on a kernel with overlayfs; grant both"
                " to a container.",
            ) from error


def make(binds: Mapping[str, Path]) -> int:
    """Creates a base mount namespace with these host folders mounted read-only directly below /run; returns its
    descriptor. The caller closes it. Takes some milliseconds. Raises RefusedError if it cannot be created."""
    return _made(partial(_make, binds))


def copy(base: int, places: Iterable[str]) -> int:
    """Copies a base mount namespace for one box; returns the copy's descriptor. In the copy `places` and
    `DEVICES_FOLDER` have their own inodes. The caller closes it. Takes less than a millisecond. Raises RefusedError if
    it cannot be created.
    """
    return _made(partial(_copy, base, tuple(places)))


ROOT = "/run/guest"
"""Path of the guest's root in the mount namespace in which nsjail starts."""
FOLDER = "/run/folder-{}"
"""Path of a program's folders there, by number."""
DEVICES = ("null", "zero", "urandom")
STACK_MIB = 8
ENTRIES = 16_384
"""Most files and folders in each of /tmp and /work: an empty one uses kernel memory but none of their size."""


def _tmpfs(path: str, mib: int) -> dict[str, object]:
    return {
        "dst": path,
        "fstype": "tmpfs",
        "options": f"size={mib}m,nr_inodes={ENTRIES},mode=1777",
        "rw": True,
        "nosuid": True,
        "nodev": True,
    }


def _device(name: str) -> dict[str, object]:
    """Returns nsjail's mount of a device; read-only concerns its file system entry, not the device."""
    return {
        "src": f"{DEVICES_FOLDER}/{name}",
        "dst": f"/dev/{name}",
        "is_bind": True,
        "is_dir": False,
        "rw": False,
        "nosuid": True,
        "noexec": True,
    }


def _read_only(source: str, target: str) -> dict[str, object]:
    return {"src": source, "dst": target, "is_bind": True, "rw": False, "nosuid": True, "nodev": True}


def _mounts(profile: Profile, program: Program | None) -> list[dict[str, object]]:
    """Returns all nsjail mounts of a guest or program. A program's root is empty, and its folders come last because
    they may lie below /tmp."""
    devices = {"dst": "/dev", "fstype": "tmpfs", "options": "size=4k,mode=755", "nosuid": True, "noexec": True}
    own = [devices, *map(_device, DEVICES), _tmpfs("/tmp", profile.tmp_mib)]  # noqa: S108
    if program is None:
        return [_read_only(ROOT, "/"), *own, _tmpfs("/work", profile.work_mib)]
    folders = [_read_only(FOLDER.format(number), str(path)) for number, path in enumerate(program.mounts)]
    return [*own, *folders]


def _rlimits(profile: Profile, program: Program | None) -> dict[str, object]:
    """Returns a guest's rlimits in nsjail's units: MiB for memory and files, numbers for the rest."""
    limits = bundle.rlimits(profile, program)
    found: dict[str, object] = {
        "rlimit_fsize": limits["RLIMIT_FSIZE"] >> 20,
        "rlimit_core": limits["RLIMIT_CORE"],
        "rlimit_nofile": limits["RLIMIT_NOFILE"],
        "rlimit_nproc": limits["RLIMIT_NPROC"],
        "rlimit_stack": STACK_MIB,
        "rlimit_memlock": 0,
        "rlimit_rtprio": 0,
        "rlimit_msgqueue": 0,
    }
    if "RLIMIT_AS" in limits:
        found["rlimit_as"] = limits["RLIMIT_AS"] >> 20
    found |= {f"{name}_type": "VALUE" for name in found}
    return {"rlimit_cpu_type": "INF", "rlimit_as_type": "INF"} | found


def jail(profile: Profile, program: Program | None = None, *, host_id: int, nice: int, machine: str) -> str:
    """Returns a box's nsjail configuration, the text for `nsjail --config`. `host_id` is the host user and group behind
    the guest's, `nice` the broker's niceness, which its guests keep. Raises RefusedError for a machine without a
    system-call policy."""
    binary, *arguments = bundle.command(profile, program)
    identity = [{"inside_id": str(bundle.UID), "outside_id": str(host_id), "count": 1}]
    config = {
        "mode": "ONCE",
        "hostname": "sandbox",
        "cwd": bundle.folder(program),
        "time_limit": 0,
        "nice_level": nice,
        "log_level": "WARNING",
        "uidmap": identity,
        "gidmap": identity,
        "iface_no_lo": True,
        "mount_proc": program is not None and program.proc,
        "mount": _mounts(profile, program),
        "seccomp_string": [policy(profile.mode, machine, program=program is not None)],
        "envar": [f"{name}={value}" for name, value in bundle.environment(program).items()],
        "exec_bin": {"path": binary, "arg": arguments},
        **_rlimits(profile, program),
    }
    return json.dumps(config)
