"""Hostile code on the host's own kernel: what a guest is, what it sees, and every door that it tries."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from box_kit import Guest
from jail_kit import Jails

from runtime.backends import nsjail_jail
from runtime.backends.bundle import ENVIRONMENT
from runtime.backends.locate import find_nsenter
from runtime.backends.seccomp_policy import policy
from runtime.errors import RefusedError
from runtime.guest.wire import Op, ReplyKind
from runtime.settings import BrokerSettings


@pytest.fixture(scope="module")
def jails(tmp_path_factory: pytest.TempPathFactory, root_dir: Path) -> Iterator[Jails]:
    found = Jails(BrokerSettings(state_dir=tmp_path_factory.mktemp("jails"), root_dir=root_dir))
    yield found
    found.close()


@pytest.fixture(scope="module")
def guest(jails: Jails) -> Iterator[Guest]:
    with jails.guest() as found:
        yield found


def status(process: Path) -> dict[str, str]:
    lines = (process / "status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def test_every_process_is_without_rights(guest: Guest) -> None:
    first = int(guest.first().name)
    seen = [status(Path(f"/proc/{pid}")) for pid in guest.processes()]
    inside = [found for found in seen if len(found["NSpid"].split()) > 1]
    assert len(inside) >= 2
    for found in inside:
        assert {found[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
        assert int(found["Uid"].split()[0]) >= 1_900_000_000
        assert found["Uid"] == found["Gid"]
        assert found["Groups"] == ""
    for kind in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
        assert Path(f"/proc/{first}/ns/{kind}").stat().st_ino != Path(f"/proc/self/ns/{kind}").stat().st_ino


def test_nothing_is_mounted_but_what_a_guest_needs(guest: Guest) -> None:
    found = {}
    for line in (guest.first() / "mountinfo").read_text().splitlines():
        fields = line.split()
        found[fields[4]] = set(fields[5].split(",")) & {"ro", "nosuid", "nodev", "noexec"}
        assert "master" not in line
        assert "shared" not in line
    device = {"ro", "nosuid", "noexec"}
    assert found == {
        "/": {"ro", "nosuid", "nodev"},
        "/dev": {"ro", "nosuid", "noexec"},
        "/dev/null": device,
        "/dev/zero": device,
        "/dev/urandom": device,
        "/tmp": {"nosuid", "nodev"},
        "/work": {"nosuid", "nodev"},
    }


def test_no_inode_is_the_host_s_or_another_box_s(jails: Jails, guest: Guest) -> None:
    """Locks, leases, notices and times are kept with the inode, and no two of one file system are of
    two."""
    paths = ("/", "/usr", "/usr/bin/python3", "/usr/lib/python3.11/os.py", "/dev", "/dev/null", "/dev/zero", "/tmp")
    code = f"import json, os\nprint(json.dumps([os.stat(path).st_dev for path in {paths}]))"
    with jails.guest() as other:
        seen = [json.loads(found.says(code)) for found in (guest, other)]
    outside = [Path(path).stat().st_dev for path in paths]
    for ours, theirs, of_host in zip(*seen, outside, strict=True):
        assert ours not in (theirs, of_host)


def test_the_folders_of_a_program_are_locked_in_one_box_and_free_in_the_next(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("as it is")
    base = nsjail_jail.make({"/run/folder-0": tmp_path})
    boxes = [nsjail_jail.copy(base, ["/run/folder-0"]) for _ in range(2)]
    taking = "import fcntl,sys\nfiles = [open(path) for path in sys.argv[1:]]\nfor file in files: fcntl.flock(file, 6)"
    held = [str(tmp_path / "file"), "/dev/null"]
    with Path(held[0]).open() as file, Path(held[1]).open() as device:
        for taken in (file, device):
            fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for box in boxes:
            inside = ["/run/folder-0/file", f"{nsjail_jail.DEVICES_FOLDER}/null"]
            enter = [find_nsenter(), f"--mount=/proc/{os.getpid()}/fd/{box}", "--"]
            subprocess.run([*enter, "/usr/bin/python3", "-c", taking, *inside], check=True)
            denied = subprocess.run([*enter, "touch", *inside], capture_output=True, text=True, check=False)
            assert denied.stderr.count("Read-only file system") == 2
    for descriptor in (base, *boxes):
        os.close(descriptor)


def test_no_interface_of_the_network_is_up(guest: Guest) -> None:
    process = guest.first()
    assert [line.split(":")[0].strip() for line in (process / "net/dev").read_text().splitlines()[2:]] == ["lo"]
    assert (process / "net/if_inet6").read_text() == ""
    assert len((process / "net/route").read_text().splitlines()) <= 1


def test_no_descriptor_of_the_host_is_inherited(guest: Guest) -> None:
    for pid in guest.processes():
        if len(status(Path(f"/proc/{pid}"))["NSpid"].split()) == 1:
            continue
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            target = str(entry.readlink())
            assert target == "/dev/null" or target.startswith(("pipe:", "socket:", "anon_inode:")), target


def test_nothing_of_the_host_can_be_seen(guest: Guest) -> None:
    code = """import json, os
