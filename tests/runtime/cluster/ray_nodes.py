"""Nodes of a real Ray cluster on this machine: one process for each host, each on a loopback address of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from runtime.cluster.node import NodeSettings
from runtime.cluster.process_session import ProcessSession, SessionProcess
from runtime.sandbox import Limits
from runtime.settings import BrokerSettings, ClusterSettings, RuntimeSettings

PORT = 26379
LIMITS = Limits(call_seconds=5.0, memory_mib=128, pids=64, output_bytes=4_096, tmp_mib=8, work_mib=4)


def until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not after {seconds} s"
        time.sleep(0.02)


class Nodes:
    """A folder, a token, and the nodes that were started in it."""

    def __init__(
        self, root_dir: Path, addresses: Sequence[str] = (), prefixes: Sequence[Sequence[str]] = ((),) * 8
    ) -> None:
        """`prefixes` are put before the command of each node."""
        self.folder = Path(tempfile.mkdtemp(prefix="rc", dir="/tmp"))
        self.root_dir = root_dir
        self.prefixes = prefixes
        pid = os.getpid()
        self.addresses = addresses or [f"127.{1 + pid % 250}.{pid // 250 % 250}.{n}" for n in range(2, 8)]
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def token(self) -> Path:
        return self.folder / "token"

    def settings(self, number: int, *, token: Path | None = None) -> NodeSettings:
        folder = self.folder / f"n{number}"
        own = BrokerSettings(state_dir=folder / "s", root_dir=self.root_dir, ready=0)
        return NodeSettings(
            head=number == 0,
            address=f"{self.addresses[0]}:{PORT}",
            interface=self.addresses[number],
            token=token or self.token,
            folder=folder,
            name=f"host-{number}",
            runtime=RuntimeSettings(own=own, shared_workers=1, process_children=1),
        )

    def begin(self, number: int, *, token: Path | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*self.prefixes[number], sys.executable, "-I", "-m", "runtime.cluster"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(self.settings(number, token=token).model_dump_json().encode())
        process.stdin.close()
        process.stdin = None
        self.processes[number] = process
        return process

    def wait(self, *numbers: int) -> None:
        for number in numbers:
            self.hear(number, "ready")

    def hear(self, number: int, *lines: str) -> None:
        """Waits until the node says these lines."""
        out = self.processes[number].stdout
        assert out is not None
        for line in lines:
            answer = out.readline()
            assert answer == f"{line}\n".encode(), f"node {number} said {answer!r}: {self._complaint(number)}"

    def _complaint(self, number: int) -> str:
        """What a node that has ended said of it."""
        process = self.processes[number]
        if process.poll() is None or process.stderr is None:
            return "it goes on"
        return process.stderr.read().decode(errors="replace")[-1000:]

    def driver(self, **more: object) -> ClusterSettings:
        return ClusterSettings(
            address=f"{self.addresses[0]}:{PORT}", interface=self.addresses[0], token=self.token, **more
        )

    def session(self, number: int) -> ProcessSession:
        leader, started, boot = (self.folder / f"n{number}" / "processes").read_text().split()
        return ProcessSession(int(leader), int(started), boot)

    def members(self, number: int, argument: str = "") -> list[SessionProcess]:
        """Processes of a node whose command line has this word in it."""
        return [member for member in self.session(number).members() if argument in command(member.pid)]

    def close(self) -> list[str]:
        """What is left of anything that ran in the folder."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        time.sleep(0.2)
        left = running(self.folder)
        left += [str(path) for number in self.processes for path in (self.folder / f"n{number}").glob("s/*")]
        left += [str(path) for path in self.folder.glob("n*/r")]
        shutil.rmtree(self.folder)
        return left


def running(folder: Path) -> list[str]:
    """Command lines that have this folder in them."""
    return [line for pid in pids() if f"{folder}/" in (line := command(pid))]


def pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(parents: set[int]) -> set[int]:
    found = set()
    for pid in pids():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) in parents:
            found.add(pid)
    return found


def listeners(members: Sequence[int]) -> set[tuple[str, int]]:
    """Addresses and ports on which any of the processes listens (TCP, both families)."""
    inodes = set()
    for pid in members:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(descriptor.readlink())
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{members[0]}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                host, port = fields[1].split(":")
                words = [bytes.fromhex(host[at : at + 8])[::-1] for at in range(0, len(host), 8)]
                found.add((socket.inet_ntop(family, b"".join(words)).removeprefix("::ffff:"), int(port, 16)))
    return found


def grpc_status(address: str, port: int, method: str, token: str | None = None) -> str:
    """`grpc-status` and message of a call with an empty body, spoken by hand; empty where nobody speaks gRPC."""

    def field(name: bytes, value: bytes) -> bytes:  # HPACK: a literal that is not indexed, no Huffman code
        assert max(len(name), len(value)) < 127
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
        return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body

    headers = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", method.encode()),
        (b":authority", f"{address}:{port}".encode()),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    ]
    if token is not None:
        headers.append((b"authorization", b"Bearer " + token.encode()))
    block = b"".join(field(name, value) for name, value in headers)
    with socket.create_connection((address, port), timeout=30) as connection:
        connection.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + frame(4, 0, 0, b"")
            + frame(1, 4, 1, block)
            + frame(0, 1, 1, b"\0\0\0\0\0")
        )
        received = b""
        try:
            while b"grpc-status" not in received and (more := connection.recv(4096)):
                received += more
        except (TimeoutError, ConnectionResetError):
            pass
    return received.partition(b"grpc-status")[2].decode("latin-1")


def kill(process: SessionProcess | int) -> None:
    os.kill(process if isinstance(process, int) else process.pid, signal.SIGKILL)
