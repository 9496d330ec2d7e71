"""Rows 57, 58 and 59 of the catalogue: rights, helpers with rights, devices, and the kernel's own interfaces.

Row 59 itself, a flaw of gVisor or of the kernel, cannot be tested for; what is, is that the doors to one are shut.
"""

from __future__ import annotations

import json

import pytest
from attack_kit import DIED, OK, AttackBench

from runtime.profile import BackendName
from runtime.sandbox import Tier

CALLING = """import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), *[a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments])
"""
GAINS = {
    "root": "os.setuid(0)",
    "the group of root": "os.setgid(0)",
    "other groups": "os.setgroups([0])",
    "a real root": "os.setresuid(0, 0, 0)",
    "a mount": "call(165, b'tmpfs', b'/work', b'tmpfs', 0, 0) == 0",
    "a bind mount": "call(165, b'/', b'/work', 0, 4096, 0) == 0",
    "a remount": "call(165, 0, b'/', 0, 32, 0) == 0",
    "an unmount": "call(166, b'/dev', 2) == 0",
    "another root": "call(155, b'/work', b'/work') == 0",
    "chroot": "os.chroot('/work')",
    "a namespace of users": "call(272, 0x10000000) == 0",
    "a namespace of mounts": "call(272, 0x00020000) == 0",
    "namespaces by clone": "call(56, 0x10000000 | 17, 0, 0, 0, 0) > 0",
    "a device of disks": "os.mknod('/work/sda', 0o60666, os.makedev(8, 0)) or open('/work/sda', 'rb')",
    "the memory of the machine": "os.mknod('/work/mem', 0o20666, os.makedev(1, 1)) or open('/work/mem', 'rb').read(1)",
    "ports": "call(172, 3) == 0 or call(173, 0, 1, 1) == 0",
    "a module": "call(175, 0, 0, b'') == 0 or call(313, 0, b'', 0) == 0",
    "another kernel": "call(246, 0, 0, 0, 0) == 0",
    "the clock": "call(164, 0, 0) == 0 and call(227, 0, 0) == 0",
    "the name of the host": "libc.sethostname(b'evil', 4) == 0",
    "a reboot": "call(169, 0xfee1dead, 672274793, 0x1234567, 0) == 0",
    "the kernel's messages": "call(103, 3, 0, 0) >= 0 and call(103, 10, 0, 0) > 0",
    "swap": "call(167, b'/work/x', 0) == 0",
    "accounts": "call(163, b'/work/x') == 0",
    "a handle of a file": "call(304, 3, 0, 0) >= 0",
    "a key ring": "call(248, b'user', b'x', b'y', 1, -4) > 0 and call(250, 11, 0, 0, 0) > 0",
    "programs for the kernel": "call(321, 0, 0, 0) >= 0",
    "counters of the processor": "call(298, 0, 0, -1, -1, 0) >= 0",
    "faults handled outside": "call(323, 0) >= 0 and False",
    "a ring of requests": "call(425, 1, 0) >= 0",
    "real time": "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
    "a better place": "os.nice(-5) is not None",
    "more of everything": "__import__('resource').setrlimit(7, (1 << 20, 1 << 20))",
    "an ambient capability": "call(157, 47, 2, 0, 0, 0) == 0",
    "privileges kept": "call(157, 8, 1, 0, 0, 0) == 0 and os.setuid(0) is None",
}
EMULATED = {"the kernel's messages", "a better place"}
"""gVisor has messages and priorities of its own making, which are nobody else's."""
GAINED = (
    CALLING
    + """import resource
gained = []
for name, code in json.loads(GAINS).items():
    try:
        if eval(code) not in (False, ): gained.append(name)
    except (OSError, ValueError, AttributeError): pass
print(json.dumps(gained))
"""
)


def test_no_right_can_be_gained(bench: AttackBench) -> None:
    with bench.sandbox(call_seconds=60.0) as box:
        result = bench.call(box, GAINED.replace("GAINS", repr(json.dumps(GAINS))))
        assert result.status is OK
        assert set(json.loads(result.output)) <= (EMULATED if bench.backend is BackendName.GVISOR else set())
        assert bench.call(box, "import os\nprint(os.getuid(), os.geteuid(), os.getgroups())").output == "1000 1000 []\n"


OWN_WORLD = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
reached = []
for flags in (0x10000000, 0x10020000, 0x20000): libc.unshare(flags)
for place in ('/work', '/tmp', '/proc'):
    for kind in (b'proc', b'tmpfs', b'devtmpfs', b'sysfs', b'overlay', b'9p'):
        if libc.mount(b'none', place.encode(), kind, 0, None) == 0: reached.append(kind)
        for number in (0, 1, 2, 3, 5, 6, 200, 201):
            for pid in (1, 2, 'self'):
                try: reached.append(os.open(f'{place}/{pid}/fd/{number}', os.O_WRONLY | os.O_NONBLOCK))
                except OSError: pass
