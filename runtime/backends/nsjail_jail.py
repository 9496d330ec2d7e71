"""nsjail configuration of one guest, as data.

Invariants: a guest has its own user, pid, mount, network, ipc, uts and cgroup namespaces; it is user 1000 there and a
host user that owns nothing; its root is read-only, its only devices are null, zero and urandom, its devices and files
share no inode with another box or the host (`nsjail_mounts`), and /proc and /sys are empty folders; none of its network
interfaces is up; it has no capability and cannot gain one. nsjail does not manage control groups: the box is in ours
before nsjail starts.

(nsjail, config.proto)
"""

from __future__ import annotations

import json

from runtime.backends import bundle, nsjail_mounts
from runtime.backends.seccomp_policy import policy
from runtime.profile import Profile
from runtime.programs import Program

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
        "src": f"{nsjail_mounts.DEVICES}/{name}",
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