print(json.dumps([os.listdir('/proc'), os.listdir('/sys'), sorted(os.listdir('/dev')), sorted(os.listdir('/')),
    sorted(os.environ), os.uname().nodename, os.getuid(), os.getgid(), os.getgroups(), os.getppid() < 10]))"""
    proc, sys, dev, root, environment, node, uid, gid, groups, near = json.loads(guest.says(code))
    assert (proc, sys, dev) == ([], [], ["null", "urandom", "zero"])
    assert set(root) == {"dev", "etc", "lib", "lib64", "opt", "proc", "sys", "tmp", "usr", "work"}
    assert set(environment) <= {*ENVIRONMENT, "LC_CTYPE"}
    assert (node, uid, gid, groups, near) == ("sandbox", 1000, 1000, [], True)


@pytest.mark.parametrize(
    "path", ["/x", "/etc/passwd", "/usr/bin/x", "/opt/runtime/guest/worker.py", "/proc/x", "/sys/x", "/dev/x"]
)
def test_nothing_outside_work_and_tmp_can_be_written(guest: Guest, path: str) -> None:
    assert b"Read-only file system" in guest.run(f"open({path!r}, 'w')").report


CALLS = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_open": 434,
    "pidfd_getfd": 438, "pidfd_send_signal": 424, "process_madvise": 440, "mount": 165, "umount2": 166,
    "pivot_root": 155, "chroot": 161, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432,
    "mount_setattr": 442, "open_tree_attr": 467, "unshare": 272, "setns": 308, "clone3": 435, "bpf": 321,
    "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "io_setup": 206, "io_submit": 209, "keyctl": 250, "add_key": 248, "request_key": 249,
    "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "socket": 41, "connect": 42, "bind": 49, "listen": 50, "accept": 43, "setsockopt": 54, "personality": 135,
    "open_by_handle_at": 304, "name_to_handle_at": 303, "quotactl": 179, "quotactl_fd": 443, "swapon": 167,
    "swapoff": 168, "reboot": 169, "syslog": 103, "acct": 163, "settimeofday": 164, "clock_settime": 227,
    "clock_adjtime": 305, "adjtimex": 159, "vhangup": 153, "iopl": 172, "ioperm": 173, "modify_ldt": 154,
    "sethostname": 170, "setdomainname": 171, "setuid": 105, "setgid": 106, "setresuid": 117, "setgroups": 116,
    "capset": 126, "capget": 125, "seccomp": 317, "memfd_create": 319, "memfd_secret": 447, "splice": 275,
    "vmsplice": 278, "tee": 276, "timer_create": 222, "timerfd_create": 283, "signalfd4": 289, "inotify_init1": 294,
    "fanotify_init": 300, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "mbind": 237,
    "set_mempolicy": 238, "migrate_pages": 256, "move_pages": 279, "mlock": 149, "mlockall": 151, "mincore": 27,
    "cachestat": 451, "membarrier": 324, "sync": 162, "syncfs": 306, "sched_setscheduler": 144,
    "sched_setaffinity": 203, "ioprio_set": 251, "setpriority": 141, "sysinfo": 99, "statfs": 137, "ustat": 136,
    "landlock_create_ruleset": 444, "remap_file_pages": 216, "pkey_mprotect": 329, "uselib": 134, "lookup_dcookie": 212,
    "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297, "futex_waitv": 449, "statmount": 457, "listmount": 458,
    "map_shadow_stack": 453, "no such call": 999, "x32 getpid": 0x40000000 + 39, "x32 ptrace": 0x40000000 + 521,
}  # fmt: skip
"""Numbers of x86-64. With every argument -1, a call that the policy let through would fail in another way."""
MADE = """import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
minus = ctypes.c_long(-1)
def call(number):
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), *[minus] * 6), ctypes.get_errno()
print(json.dumps([call(number) for number in json.loads(GIVEN)]))
"""


def test_no_call_that_is_not_listed_reaches_the_kernel(jails: Jails) -> None:
    for mode in ("sandbox", "process"):
        named = policy(mode, "x86_64").replace(",", " ").split()  # type: ignore[arg-type]
        assert not {"ptrace", "mount", "socket", "bpf", "keyctl", "unshare", "setns"} & set(named)
    with jails.guest() as guest:
        answers = json.loads(guest.says(MADE.replace("GIVEN", repr(json.dumps(list(CALLS.values()))))))
    got_through = {
        name: answer
        for name, answer in zip(CALLS, answers, strict=True)
        if answer not in ([-1, errno.EPERM], [-1, errno.ENOSYS])
    }
    assert got_through == {}


ARGUMENTS = """import ctypes, fcntl, json, mmap, os, socket, termios
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    return libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)), ctypes.get_errno()
def attempt(action):
    try: return [0, action()]
    except OSError as error: return [-1, error.errno]
page = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
ours, _ = socket.socketpair()
print(json.dumps({
    **{f"clone with a namespace {flag:x}": call(56, flag | 17, 0, 0, 0, 0)
       for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)},
    "priority futex": call(202, at, 6, 0, 0, 0, 0),
    "priority futex, private": call(202, at, 6 | 128, 0, 0, 0, 0),
    "requeue to a priority futex": call(202, at, 12, 1, 1, at, 0),
    "huge pages": call(9, 0, 2 << 20, 3, 0x22 | 0x40000, -1, 0),
    "merged pages": call(28, at, 4096, 12),
    "poisoned pages": call(28, at, 4096, 100),
    "limits of another process": call(302, 1, 7, 0, at),
    "a tracer by name": call(157, 0x59616D61, 1, 0, 0, 0),
    "memory merging for all": call(157, 67, 1, 0, 0, 0),
    "a keyboard": attempt(lambda: fcntl.ioctl(0, termios.TIOCSTI, b'x')),
    "notices of a folder": attempt(lambda: fcntl.fcntl(os.open('/work', 0), fcntl.F_NOTIFY, 1)),
    "a lease": attempt(lambda: fcntl.fcntl(os.open('/work', 0), 1024, 1)),
    "urgent data": attempt(lambda: ours.send(b'x', socket.MSG_OOB)),
    "a pair of datagrams": attempt(lambda: bool(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))),
    "a pair of another family": attempt(lambda: bool(socket.socketpair(30, socket.SOCK_STREAM))),
    "a device": attempt(lambda: os.mknod('/work/sda', 0o60666, os.makedev(8, 0))),
    "a socket's name": attempt(lambda: os.mknod('/work/socket', 0o140666)),
    "the base of threads": call(158, 0x1001, at),
}))
"""


def test_no_argument_gets_round_the_policy(guest: Guest) -> None:
    answers = json.loads(guest.says(ARGUMENTS))
    assert {what: answer for what, answer in answers.items() if answer != [-1, errno.EPERM]} == {}


OTHER_NUMBERS = """import ctypes, mmap, os
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex('b814000000cd80c3'))  # mov eax, 20; int 0x80; ret: getpid of i386
pid = os.fork()
if not pid:
    ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_numbers_of_another_architecture_end_the_process(guest: Guest) -> None:
    assert guest.says(OTHER_NUMBERS) == "-31\n"


