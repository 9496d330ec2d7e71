"""Checks of containment: a read-only root, no privileges, and nothing of the host in the environment.

Checks that an ended sandbox leaves nothing on the host, without asking the component that cleans up.

Visible here are control groups, processes, mounts and our own descriptors; what only root can see is not promised.
"""

from __future__ import annotations

import json
import time

from runtime.conformance import host
from runtime.conformance.check import Figures, Subject, Violation, answered, check, require, require_error
from runtime.errors import SandboxError
from runtime.sandbox import CallStatus, Tier

WRITES = """import json, os, stat
def attempts():
    for folder, below, names in os.walk('/'):
        below[:] = [name for name in below if os.path.join(folder, name) not in ('/work', '/tmp', '/proc', '/dev/shm')]
        if folder.count('/') > 3:
            below[:] = []
        yield os.path.join(folder, 'made-by-a-guest')
        for name in names[:3]:
            path = os.path.join(folder, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield path
    for name in ('kernel/core_pattern', 'vm/drop_caches', 'kernel/modprobe'):
        yield '/proc/sys/' + name
written, refused = [], 0
for path in attempts():
    try:
        made = not os.path.lexists(path)
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | (os.O_CREAT | os.O_EXCL if made else 0)))
        if made:
            os.unlink(path)
    except OSError:
        refused += 1
    else:
        written.append(path)
print(json.dumps([written[:5], refused]))
"""


