"""Rows 44 to 46 and 48 of the catalogue: more processes, threads, memory, disk or descriptors than anybody may have.

Each is ended or held where it is, with the verdict of the limit that it ran into, and nobody else notices.
"""

from __future__ import annotations

import pytest
from attack_kit import (
    DIED,
    DISK,
    EXCEPTION,
    FILES,
    MEMORY,
    OK,
    PIDS,
    TIMEOUT,
    Attack,
    AttackBench,
    attack,
    each,
)  # fmt: skip

FORKS = """import os
while True:
    try: os.fork()
    except OSError: pass
"""
THREADS = """import threading, time
threading.stack_size(1 << 16)
while True:
    try: threading.Thread(target=time.sleep, args=(99,)).start()
    except (RuntimeError, MemoryError): pass
"""
SPAWNS = """import os
while True:
    try: os.posix_spawn('/usr/bin/python3', ['python3', '-c', 'while True: pass'], {})
    except OSError: pass
"""
MEMORY_PLAIN = "kept = []\nwhile True: kept.append(b'x' * (1 << 20))"
MEMORY_MANY = "import os\nfor _ in range(3): os.fork()\n" + MEMORY_PLAIN
MEMORY_SHARED = """import mmap
kept = []
while True:
    kept.append(mmap.mmap(-1, 4 << 20))
    for at in range(0, 4 << 20, 4096): kept[-1][at] = 1
"""
MEMORY_PIPES = """import os
kept = []
while True:
    try:
        kept.append(os.pipe())
        os.set_blocking(kept[-1][1], False)
        while os.write(kept[-1][1], bytes(1 << 16)): pass
    except OSError as error:
        if error.errno == 24:
            if not os.fork(): pass
"""
MEMORY_FILES = """import os
for folder in ('/tmp', '/work'):
    for n in range(64):
        try: open(f'{folder}/{n}', 'wb', 0).write(bytes(1 << 20))
        except OSError as error: print(error.errno)
"""
DISK_FULL = "f = open('/work/fill', 'wb', 0)\nwhile True: f.write(bytes(1 << 16))"
DISK_DENSE = """f = open('/work/sparse', 'r+b' if __import__('os').path.exists('/work/sparse') else 'w+b', 0)
f.truncate(30 << 20)
for at in range(0, 30 << 20, 4096):
    f.seek(at); f.write(b'x')
"""
FILE_SIZE = "f = open('/tmp/large', 'wb', 0)\nf.truncate(1 << 40)\nprint('made')"
MILLION = """import os
n = 0
while True:
    n += 1
    os.close(os.open(f'/work/{n}', os.O_CREAT | os.O_WRONLY))
"""
DEEP = "import os\nos.chdir('/work')\nwhile True:\n    os.mkdir('d'); os.chdir('d')"
DESCRIPTORS = "import os\nkept = []\nwhile True: kept.append(os.dup(0))"
SOCKETS = "import socket\nkept = []\nwhile True: kept.append(socket.socketpair())"
IN_FLIGHT = """import array, os, socket
kept, full = [], 0
while full < 200:
    try:
        a, b = socket.socketpair()
        a.setblocking(False)
        a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [a.fileno(), b.fileno()] * 100))])
    except OSError: full += 1
    a.close(); b.close()
"""

ATTACKS = [
    attack(44, "forks", FORKS, TIMEOUT, PIDS, DIED, MEMORY),
    attack(44, "threads", THREADS, TIMEOUT, PIDS, DIED, MEMORY),
    attack(44, "programs", SPAWNS, TIMEOUT, PIDS, DIED, MEMORY),
    attack(44, "forks that nobody catches", "import os\nwhile True: os.fork()", PIDS, EXCEPTION, TIMEOUT, DIED, MEMORY),
    attack(45, "memory of one", MEMORY_PLAIN, MEMORY),
    attack(45, "memory of many", MEMORY_MANY, MEMORY, TIMEOUT, DIED),
    attack(45, "shared memory", MEMORY_SHARED, MEMORY),
    attack(45, "memory in pipes", MEMORY_PIPES, MEMORY, TIMEOUT, DIED, EXCEPTION, PIDS),
    attack(45, "memory in files", MEMORY_FILES, MEMORY, tmp_mib=64, work_mib=64),
    attack(45, "memory in one object", "x = bytearray(1 << 40)", MEMORY, EXCEPTION),
    attack(46, "a full disk", DISK_FULL, DISK),
    attack(46, "a sparse file made dense", DISK_DENSE, DISK),
    attack(46, "a file larger than the host", FILE_SIZE, FILES, DISK, EXCEPTION),
    attack(46, "a million files", MILLION, TIMEOUT, DISK, FILES, MEMORY),
    attack(46, "folders without end", DEEP, TIMEOUT, DISK, FILES, EXCEPTION, MEMORY),
    attack(48, "descriptors", DESCRIPTORS, FILES),
    attack(48, "sockets", SOCKETS, FILES),
    attack(48, "descriptors in flight", IN_FLIGHT, OK, EXCEPTION, MEMORY, TIMEOUT, DIED),
]


@each(ATTACKS)
def test_a_bomb_is_held_and_named(bench: AttackBench, tried: Attack) -> None:
    bench.suffer(tried)


def test_what_was_full_is_free_again_for_the_next(bench: AttackBench) -> None:
    with bench.sandbox() as box:
        assert bench.call(box, DISK_FULL).status is DISK
        assert bench.call(box, "import os\nos.unlink('/work/fill'); open('/work/a', 'w').write('x')").status is OK
        assert bench.call(box, DESCRIPTORS).status is FILES
        assert bench.call(box, "for one in kept: os.close(one)\nopen('/work/a').close()").status is OK


@pytest.mark.parametrize("folder", ["/tmp", "/work"])
def test_the_size_of_a_folder_is_what_was_given(bench: AttackBench, folder: str) -> None:
    with bench.sandbox() as box:
        code = f"import os\nf = open('{folder}/x', 'wb', 0)\ntry:\n    while True: f.write(bytes(1 << 16))\n"
        result = bench.call(box, code + f"except OSError: print(os.path.getsize('{folder}/x'))")
        given = box.limits.tmp_mib if folder == "/tmp" else box.limits.work_mib
        assert int(result.output) <= given << 20
