"""The worker of a guest as a plain process of this machine, spoken to over its pipes.

Nothing isolates it: only code that a test could run itself belongs here. Hostile code goes into a sandbox.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.backends.bundle import COMMAND
from runtime.guest import wire
from runtime.guest.wire import Op, ReplyKind
from runtime.profile import Mode, Profile

WORKER = Path(__file__).parents[3] / "runtime/guest/worker.py"
PROFILE = Profile(
    mode="sandbox",
    memory_mib=512,
    process_memory_mib=512,
    pids=64,
    cpus=1.0,
    tmp_mib=8,
    work_mib=8,
    open_files=64,
    output_bytes=4_096,
    ahead=1,
)


class Worker:
    def __init__(self, profile: Profile) -> None:
        command = [*COMMAND[:-1], str(WORKER), profile.mode, profile.worker_limits()]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.replies = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._decoder = wire.Replies(1 << 22)
        self._found: list[wire.Reply] = []

    def next(self, seconds: float = 120.0) -> wire.Reply:
        """Raises EOFError when the worker has ended, TimeoutError when it says nothing."""
        deadline = time.monotonic() + seconds
        while not self._found:
            if not select.select([self.replies], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            data = os.read(self.replies, 1 << 16)
            if not data:
                raise EOFError
            self._found += self._decoder.replies(data)
        return self._found.pop(0)

    def send(self, op: Op, session: int = 0, body: bytes = b"") -> bytes:
        nonce = os.urandom(wire.NONCE_BYTES)
        self.write(wire.pack_request(nonce, op, session, body))
        return nonce

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.requests, view) :]

    def ask(self, op: Op, session: int = 0, body: bytes = b"", seconds: float = 120.0) -> wire.Reply:
        nonce = self.send(op, session, body)
        reply = self.next(seconds)
        assert reply.nonce == nonce, reply
        return reply

    def run(self, code: str, session: int = 0) -> wire.Reply:
        return self.ask(Op.RUN, session, code.encode())

    def says(self, code: str, session: int = 0) -> str:
        """What the code printed; it has to end well."""
        reply = self.run(code, session)
        assert reply.kind == ReplyKind.OK, reply
        return reply.output.decode()

    def complaint(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def end(self) -> None:
        """As the host ends it when it goes: by closing its pipe."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=120)
        finally:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe is not None
                pipe.close()


@contextmanager
def worker(mode: Mode, *, opened: bool = True, **changes: object) -> Iterator[Worker]:
    """One that has said READY; with `opened`, session 0 has its process."""
    found = Worker(PROFILE.model_copy(update={"mode": mode, **changes}))
    try:
        assert found.next().kind == ReplyKind.READY
        if opened and mode != "shared":
            assert found.ask(Op.OPEN).kind == ReplyKind.READY
        yield found
    finally:
        found.end()


def children(pid: int) -> list[int]:
    """All processes below one."""
    direct = [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return direct + [below for child in direct for below in children(child)]
