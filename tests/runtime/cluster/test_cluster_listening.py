"""A program that is kept to one address listens there or on loopback, or not at all, whatever it asks for."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
from ipaddress import ip_address
from pathlib import Path

import pytest

from runtime.backends.lease import start_ticks
from runtime.cluster import listening

HERE = ip_address(f"127.{1 + os.getpid() % 200}.0.2")
TRY = """
import json, socket, sys, threading
def attempt(family, kind, host, listen=True):
    with socket.socket(family, kind) as s:
        try:
            if host is not None:
                s.bind((host, 0))
            if listen:
                s.listen()
            return s.getsockname()[0]
        except OSError as error:
            return error.errno
I4, I6, TCP, UDP = socket.AF_INET, socket.AF_INET6, socket.SOCK_STREAM, socket.SOCK_DGRAM
found = {
    "wildcard": attempt(I4, TCP, "0.0.0.0"),
    "wildcard of both families": attempt(I6, TCP, "::"),
    "its own": attempt(I4, TCP, sys.argv[1]),
    "loopback": attempt(I4, TCP, "127.0.0.1"),
    "loopback of IPv6": attempt(I6, TCP, "::1"),
    "another": attempt(I4, TCP, "192.0.2.1"),
    "another, mapped": attempt(I6, TCP, "::ffff:192.0.2.1"),
    "unbound": attempt(I4, TCP, None),
    "datagrams": attempt(I4, UDP, "0.0.0.0", listen=False),
}
with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
    s.bind("\\0" + sys.argv[1])
    s.listen()
    found["unix"] = "fine"
threads = [threading.Thread(target=lambda: found.update(thread=attempt(I4, TCP, "0.0.0.0")))]
for t in threads: t.start()
for t in threads: t.join()
import subprocess
code = "import socket; s = socket.socket(); s.bind(('', 0)); print(s.getsockname()[0], end='')"
found["child"] = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
print(json.dumps(found))
"""


def run(code: str, folder: Path, *arguments: str) -> tuple[int, str]:
    with (folder / "out").open("wb") as output:
        listener = listening.start(
            [sys.executable, "-c", code, *arguments], HERE, environ=os.environ, folder=folder, output=output
        )
    try:
        return listener.process.wait(120), (folder / "out").read_text()
    finally:
        listener.process.kill()
        listener.process.wait()
        listener.close()


def test_every_socket_of_a_program_is_kept_to_one_address(tmp_path: Path) -> None:
    code, output = run(TRY, tmp_path, str(HERE))
    assert code == 0, output
    here, ipv6 = str(HERE), socket.has_ipv6 and Path("/proc/net/if_inet6").exists()
    expected = {
        "wildcard": here,
        "its own": here,
        "loopback": "127.0.0.1",
        "another": errno.EACCES,
        "another, mapped": errno.EACCES if ipv6 else errno.EAFNOSUPPORT,
        "unbound": errno.EACCES,
        "datagrams": here,
        "unix": "fine",
        "thread": here,
        "child": here,
    }
    if ipv6:
        expected |= {"wildcard of both families": f"::ffff:{here}", "loopback of IPv6": "::1"}
    found = json.loads(output)
    assert {name: found[name] for name in expected} == expected


def test_nothing_more_is_bound_once_its_keeper_is_gone(tmp_path: Path) -> None:
    code = """
import socket, sys, time
sys.stdin.read()
s = socket.socket()
try:
    s.bind(("127.0.0.1", 0))
    print("bound", flush=True)
except OSError as error:
    print("refused", flush=True)
"""
    out, into = os.pipe()
    os.set_inheritable(out, True)
    with (tmp_path / "out").open("wb") as output:
        program = f"import os; os.dup2({out}, 0)\n{code}"
        listener = listening.start(
            [sys.executable, "-c", program],
            HERE,
            environ=os.environ,
            folder=tmp_path,
            output=output,
            descriptors=(out,),
        )
    os.close(out)
    listener.close()
    os.close(into)
    assert listener.process.wait(120) == 0
    assert (tmp_path / "out").read_text() == "refused\n"


def test_the_program_dies_with_the_one_who_started_it(tmp_path: Path) -> None:
    starter = f"""
import os, sys
from ipaddress import ip_address
from pathlib import Path
from runtime.cluster import listening
listener = listening.start(
    ["/bin/sleep", "600"], ip_address("{HERE}"), environ=os.environ, folder=Path("/"), output=1
)
print(listener.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, timeout=120)
    assert done.returncode == -9
    pid = int(done.stdout)
    deadline = time.monotonic() + 120
    while start_ticks(pid) is not None:  # a zombie has ended
        assert time.monotonic() < deadline, f"process {pid} still lives"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("family", "asked", "given", "bound"),
    [
        (socket.AF_INET, "0.0.0.0", "10.1.2.3", "10.1.2.3"),
        (socket.AF_INET6, "::", "10.1.2.3", "::ffff:10.1.2.3"),
        (socket.AF_INET6, "::", "fd00::5", "fd00::5"),
        (socket.AF_INET6, "fd00::5%3", "fd00::5", "fd00::5"),
        (socket.AF_INET, "127.0.0.1", "10.1.2.3", "127.0.0.1"),
        (socket.AF_INET6, "::ffff:127.0.0.1", "10.1.2.3", "::ffff:127.0.0.1"),
    ],
)
def test_the_wildcard_becomes_the_address_and_loopback_stays(family: int, asked: str, given: str, bound: str) -> None:
    assert listening.replaced(family, asked, ip_address(given)) == bound


@pytest.mark.parametrize(
    ("family", "asked", "given"),
    [
        (socket.AF_INET, "10.1.2.4", "10.1.2.3"),
        (socket.AF_INET, "0.0.0.0", "fd00::5"),
        (socket.AF_INET6, "fe80::1%2", "fd00::5"),
        (socket.AF_INET, "255.255.255.255", "10.1.2.3"),
    ],
)
def test_every_other_address_is_refused(family: int, asked: str, given: str) -> None:
    with pytest.raises(OSError, match="address"):
        listening.replaced(family, asked, ip_address(given))
