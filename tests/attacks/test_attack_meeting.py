"""Row 60 of the catalogue: what one box does to the kernel's things and another one could see.

Every way by which two processes of one machine meet without a network: locks of the three kinds, leases, notices and
times of files that both can open, and what is found by a key or a name. One box leaves all marks that it can, and
another one looks for them; a control shows that inside one box locks are seen.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attack_kit import OK, AttackBench

from runtime.profile import BackendName

PLACES = """import ctypes, fcntl, json, os, stat, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    return libc.syscall(ctypes.c_long(number), *[a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments])
places = ['/', '/dev', '/dev/null', '/dev/zero', '/dev/urandom', '/dev/shm', '/proc', '/sys', '/etc', '/usr', '/opt']
for folder, below, names in os.walk('/usr/lib/python3.11'):
    places += [os.path.join(folder, name) for name in names[:20]]
    if len(places) > 120: break
for folder, below, names in os.walk('/opt'): places += [os.path.join(folder, name) for name in names]
places = sorted(set(places))[:180]
WHOLE = struct.pack('hhqqi', fcntl.F_WRLCK, 0, 0, 0, 0)
SHARED = struct.pack('hhqqi', fcntl.F_RDLCK, 0, 0, 0, 0)
FREE = struct.pack('hhqqi', fcntl.F_UNLCK, 0, 0, 0, 0)
def attempt(action):
    try: return action()
    except OSError as error: return -error.errno
def opened(path):
    for flags in (os.O_RDWR, os.O_RDONLY):
        try: return os.open(path, flags | os.O_NONBLOCK), flags
        except OSError: pass
    return None, None
def state(path):
    try: found = os.stat(path)
    except OSError: return None
    return [found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns, found.st_nlink, found.st_mode, found.st_size]
"""
LEAVE = (
    PLACES
    + """kept, locked = [], 0
for path in places:
    number, flags = opened(path)
    if number is None: continue
    kept.append(number)
    kind = WHOLE if flags == os.O_RDWR else SHARED
    attempt(lambda: fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB))
    attempt(lambda: fcntl.fcntl(number, fcntl.F_SETLK, kind))
    attempt(lambda: fcntl.fcntl(number, 37, kind))
    attempt(lambda: fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_WRLCK))
    attempt(lambda: fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_RDLCK))
    attempt(lambda: fcntl.fcntl(number, fcntl.F_SETOWN, os.getpid()))
    attempt(lambda: fcntl.fcntl(number, fcntl.F_SETSIG, 10))
    attempt(lambda: fcntl.fcntl(number, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT))
    attempt(lambda: os.read(number, 1) if path.startswith('/usr') else None)
    attempt(lambda: os.utime(path))
    attempt(lambda: os.utime(path, (1, 1)))
    attempt(lambda: os.utime(number))
    attempt(lambda: os.chmod(path, 0o777))
    attempt(lambda: os.link(path, '/tmp/linked'))
    attempt(lambda: os.truncate(path, 0))
    attempt(lambda: os.setxattr(path, 'user.meet', b'1'))
shared = call(29, 4711, 4096, 0o1666)
semaphores, messages = call(64, 4711, 1, 0o1666), call(68, 4711, 0o1666)
queue = call(240, b'meet', 0o102, 0o666, 0)
ring = [call(248, b'user', b'meet', b'x', 1, place) for place in (-3, -4, -5)]
def shm():
    from multiprocessing import shared_memory
    return shared_memory.SharedMemory('meet', create=True, size=64)
attempt(shm)
print(len(kept) > 50)
"""
)
LOOK = (
    PLACES
    + """found = []
def seen(path, what, action, *errors):
    if attempt(action) in errors: found.append([path, what])
for path in places:
    number, flags = opened(path)
    if number is None: continue
    kind = WHOLE if flags == os.O_RDWR else SHARED
    for command in (fcntl.F_GETLK, 36):
        answer = attempt(lambda: struct.unpack('hhqqi', fcntl.fcntl(number, command, WHOLE)))
        if isinstance(answer, tuple) and answer[0] != fcntl.F_UNLCK: found.append([path, 'asked lock', answer[4]])
    seen(path, 'flock', lambda: fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB), -11, -13)
    seen(path, 'lock', lambda: fcntl.fcntl(number, fcntl.F_SETLK, kind), -11, -13)
    attempt(lambda: fcntl.fcntl(number, fcntl.F_SETLK, FREE))
    seen(path, 'lock of a description', lambda: fcntl.fcntl(number, 37, kind), -11, -13)
    seen(path, 'lease', lambda: fcntl.fcntl(number, fcntl.F_GETLEASE), fcntl.F_RDLCK, fcntl.F_WRLCK)
    owner = attempt(lambda: fcntl.fcntl(number, fcntl.F_GETOWN))
    if owner > 0: found.append([path, 'owner', owner])
    seen(path, 'attribute', lambda: os.getxattr(path, 'user.meet') and 'seen', 'seen')
    os.close(number)
