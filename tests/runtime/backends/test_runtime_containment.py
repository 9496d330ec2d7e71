"""Hostile code in a sandbox of its own: no network, no other user, and never more than it was given."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from sandbox_groups import groups

from runtime.backends.bundle import ENVIRONMENT
from runtime.errors import BadRequestError, InfrastructureError
from runtime.sandbox import CallStatus, Sandbox
from runtime.sessions import Sessions


@pytest.fixture(scope="module")
def box(pool: Sessions) -> Iterator[Sandbox]:
    with pool.sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    "target",
    [
        "socket.create_connection(('127.0.0.1', 22), 1)",
        "socket.create_connection(('169.254.0.1', 80), 1)",
        "socket.create_connection(('203.0.113.1', 53), 1)",
        "socket.create_connection(('::1', 22), 1)",
        "socket.socket(socket.AF_UNIX).connect('/run/systemd/private')",
        "socket.socket(socket.AF_UNIX).connect('\\0/org/freedesktop/systemd1')",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('198.51.100.1', 53))",
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "socket.getaddrinfo('name.invalid', 80)",
    ],
)
def test_there_is_no_way_out_through_a_socket(box: Sandbox, target: str) -> None:
    result = box.run(f"import socket\nprint({target})")
    assert result.status is CallStatus.EXCEPTION
    assert result.error.split(":")[0] in {
        "OSError", "ConnectionRefusedError", "FileNotFoundError", "PermissionError", "gaierror",
    }  # fmt: skip


BECOMING_ROOT = """import os
print(os.getuid(), os.getgid())
for change in (os.setuid, os.setgid):
    try: print(change(0))
    except OSError as error: print(error.strerror)
"""


def test_the_user_is_nobody_in_particular_and_cannot_become_another(box: Sandbox) -> None:
    assert box.run(BECOMING_ROOT).output == "1000 1000\n" + "Operation not permitted\n" * 2


@pytest.mark.parametrize("path", ["/usr/bin/evil", "/etc/passwd", "/opt/runtime/guest/wire.py", "/evil", "/proc/x"])
def test_nothing_outside_work_and_tmp_can_be_written(box: Sandbox, path: str) -> None:
    assert box.run(f"open({path!r}, 'w')").error.startswith(("OSError", "PermissionError"))


def test_mounts_and_devices_cannot_be_made(box: Sandbox) -> None:
    code = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.mount(b'tmpfs', b'/work', b'tmpfs', 0, None), libc.chroot(b'/work'))\n"
        "try: os.mknod('/work/sda', 0o60666, os.makedev(8, 0)); print(open('/work/sda', 'rb').read(1))\n"
        "except OSError: print('none')"
    )
    assert box.run(code).output == "-1 -1\nnone\n"
    with pytest.raises(BadRequestError):
        box.read("/work/sda")


def test_nothing_of_the_host_is_in_the_environment(box: Sandbox) -> None:
    names = box.run("import os\nprint(*sorted(os.environ))").output.split()
    assert set(names) <= {*ENVIRONMENT, "LC_CTYPE"}
    assert set(box.run("import os\nprint(*os.listdir('/'))").output.split()) == {
        "dev", "etc", "lib", "lib64", "opt", "proc", "sys", "tmp", "usr", "work",
    }  # fmt: skip


def test_a_full_disk_is_an_error_inside_and_nothing_outside(box: Sandbox) -> None:
    for folder, mib in (("/work", box.limits.work_mib), ("/tmp", box.limits.tmp_mib)):
        code = f"with open('{folder}/fill', 'wb', 0) as f:\n    while True: f.write(bytes(1 << 20))"
        assert box.run(code).error == "OSError: [Errno 28] No space left on device"
        size = int(box.run(f"import os\nprint(os.path.getsize('{folder}/fill'))\nos.unlink('{folder}/fill')").output)
        assert size <= mib << 20


BOMBS = {
    "forks": """import os
while True:
    try: os.fork()
    except OSError: pass
""",
    "threads": """import threading, time
while True:
    try: threading.Thread(target=time.sleep, args=(99,)).start()
    except (RuntimeError, MemoryError): pass
""",
    "orphans": """import os
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        while True: pass
while True: pass
""",
    "memory by many": """import os
for _ in range(8):
    if os.fork() == 0: break
kept = []
while True: kept.append(b'x' * (1 << 20))
""",
    "descriptors": """import os
kept = []
while True:
    try: kept.append(os.dup(0))
    except OSError: pass
""",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_stopped_in_its_sandbox_while_the_others_go_on(pool: Sessions, bomb: str) -> None:
    with pool.sandbox() as sandbox, pool.open() as neighbour:
        neighbour.run("x = 1")
        mark = f"assay-*.{sandbox.id}"
        assert groups(mark)
        result = sandbox.run(BOMBS[bomb], seconds=1.0)
        assert result.status in (CallStatus.TIMEOUT, CallStatus.MEMORY, CallStatus.DIED)
        assert result.seconds < 120
        assert neighbour.run("print(x)").output == "1\n"
        with pytest.raises(InfrastructureError):
            sandbox.run("1")
    deadline = time.monotonic() + 120
    while groups(mark):  # the kernel keeps a group for as long as a process is in it
        assert time.monotonic() < deadline
        time.sleep(0.05)
