"""A broker of one's own and a client that waits for its answers: what the tests of this folder have in common."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from runtime.broker import BrokerClient, ask, client, connect, messages
from runtime.broker import messages as m
from runtime.broker_api import Handle, SnapshotCopy, Termination, Ticket
from runtime.errors import SandboxError
from runtime.guest import wire
from runtime.guest.wire import Op
from runtime.profile import BackendName, BoxUsage, Profile
from runtime.reactor import Reactor
from runtime.sandbox import Priority, SnapshotId
from runtime.settings import BrokerSettings

T = TypeVar("T")
SECONDS = 120.0
"""For one answer; machines that test are busy."""

Settings = Callable[..., BrokerSettings]


def profile(mode: str = "sandbox", backend: BackendName = BackendName.GVISOR, **other: Any) -> Profile:
    usual: dict[str, Any] = {
        "memory_mib": 192,
        "process_memory_mib": 512,
        "pids": 64,
        "cpus": 1.0,
        "tmp_mib": 8,
        "work_mib": 4,
        "output_bytes": 4_096,
    }
    return Profile.model_validate({"mode": mode, "backend": backend} | usual | other)


JAIL = profile("shared", BackendName.NSJAIL)
"""Starts quickly: for tests that need many."""


def child_broker(settings: BrokerSettings, path: Path, *more: str) -> subprocess.Popen[bytes]:
    """A broker that listens, once it does."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--socket", str(path), *more],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
    )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(settings.model_dump_json().encode())
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(SandboxError):  # nobody, or one that was killed and whose socket something still has
            if ask(path).pid == process.pid:
                break
        time.sleep(0.01)
    return process


class BrokerProbe:
    """A client whose questions block."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self.process = process
        self.reactor = Reactor()
        self.gone = Future[None]()
        made: Future[BrokerClient] = Future()
        self.reactor.call(
            lambda: made.set_result(BrokerClient(self.reactor, connection, lambda: self.gone.set_result(None)))
        )
        self.client = made.result(SECONDS)

    @classmethod
    def own(cls, settings: BrokerSettings) -> Self:
        return cls(*client.start_private(settings))

    @classmethod
    def at(cls, path: Path) -> Self:
        return cls(connect(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.reactor.call(self.client.close)
        self.reactor.stop()
        if self.process is not None:
            client.wait_for_private(self.process)

    def begin(self, question: Callable[[Callable[[Any], None]], Any]) -> Future[Any]:
        answer: Future[Any] = Future()
        self.reactor.call(lambda: question(answer.set_result))
        return answer

    def asked(self, question: Callable[[Callable[[Any], None]], Any]) -> Any:
        return result(self.begin(question))

    def begin_launch(
        self, wanted: Profile, caller: str = "", priority: Priority = Priority.TRAINING
    ) -> Future[Handle | SandboxError]:
        return self.begin(
            lambda on_ready: self.client.launch(wanted, caller=caller, priority=priority, on_ready=on_ready)
        )

    def ticket(self, wanted: Profile, on_ready: Callable[[Any], None]) -> Ticket:
        made: Future[Ticket] = Future()
        self.reactor.call(
            lambda: made.set_result(
                self.client.launch(wanted, caller="", priority=Priority.TRAINING, on_ready=on_ready)
            )
        )
        return made.result(SECONDS)

    def launch(self, wanted: Profile, caller: str = "", priority: Priority = Priority.TRAINING) -> Handle:
        return result(self.begin_launch(wanted, caller, priority))

    def begin_restore(self, snapshot: str, *, reseed: bool = False) -> Future[Handle | SandboxError]:
        return self.begin(
            lambda on_ready: self.client.launch(
                SnapshotCopy(snapshot=SnapshotId(snapshot), reseed=reseed),
                caller="",
                priority=Priority.TRAINING,
                on_ready=on_ready,
            )
        )

    def restore(self, snapshot: str, *, reseed: bool = False) -> Handle:
        return result(self.begin_restore(snapshot, reseed=reseed))

    def snapshot(self, handle: Handle, *, durable: bool = False, label: str = "") -> SnapshotId:
        return self.asked(lambda done: self.client.snapshot(handle, durable=durable, label=label, done=done))

    def prepare(self, snapshot: str, copies: int) -> None:
        self.asked(lambda done: self.client.prepare(SnapshotId(snapshot), copies, done))

    def forget(self, snapshot: str) -> None:
        self.asked(lambda done: self.client.forget(SnapshotId(snapshot), done))

    def usage(self, handle: Handle) -> BoxUsage:
        return self.asked(lambda done: self.client.usage(handle, done))

    def end(self, handle: Handle) -> Termination:
        return self.asked(lambda done: self.client.end(handle, done))

    def listing(self) -> m.SnapshotListing:
        return self.asked(self.client.listing)

    def stats(self) -> dict[str, float]:
        return self.asked(self.client.stats).values

    def until(self, holds: Callable[[dict[str, float]], bool], seconds: float = 120.0) -> dict[str, float]:
        """The broker's figures once they are as wanted."""
        deadline = time.monotonic() + seconds
        while not holds(figures := self.stats()):
            assert time.monotonic() < deadline, figures
            time.sleep(0.02)
        return figures


def result(answer: Future[Any]) -> Any:
    found = answer.result(SECONDS)
    if isinstance(found, SandboxError):
        raise found
    return found


def call(handle: Handle, op: Op, body: bytes = b"", session: int = 0) -> wire.Reply:
    """One exchange with a guest."""
    nonce = os.urandom(wire.NONCE_BYTES)
    os.write(handle.requests, wire.pack_request(nonce, op, session, body))
    return hear(handle, nonce)


def hear(handle: Handle, nonce: bytes) -> wire.Reply:
    replies, deadline = wire.Replies(1 << 20), time.monotonic() + SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(handle.replies, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if selector.select(1.0):
                data = os.read(handle.replies, 1 << 16)
                if not data:
                    raise EOFError("the guest has ended")
                for reply in replies.replies(data):
                    assert reply.nonce == nonce
                    return reply
    raise TimeoutError("the guest says nothing")


def python(handle: Handle, code: str) -> str:
    """What the code printed; in a sandbox of its own, after `opened`."""
    session = 0 if handle.profile.mode == "sandbox" else 1
    return call(handle, Op.RUN, code.encode(), session).output.decode()


def opened(handle: Handle) -> Handle:
    """With its interpreter for user code."""
    assert call(handle, Op.OPEN).kind == wire.ReplyKind.READY
    return handle


class Raw:
    """A connection without manners."""

    def __init__(self, path: Path) -> None:
        self.socket = connect(path)
        self.socket.settimeout(120.0)

    def say(self, data: bytes, descriptors: tuple[int, ...] = ()) -> None:
        assert messages.send(self.socket, data, descriptors)

    def hello(self) -> None:
        self.say(messages.pack(m.ClientHello(request=1, protocol=m.PROTOCOL)))
        assert isinstance(self.hear(), m.BrokerWelcome)

    def hear(self) -> m.Answer:
        return m.ANSWER.validate_json(self.socket.recv(m.PACKET_BYTES))

    def hung_up(self) -> bool:
        """Whether the broker ends the connection, within the socket's time."""
        try:
            while self.socket.recv(m.PACKET_BYTES):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True