if call(29, 4711, 4096, 0o666) >= 0: found.append('shared memory')
if call(64, 4711, 1, 0o666) >= 0: found.append('semaphores')
if call(68, 4711, 0o666) >= 0: found.append('messages')
if call(240, b'meet', 2, 0o666, 0) >= 0: found.append('queue')
for place in (-3, -4, -5):
    if call(250, 10, place, b'user', b'meet', 0) >= 0: found.append('key')
if os.path.exists('/dev/shm/meet'): found.append('shm')
print(json.dumps(found))
"""
)
STATES = PLACES + "print(json.dumps({path: state(path) for path in places}))"


def test_what_one_box_does_to_a_file_is_seen_in_no_other(bench: AttackBench) -> None:
    with bench.sandbox(output_bytes=65_536) as one, bench.sandbox(output_bytes=65_536) as other:
        before = bench.call(other, STATES)
        assert before.status is OK
        left = bench.call(one, LEAVE)
        assert (left.status, left.output) == (OK, "True\n")
        found = bench.call(other, LOOK)
        assert (found.status, json.loads(found.output)) == (OK, [])
        states = json.loads(before.output), json.loads(bench.call(other, STATES).output)
        assert {path: (was, states[1][path]) for path, was in states[0].items() if was != states[1][path]} == {}


@pytest.mark.parametrize("userland", [False, True])
def test_a_lock_on_the_interpreter_or_a_device_is_free_in_the_next_box(bench: AttackBench, userland: bool) -> None:
    """Bits through locks: one box holds what spells a word, and the other reads nothing but noughts."""
    lock = """import fcntl, os
held = [os.open(path, flags) for path, flags in (('/usr/lib/python3.11/os.py', 0), ('/dev/null', 2), ('/dev/zero', 2),
    ('/usr', 0), ('/', 0))]
taken = []
for number in held:
    try: fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB); taken.append(1)
    except OSError: taken.append(0)
try: fcntl.lockf(held[1], fcntl.LOCK_EX | fcntl.LOCK_NB); taken.append(1)
except OSError: taken.append(0)
print(taken)
"""
    devices = int(bench.backend is BackendName.NSJAIL)  # gVisor's own devices take no lock at all
    with bench.sandbox(userland=userland) as one, bench.sandbox(userland=userland) as other:
        first = bench.call(one, lock).output
        assert bench.call(other, lock).output == first
        assert first == f"[1, {devices}, {devices}, 1, 1, {devices}]\n"


LOCKS = """import fcntl, os, sqlite3, subprocess, sys, tempfile
def other(code): return subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout.strip()
held = open('/work/lock', 'w')
fcntl.flock(held, fcntl.LOCK_EX)
asking = '''import fcntl
try: fcntl.flock(open(PATH), fcntl.LOCK_EX | fcntl.LOCK_NB); print('free')
except OSError: print('held')'''
print(other(asking.replace('PATH', '"/work/lock"')))
null = open('/dev/null', 'r+b', buffering=0)
first = sqlite3.connect('/work/base', isolation_level=None, timeout=0)
first.execute('create table t (x)'); first.execute('begin immediate'); first.execute('insert into t values (1)')
print(other('''import sqlite3
try: sqlite3.connect('/work/base', timeout=0).execute('insert into t values (2)'); print('free')
except sqlite3.OperationalError: print('held')'''))
first.execute('commit')
with tempfile.NamedTemporaryFile() as file: fcntl.lockf(file, fcntl.LOCK_EX); print(os.path.exists(file.name))
print(null.write(b'gone'), len(open('/dev/urandom', 'rb').read(3)), open('/dev/zero', 'rb').read(2))
"""


def test_locks_work_inside_one_box(bench: AttackBench) -> None:
    """The control: whoever asks sees them where they are, and databases, temporary files and devices are used."""
    with bench.sandbox() as box:
        result = bench.call(box, LOCKS)
        assert (result.status, result.output) == (OK, "held\nheld\nTrue\n4 3 b'\\x00\\x00'\n")


def test_the_time_of_a_device_of_the_host_cannot_be_changed(bench: AttackBench) -> None:
    """Anybody may touch what anybody may write to; the time of a device can be read everywhere."""
    touch = """import os
changed = []
for path in ('/dev/null', '/dev/zero', '/dev/urandom'):
    try: os.utime(path); changed.append(path)
    except OSError: pass
print(changed)
"""
    devices = ("/dev/null", "/dev/zero", "/dev/urandom")
    before = [Path(path).stat().st_mtime_ns for path in devices]
    with bench.sandbox() as box:
        result = bench.call(box, touch)
        assert result.status is OK
        assert result.output == "[]\n" or bench.backend is BackendName.GVISOR
    assert [Path(path).stat().st_mtime_ns for path in devices] == before
