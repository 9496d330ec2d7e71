"""A backend as a broker has it; its boxes are spoken to over their own pipes, nothing between test and guest."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from runtime.backends.backend import Backend
from runtime.backends.cgroups import members
from runtime.backends.host import SandboxHost
from runtime.backends.lease import state_mark
from runtime.backends.process_box import ProcessBox
from runtime.errors import SandboxError
from runtime.guest import wire
from runtime.profile import BoxUsage, Profile
from runtime.reactor import Reactor
from runtime.settings import BrokerSettings

PROFILE = Profile(
    mode="sandbox",
    memory_mib=128,
    process_memory_mib=512,
    pids=64,
    cpus=1.0,
    tmp_mib=8,
    work_mib=4,
    open_files=256,
    output_bytes=65_536,
)


class Guest:
    """One box and its worker."""

    def __init__(self, bench: Bench, box: ProcessBox, *, fresh: bool) -> None:
        self.bench, self.box = bench, box
        self._replies = wire.Replies(1 << 22)
        self._found: list[wire.Reply] = []
        if fresh:
            assert self.next().kind == wire.ReplyKind.READY
            if box.profile.mode != "shared":
                assert self.ask(wire.Op.OPEN).kind == wire.ReplyKind.READY

    def next(self, seconds: float = 120.0) -> wire.Reply:
        """The next reply. Raises EOFError when the guest has ended, TimeoutError when it says nothing."""
        deadline = time.monotonic() + seconds
        while not self._found:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.box.replies], [], [], left)[0]:
                raise TimeoutError(self.box.complaint())
            data = os.read(self.box.replies, 1 << 16)
            if not data:
                raise EOFError(self.box.complaint())
            self._found += self._replies.replies(data)
        return self._found.pop(0)

    def send(self, op: wire.Op, body: bytes = b"") -> bytes:
        nonce = os.urandom(wire.NONCE_BYTES)
        os.write(self.box.requests, wire.pack_request(nonce, op, 0, body))
        return nonce

    def ask(self, op: wire.Op, body: bytes = b"", seconds: float = 120.0) -> wire.Reply:
        nonce = self.send(op, body)
        reply = self.next(seconds)
        assert reply.nonce == nonce, reply
        return reply

    def run(self, code: str) -> wire.Reply:
        return self.ask(wire.Op.RUN, code.encode())

    def says(self, code: str) -> str:
        """What the code printed; it has to end well."""
        reply = self.run(code)
        assert reply.kind == wire.ReplyKind.OK, reply
        return reply.output.decode()

    def usage(self) -> BoxUsage:
        return self.box.usage()

    def end(self) -> BoxUsage:
        found = self.bench.ask(lambda done: self.bench.backend.end(self.box, done))
        assert isinstance(found, BoxUsage)
        return found

    def freeze(self, folder: Path, *, settled: bool = False) -> None:
        """Raises what the backend has to complain about."""
        folder.mkdir()
        freeze = partial(self.bench.backend.checkpoint, self.box, folder, settled=settled)
        problem = self.bench.ask(lambda done: freeze(done=done))
        if problem is not None:
            raise problem

    def groups(self) -> list[Path]:
        return find_groups("assay-", f".{self.box.id}")

    def processes(self) -> set[int]:
        return {pid for group in self.groups() for pid in members(group)}

    def first(self) -> Path:
        """The folder under /proc of the guest's first process, as the host sees it."""
        for pid in self.processes():
            with suppress(FileNotFoundError, ProcessLookupError):  # one may end meanwhile
                status = Path(f"/proc/{pid}/status").read_text()
                if f"NSpid:\t{pid}\t1\n" in status:
                    return Path(f"/proc/{pid}")
        raise AssertionError("no guest is running")

    def kill(self) -> None:
        """As a fault would: without anybody being told."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Bench:
    def __init__(
        self,
        settings: BrokerSettings,
        backend: Callable[[BrokerSettings, Reactor, SandboxHost], Backend],
        profile: Profile = PROFILE,
    ) -> None:
        self.settings, self.profile = settings, profile
        self.reactor = Reactor()
        try:
            self.host = SandboxHost(settings.state_dir, self.reactor)
        except BaseException:
            self.reactor.stop()
            raise
        try:
            self.backend = backend(settings, self.reactor, self.host)
        except BaseException:
            self._stop()
            raise

    def ask(self, action: Callable[[Callable[[Any], None]], None]) -> Any:
        """Has it done on the reactor, and waits for its call back."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                action(future.set_result)
            except BaseException as error:
                future.set_exception(error)

        self.reactor.call(run)
        return future.result(timeout=120)

    def start(self, image: Path | None = None, **changes: Any) -> Guest:
        """A box that somebody has to end. Raises what the backend has to complain about."""
        box = self.ask(lambda done: self.backend.start(self.profile.model_copy(update=changes), image, done))
        if isinstance(box, SandboxError):
            raise box
        try:
            return Guest(self, box, fresh=image is None)
        except BaseException:
            self.ask(lambda done: self.backend.end(box, done))
            raise

    @contextmanager
    def guest(self, image: Path | None = None, **changes: Any) -> Iterator[Guest]:
        guest = self.start(image, **changes)
        try:
            yield guest
        finally:
            guest.end()

    def close(self) -> None:
        self.ask(lambda done: done(self.backend.close()))
        self._stop()

    def groups(self) -> list[str]:
        """All that this owner has in the kernel's tree, but the group of its tools."""
        found = find_groups(f"assay-{self.host.mark}.{self.host.owner}.")
        return sorted({group.name for group in found if not group.name.endswith(".tools")})

    def folders(self) -> list[str]:
        return sorted(entry.name for entry in self.host.folder.iterdir() if entry.name not in ("cgroups", "bundles"))

    def _stop(self) -> None:
        self.ask(lambda done: done(self.host.close()))
        self.reactor.stop()


def find_groups(start: str, end: str = "") -> list[Path]:
    """Control groups by the beginning and the end of their names; those of others may vanish meanwhile."""
    walk = os.walk("/sys/fs/cgroup")
    return [Path(at, name) for at, below, _ in walk for name in below if name.startswith(start) and name.endswith(end)]


def groups_of(state_dir: Path) -> list[Path]:
    return find_groups(f"assay-{state_mark(state_dir)}.")


def children() -> dict[int, str]:
    """Our children and what state they are in, zombies included."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().rpartition(")")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(rest.split()[1]) == os.getpid():
                found[int(entry.name)] = f"{name.partition('(')[2]} {rest.split()[0]}"
    return found