print(reached)
"""


def test_no_world_of_its_own_leads_to_the_pipes_of_its_supervisor(bench: AttackBench) -> None:
    """Rights in a namespace of users, a process table mounted there, and the supervisor's descriptors in it."""
    with bench.sandbox() as box:
        result = bench.call(box, OWN_WORLD)
        assert (result.status, result.output) == (OK, "[]\n")
        assert box.exec(["/usr/bin/python3", "-c", OWN_WORLD]).stdout == b"[]\n"


def test_no_filter_of_its_own_comes_before_that_of_the_worker(bench: AttackBench) -> None:
    code = CALLING + "print(call(157, 22, 2, 0, 0, 0), ctypes.get_errno(), call(317, 1, 0, 0), ctypes.get_errno())"
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "-1 1 -1 1\n"


def test_no_file_of_the_root_lends_rights(bench: AttackBench) -> None:
    code = """import os, stat
print([os.path.join(folder, name) for folder, _, names in os.walk('/') for name in names
    if os.lstat(os.path.join(folder, name)).st_mode & 0o6000])
helpers = ('sudo', 'su', 'mount', 'pkexec', 'newuidmap', 'docker', 'nvidia-smi', 'sh', 'bash')
places = ('/bin', '/usr/bin', '/sbin', '/usr/sbin', '/usr/local/bin')
print([name for name in helpers for folder in places if os.path.exists(f'{folder}/{name}')])"""
    with bench.sandbox(call_seconds=60.0) as box:
        assert bench.call(box, code).output == "[]\n[]\n"


def test_a_setuid_file_of_its_own_lends_none(bench: AttackBench) -> None:
    code = """import os
with open('/work/tool', 'w') as file:
    file.write('#!/usr/bin/python3\\nimport os\\nprint(os.geteuid(), os.getegid())\\n')
os.chmod('/work/tool', 0o6777)
os.waitpid(os.posix_spawn('/work/tool', ['tool'], {}), 0)"""
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "1000 1000\n"


INTERFACES = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/binfmt_misc/register", "/proc/1/mem", "/proc/self/mem", "/proc/kcore", "/proc/kallsyms",
    "/proc/gvisor/kernel_is_gvisor", "/proc/gvisor/fscheckpoint", "/proc/gvisor/checkpoint", "/proc/sentry-meminfo",
    "/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/debug",
    "/sys/kernel/security/apparmor/profiles", "/sys/class/net", "/sys/block", "/sys/firmware", "/sys/module",
    "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/nvidia0", "/dev/nvidiactl", "/dev/sda",
    "/dev/vda", "/dev/loop-control", "/dev/mapper/control", "/dev/userfaultfd", "/dev/vsock",
    "/run/docker.sock", "/run/containerd/containerd.sock", "/etc/shadow", "/root/.ssh", "/var/lib/assay",
)  # fmt: skip


def test_no_interface_of_a_kernel_can_be_opened(bench: AttackBench) -> None:
    code = f"""import os
opened = []
for flag in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREAT):
    for path in {INTERFACES}:
        try: opened.append((path, os.read(os.open(path, flag | os.O_NONBLOCK), 16)))
        except IsADirectoryError: opened.append((path, os.listdir(path)))
        except OSError: pass
print([found for found in opened if found[1] != []])"""
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "[]\n"


def test_devices_are_those_that_hold_nothing(bench: AttackBench) -> None:
    code = """import json, os, stat
devices = [name for name in os.listdir('/dev') for found in [os.lstat(f'/dev/{name}')]
    if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)]
print(json.dumps(devices))"""
    harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}
    with bench.sandbox() as box:
        found = set(json.loads(bench.call(box, code).output))
        assert found <= ({"null", "zero", "urandom"} if bench.backend is BackendName.NSJAIL else harmless | {"fuse"})


def test_new_privileges_are_given_up_for_good(bench: AttackBench) -> None:
    code = CALLING + "print(call(157, 39, 0, 0, 0, 0), call(157, 38, 0, 0, 0, 0))"
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "1 -1\n"


def test_the_host_keeps_its_name_and_its_clock(bench: AttackBench) -> None:
    code = """import os, time
try: time.clock_settime(time.CLOCK_REALTIME, 0)
except OSError: pass
print(os.uname().nodename, time.time() > 1e9)"""
    with bench.sandbox() as box:
        assert bench.call(box, code).output == "sandbox True\n"


DENIED = ("os.setuid(0)", "os.fork()", "os.open('/dev/null', 0)", "os.kill(1, 9)", "os.listdir('/')", "os.pipe()")


@pytest.mark.parametrize("action", DENIED)
def test_what_a_process_that_may_only_compute_tries_moves_it_to_a_sandbox_of_its_own(
    bench: AttackBench, action: str
) -> None:
    with bench.pool.open(tier=Tier.PROCESS) as session:
        assert session.run("kept = 1").tier is Tier.PROCESS
        result = session.run(f"import os\ntry: {action}\nexcept OSError: pass\nprint(kept)")
        assert result.tier is Tier.SANDBOX
        assert result.status in (OK, DIED)