@pytest.mark.parametrize(
    "family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_CAN", "AF_KEY"]
)
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW", "SOCK_SEQPACKET"])
def test_no_socket_of_any_family_can_be_made(guest: Guest, family: str, kind: str) -> None:
    report = guest.run(f"import socket\nsocket.socket(socket.{family}, socket.{kind})").report
    assert json.loads(report)["error"] == "PermissionError: [Errno 1] Operation not permitted"


SIGNALS = """import os, signal
for target in (1, os.getppid(), -1):
    for number in range(1, 65):
        try: os.kill(target, number)
        except OSError: pass
"""


def test_signals_reach_nobody_outside(jails: Jails) -> None:
    with jails.guest() as neighbour, jails.guest() as guest:
        outside = {pid for pid in guest.processes() if len(status(Path(f"/proc/{pid}"))["NSpid"].split()) == 1}
        assert len(outside) == 1
        guest.send(Op.RUN, f"import os\nif not os.fork():\n{' ' + SIGNALS.replace(chr(10), chr(10) + ' ')}".encode())
        assert neighbour.says("print(1)") == "1\n"
        left = guest.processes()
        assert not left or outside <= left  # what it does to itself, up to its end, is its own affair
    assert jails.host._keeper._process.pid > 0
    assert Path(f"/proc/{jails.host._keeper._process.pid}/cmdline").read_bytes()


TRAVERSAL = """import os
seen = []
here = os.open('/', os.O_RDONLY)
for path in ('../' * 30 + 'etc/shadow', '/proc/1/root/etc/shadow', '/proc/self/fd/200', '/proc/1/environ',
             '/sys/kernel', '/dev/mem', '/dev/fuse', '/dev/pts/0', '/dev/shm', '/run', '/var', '/home', '/root'):
    for folder in (None, here):
        try: seen.append(os.open(path, os.O_RDONLY, dir_fd=folder))
        except OSError: pass
print(seen)
"""


def test_no_path_leads_out(guest: Guest) -> None:
    assert guest.says(TRAVERSAL) == "[]\n"


SETUID = """import os
with open('/work/tool', 'w') as file: file.write('#!/usr/bin/python3\\nimport os\\nprint(os.geteuid())\\n')
os.chmod('/work/tool', 0o6755)
os.waitpid(os.posix_spawn('/work/tool', ['tool'], {}), 0)
"""


def test_a_setuid_file_gives_nothing(guest: Guest) -> None:
    assert guest.says(SETUID) == "1000\n"


def test_descriptors_can_be_passed_to_nobody_outside(jails: Jails) -> None:
    code = """import os, socket
for name in ('\\0' + 'x' * 20, '\\0/tmp/.X11-unix/X0', '/run/systemd/private', '/work/s'):
    try: socket.socket(socket.AF_UNIX).connect(name); print(name)
    except OSError: pass
ours, theirs = socket.socketpair()
try: theirs.sendto(b'x', '\\0x'); print('sent')
except OSError as error: print(error.errno)
"""
    with jails.guest() as guest:
        assert guest.says(code) == "1\n"


def test_what_leaves_the_call_by_force_is_a_death_and_nothing_else(jails: Jails) -> None:
    for code in ("import os; os._exit(0)", "import ctypes; ctypes.string_at(0)", "import os; os.kill(os.getpid(), 9)"):
        with jails.guest() as guest:
            assert guest.run(code).kind == ReplyKind.DIED


def test_a_machine_that_nobody_tried_is_refused() -> None:
    with pytest.raises(RefusedError):
        policy("sandbox", "riscv64")
