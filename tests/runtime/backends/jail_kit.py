"""Boxes of the nsjail backend for tests, spoken to over their own pipes: nothing between the test and the guest."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from box_kit import find_groups

from runtime.backends.backend import Box, BoxUsage
from runtime.backends.nsjail import NsJail
from runtime.backends.site import Site
from runtime.errors import SandboxError
from runtime.guest import wire
from runtime.profile import Profile
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

PROFILE = Profile(
    mode="sandbox",
    memory_mib=96,
    process_memory_mib=256,
    pids=32,
    cpus=1.0,
    tmp_mib=8,
    work_mib=4,
    open_files=256,
    output_bytes=65_536,
)


class Guest:
    def __init__(self, jails: Jails, box: Box) -> None:
        self.jails, self.box = jails, box
        self._replies = wire.Replies(1 << 22)
        self._found: list[wire.Reply] = []
        self._session = 0 if box.profile.mode == "sandbox" else 1
        assert self.next().kind == wire.Kind.READY
        if box.profile.mode != "shared":
            assert self.ask(wire.Op.OPEN).kind == wire.Kind.READY

    def next(self, seconds: float = 20.0) -> wire.Reply:
        """The next reply. Raises EOFError when the guest has ended, TimeoutError when it says nothing."""
        deadline = time.monotonic() + seconds
        while not self._found:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.box.replies], [], [], left)[0]:
                raise TimeoutError
            data = os.read(self.box.replies, 1 << 16)
            if not data:
                raise EOFError(self.box.complaint())
            self._found += self._replies.feed(data)
        return self._found.pop(0)

    def send(self, op: wire.Op, body: bytes = b"") -> bytes:
        nonce = os.urandom(wire.NONCE_BYTES)
        os.write(self.box.requests, wire.pack_request(nonce, op, self._session, body))
        return nonce

    def ask(self, op: wire.Op, body: bytes = b"", seconds: float = 20.0) -> wire.Reply:
        nonce = self.send(op, body)
        reply = self.next(seconds)
        assert reply.nonce == nonce
        return reply

    def run(self, code: str) -> wire.Reply:
        return self.ask(wire.Op.RUN, code.encode())

    def says(self, code: str) -> str:
        """What the code printed; it has to end well."""
        reply = self.run(code)
        assert reply.kind == wire.Kind.OK, reply
        return reply.output.decode()

    def usage(self) -> BoxUsage:
        return self.jails.ask(lambda done: done(self.jails.backend.usage(self.box)))

    def end(self) -> BoxUsage:
        return self.jails.ask(lambda done: self.jails.backend.end(self.box, done))

    def groups(self) -> list[Path]:
        return find_groups("assay-", f".{self.box.id}")

    def processes(self) -> set[int]:
        return {int(line) for group in self.groups() for line in (group / "cgroup.procs").read_text().split()}

    def first(self) -> Path:
        """The folder under /proc of the guest's first process, as the host sees it."""
        for pid in self.processes():
            status = Path(f"/proc/{pid}/status").read_text()
            if f"NSpid:\t{pid}\t1\n" in status:
                return Path(f"/proc/{pid}")
        raise AssertionError("no guest is running")


class Jails:
    """A backend as a broker has it."""

    def __init__(self, settings: BrokerSettings) -> None:
        self.reactor = Reactor()
        self.site = Site(settings.state_dir, self.reactor)
        self.backend = NsJail(settings, self.reactor, self.site)

    def ask(self, action: Callable[[Callable[[Any], None]], None]) -> Any:
        """Has it done on the reactor, and waits for its call back."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                action(future.set_result)
            except BaseException as error:
                future.set_exception(error)

        self.reactor.call(run)
        return future.result(timeout=60)

    @contextmanager
    def guest(self, **changes: Any) -> Iterator[Guest]:
        box = self.ask(lambda done: self.backend.start(PROFILE.model_copy(update=changes), None, done))
        if isinstance(box, SandboxError):
            raise box
        guest = Guest(self, box)
        try:
            yield guest
        finally:
            guest.end()

    def close(self) -> None:
        self.ask(lambda done: done(self.backend.close()))
        self.site.close()
        self.reactor.stop()
