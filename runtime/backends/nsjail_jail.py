"""The jail of one guest, as data: what nsjail is told, in the words of its own configuration.

What always holds: a guest has its own user, pid, mount, network, ipc, uts and cgroup namespace; it is user 1000 there
and a user of the host that owns nothing; its root is read-only, its only devices are null, zero and urandom, and /proc
and /sys are empty folders; no interface of its network is up; it keeps no capability and cannot gain one. Control
groups are not nsjail's business here: the box is in ours before nsjail starts.
(nsjail, config.proto)
"""

from __future__ import annotations

import json

from runtime.backends import bundle
from runtime.backends.seccomp_policy import policy
from runtime.profile import Profile

ROOT = "/run/guest"
"""Where the guest's root is seen in the mount namespace that nsjail starts in."""
DEVICES = ("null", "zero", "urandom")
STACK_MIB = 8
ENTRIES = 16_384
"""Files and folders in each of /tmp and /work: an empty one takes kernel memory too, and no part of their size."""


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
    path = f"/dev/{name}"
    return {"src": path, "dst": path, "is_bind": True, "is_dir": False, "rw": True, "nosuid": True, "noexec": True}


def _rlimits(profile: Profile) -> dict[str, object]:
    """In the units of nsjail: MiB for what is memory or files, numbers for the rest."""
    limits = bundle.rlimits(profile)
    found: dict[str, object] = {
        "rlimit_as": limits["RLIMIT_AS"] >> 20,
        "rlimit_fsize": limits["RLIMIT_FSIZE"] >> 20,
        "rlimit_core": limits["RLIMIT_CORE"],
        "rlimit_nofile": limits["RLIMIT_NOFILE"],
        "rlimit_nproc": limits["RLIMIT_NPROC"],
        "rlimit_stack": STACK_MIB,
        "rlimit_memlock": 0,
        "rlimit_rtprio": 0,
        "rlimit_msgqueue": 0,
    }
    return found | {f"{name}_type": "VALUE" for name in found} | {"rlimit_cpu_type": "INF"}


def jail(profile: Profile, *, host_id: int, nice: int, machine: str) -> str:
    """The text for `nsjail --config`; `host_id` is the user and group of the host behind the guest's own, `nice`
    the niceness of the broker, which its guests keep.

    Raises RefusedError for a machine without a system-call policy.
    """
    program, *arguments = [*bundle.COMMAND, profile.mode, profile.worker_limits()]
    identity = [{"inside_id": str(bundle.UID), "outside_id": str(host_id), "count": 1}]
    config = {
        "mode": "ONCE",
        "hostname": "sandbox",
        "cwd": "/work",
        "time_limit": 0,
        "nice_level": nice,
        "log_level": "WARNING",
        "uidmap": identity,
        "gidmap": identity,
        "iface_no_lo": True,
        "mount_proc": False,
        "mount": [
            {"src": ROOT, "dst": "/", "is_bind": True, "rw": False, "nosuid": True, "nodev": True},
            {"dst": "/dev", "fstype": "tmpfs", "options": "size=4k,mode=755", "nosuid": True, "noexec": True},
            *map(_device, DEVICES),
            _tmpfs("/tmp", profile.tmp_mib),  # noqa: S108
            _tmpfs("/work", profile.work_mib),
        ],
        "seccomp_string": [policy(profile.mode, machine)],
        "envar": [f"{name}={value}" for name, value in bundle.ENVIRONMENT.items()],
        "exec_bin": {"path": program, "arg": arguments},
        **_rlimits(profile),
    }
    return json.dumps(config)