@check("the root is read-only", "Nothing outside /work, /tmp and /dev/shm can be made or written.")
def root_is_read_only(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        written, refused = json.loads(answered(box.run(WRITES)))
    require(not written, f"could be written: {', '.join(map(repr, written))}")
    require(refused > 10, f"only {refused} places were tried")
    return {"places_tried": float(refused)}


RIGHTS = """import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
gained = []
def tried(name, attempt):
    try:
        if attempt() not in (-1, None):
            gained.append(name)
    except OSError:
        pass
def became(change):
    def attempt():
        change(0)
        return 0
    return attempt
tried('root', became(os.setuid))
tried('the group of root', became(os.setgid))
tried('another group', lambda: os.setgroups([0]) or 0)
tried('a mount', lambda: libc.mount(b'tmpfs', b'/work', b'tmpfs', 0, None))
tried('a new root', lambda: libc.chroot(b'/work'))
def device():
    os.mknod('/work/device', 0o60666, os.makedev(8, 0))
    with open('/work/device', 'rb') as disk:
        return len(disk.read(1))
tried('a disk', device)
host_name = os.uname().nodename.encode()
tried('another host name', lambda: libc.sethostname(host_name, len(host_name)))
header, capabilities = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[1] * 6)
if libc.capget(header, capabilities) != 0:
    capabilities = [0]  # a backend may refuse the question; what is tried above tells
if libc.prctl(39, 0, 0, 0, 0) != 1:
    gained.append('new privileges by a program')
print(json.dumps([os.getresuid(), os.getresgid(), gained, list(capabilities)]))
"""


@check("there are no rights", "Code is a user without capabilities and cannot become another, mount, or make devices.")
def there_are_no_rights(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        users, groups, gained, capabilities = json.loads(answered(box.run(RIGHTS)))
    require(0 not in users and 0 not in groups, f"code runs as user {users}, group {groups}")
    require(not gained, f"code could have: {', '.join(map(str, gained))}")
    require(not any(capabilities), f"code has capabilities: {capabilities}")
    return {}


KNOWN = {"HOME", "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "TMPDIR", "TZ"}
KNOWN |= {"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"}
"""Environment variables that a guest may have; none reveals anything about the host."""
FOLDERS = {"bin", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "sbin", "sys", "tmp", "usr", "var", "work"}
"""Top-level folders that a root may have, besides the one with its interpreter and nothing else."""
SURROUNDINGS = """import json, os, sys
environments = [dict(os.environ)]
words = []
for number in filter(str.isdigit, os.listdir('/proc')):
    for name, found in (('environ', environments), ('cmdline', words)):
        try:
            parts = open(f'/proc/{number}/{name}', 'rb').read().decode(errors='replace').split('\\0')
        except OSError:
            continue
        found.append(dict(part.split('=', 1) for part in parts if '=' in part) if name == 'environ' else parts)
names = sorted({name for environment in environments for name in environment})
files = [name for name in ('/etc/shadow', '/run/docker.sock', '/var/run') if os.path.exists(name)]
interpreter = sys.base_prefix
for folder, below, found in (entry for top in ('/root', '/home') for entry in os.walk(top)):
    beside = [path for name in below + found if not (interpreter + '/').startswith((path := folder + '/' + name) + '/')]
    files += beside if folder != interpreter else []
    below[:] = [name for name in below if folder + '/' + name not in beside] if folder != interpreter else []
files += [name for name in ('/root', '/home') if os.path.exists(name) and not interpreter.startswith(name + '/')]
print(json.dumps([names, sorted(os.listdir('/')), interpreter, files, os.listdir('/work') + os.listdir('/tmp')]))
"""


@check(
    "nothing of the host is inside",
    "Environment, root folder and work folders of a fresh sandbox hold nothing of the host.",
)
def nothing_of_the_host_is_inside(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        names, folders, interpreter, files, rest = json.loads(answered(box.run(SURROUNDINGS)))
    known = FOLDERS | {interpreter.split("/")[1]}
    require(set(names) <= KNOWN, f"the environment has {', '.join(sorted(set(names) - KNOWN))}")
    require(set(folders) <= known, f"the root has {', '.join(sorted(set(folders) - known))}")
    require(not files, f"of the host there are {', '.join(files)}")
    require(not rest, f"a fresh sandbox already has files: {', '.join(map(repr, rest[:5]))}")
    return {}


CONTAINMENT = (root_is_read_only, there_are_no_rights, nothing_of_the_host_is_inside)


GONE_SECONDS = 10.0
DAEMONS = """import os, signal, time
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
print('started')
"""


def _nothing_of(box: str, before: set[int]) -> None:
    """Waits until no group, process or mount of a box is left. Raises Violation if some remain."""
    gone = host.becomes_true(lambda: not host.groups(box), seconds=GONE_SECONDS)
    require(gone, f"control groups are left: {', '.join(map(str, host.groups(box)))}")
    gone = host.becomes_true(lambda: not any(map(host.alive, before)), seconds=GONE_SECONDS)
    require(gone, f"processes are left: {sorted(filter(host.alive, before))}")
    require(box not in host.mounts(), f"mounts of {box} are left")


def _seen(box: str) -> set[int]:
    """Returns the ids of a running box's processes; seeing them now makes their later absence meaningful."""
    processes = host.processes(host.groups(box))
    require(bool(processes), f"no control group with processes of {box} is seen, so nobody could say that it is gone")
    return processes


@check(
    "closing leaves nothing",
    "After a sandbox with daemons is closed, none of its processes, groups and mounts is left.",
)
def closing_leaves_nothing(subject: Subject) -> Figures:
    with subject.sandbox() as box:
        require(answered(box.run(DAEMONS)) == "started\n", "no daemon was started")
        seen, identity = _seen(box.id), box.id
        started = time.monotonic()
    closed = time.monotonic() - started
    _nothing_of(identity, seen)
    require_error(lambda: box.run("print(1)"), "a closed sandbox answers", SandboxError)
    return {"processes": float(len(seen)), "close_ms": 1000 * closed}


@check(
    "a killed call leaves nothing",
    "After a call that had to be killed, nothing of its sandbox is left either.",
    quick=False,
)
def a_killed_call_leaves_nothing(subject: Subject) -> Figures:
    with subject.sandbox(limits={"call_seconds": 0.5}) as box:
        seen, identity = _seen(box.id), box.id
        result = box.run(DAEMONS + "while True: pass")
        require(result.status is CallStatus.TIMEOUT, f"a call without end ended with {result.status.value}")
    _nothing_of(identity, seen)
    return {"processes": float(len(seen))}


@check("closing a session in a call leaves nothing", "A session closed in the middle of a call is freed at once.")
def closing_a_session_in_a_call_leaves_nothing(subject: Subject) -> Figures:
    with subject.session(Tier.SANDBOX) as session:
        first = session.run("print(1)")
        answered(first)
        seen = _seen(first.sandbox)
        under_way = session.start("import time\ntime.sleep(60)")
        time.sleep(0.1)
    started = time.monotonic()
    try:
        ended = under_way.result(timeout=GONE_SECONDS)
    except SandboxError:
        passed = time.monotonic() - started
    except TimeoutError as error:
        raise Violation(f"a call whose session was closed still runs after {GONE_SECONDS:g} s") from error
    else:
        raise Violation(f"a call whose session was closed ended with {ended.status.value}")
    require(passed < GONE_SECONDS, f"a call whose session was closed ended after {passed:.1f} s")
    _nothing_of(first.sandbox, seen)
    return {"freed_ms": 1000 * passed}


@check("descriptors are closed", "This process has no more descriptors after many sandboxes.", quick=False)
def descriptors_are_closed(subject: Subject, times: int = 5) -> Figures:
    with subject.sandbox() as box:
        answered(box.run("1"))
    before = host.descriptors()
    for _ in range(times):
        with subject.sandbox() as box:
            answered(box.run("1"))
    flat = host.becomes_true(lambda: host.descriptors() <= before, seconds=GONE_SECONDS)
    require(flat, f"{host.descriptors() - before} descriptors more are open after {times} sandboxes")
    return {}


LEFTOVERS = (
    closing_leaves_nothing,
    a_killed_call_leaves_nothing,
    closing_a_session_in_a_call_leaves_nothing,
    descriptors_are_closed,
)
