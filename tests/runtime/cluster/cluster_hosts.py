"""Hosts of a cluster inside the test's own process: real actors and a real driver, without Ray between them.

The pool behind an actor is a small one of its own that runs the tests' own snippets on threads. What Ray does is
tested with Ray, and what sandboxes do with sandboxes.
"""

from __future__ import annotations

import io
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from runtime.cluster.host_actor import HostActor
from runtime.cluster.messages import Frame, FrameKind
from runtime.cluster.settings import HostSettings
from runtime.errors import BadRequestError, BusyError, RefusedError, SandboxError
from runtime.profile import PackageSet
from runtime.reactor import Reactor
from runtime.sandbox import NO_FILES, CallResult, CallStatus, Limits, Priority, Tier, Usage
from runtime.settings import BrokerSettings, ClusterSettings, RuntimeSettings

GATE = threading.Event()
HANGS = "from cluster_hosts import GATE; GATE.wait(240)"
"""Code that goes on when the gate is opened."""


class ThreadSession:
    """Names in a dictionary, one thread."""

    def __init__(self, number: int, tier: Tier, names: dict[str, object] | None = None) -> None:
        self.id = f"thread-{number}"
        self.tier = tier
        self.names: dict[str, object] = dict(names or {})
        self.before: dict[str, object] = {}
        self.calls = 0
        self.closed = False
        self._thread = ThreadPoolExecutor(1)

    @property
    def usage(self) -> Usage:
        return Usage(calls=self.calls)

    def start(
        self, code: str, *, seconds: float | None = None, keep: bool = False, patience: float = 1.0
    ) -> Future[CallResult]:
        if self.closed:
            raise BadRequestError(f"{self.id} is closed")
        return self._thread.submit(self._run, code, keep)

    def _run(self, code: str, keep: bool) -> CallResult:
        if keep:
            self.before = dict(self.names)
        began, output = time.monotonic(), io.StringIO()
        if "open(" in code:
            self.tier = Tier.SANDBOX
        self.names["print"] = lambda *what: print(*what, file=output)
        exec(code.encode("utf-8", "replace").decode(), self.names)
        self.calls += 1
        if self.closed:
            raise BadRequestError(f"{self.id}: it was closed")
        return CallResult(
            status=CallStatus.OK,
            output=output.getvalue(),
            seconds=time.monotonic() - began,
            tier=self.tier,
            sandbox=self.id,
        )

    def fork(self, n: int, *, undo: bool = False) -> list[ThreadSession]:
        self._thread.submit(lambda: None).result()  # after the calls under way
        return [ThreadSession(number, self.tier, self.before if undo else self.names) for number in range(n)]

    def close(self) -> None:
        self.closed = True
        self._thread.shutdown(wait=False)


class ThreadPool:
    def __init__(self, limits: Limits, most: int = 1000) -> None:
        self.limits, self.most = limits, most
        self.sessions: list[ThreadSession] = []
        self.closed = False

    def open(
        self,
        *,
        tier: Tier = Tier.SHARED,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
        files: Mapping[str, bytes] = NO_FILES,
        userland: bool = False,
        packages: PackageSet | None = None,
    ) -> ThreadSession:
        if packages is not None:
            raise RefusedError(f"no package set {packages.digest} on this host")
        if len(self.sessions) >= self.most:
            raise BusyError("too many sessions wait", hint="come back later")
        session = ThreadSession(len(self.sessions), tier, {"files": dict(files)} if files else {})
        self.sessions.append(session)
        return session

    def sandbox(self, *_: object, **__: object) -> object:
        raise SandboxError("there is none here")

    def stats(self) -> dict[str, float]:
        return {"calls": float(sum(session.calls for session in self.sessions)), "sessions": float(len(self.sessions))}

    def close(self) -> None:
        self.closed = True
        for session in self.sessions:
            session.close()


def host_settings(name: str, folder: Path, **runtime: object) -> HostSettings:
    own = BrokerSettings(state_dir=folder / "state", root_dir=folder / "root", ready=1)
    return HostSettings(name=name, folder=folder, runtime=RuntimeSettings(own=own, **runtime), lease_seconds=240)


class LocalHost:
    """One actor and what stands for its machine's network."""

    def __init__(self, settings: HostSettings, most: int = 1000) -> None:
        self.settings, self.most = settings, most
        settings.folder.mkdir(exist_ok=True)
        self.pools: list[ThreadPool] = []
        self.silent = False
        self.refuses = ""

    def make_pool(self, limits: Limits) -> ThreadPool:
        if self.refuses:
            raise RefusedError(self.refuses)
        self.pools.append(ThreadPool(limits, self.most))
        return self.pools[-1]


class LocalNode:
    """An actor with the two threads that Ray would call it on."""

    def __init__(self, name: str, host: LocalHost, send: Callable[[Frame], None]) -> None:
        self.name, self.host, self._send_report = name, host, send
        self._actor = HostActor(host.settings, host.make_pool, ended=lambda: None)
        self._gone = threading.Event()
        self._submitter = ThreadPoolExecutor(1)
        threading.Thread(target=self._collect, daemon=True).start()

    def submit(self, packet: bytes) -> None:
        if not self._gone.is_set():
            self._submitter.submit(self._actor.submit, [packet])

    def lose(self) -> None:
        self._gone.set()

    def close(self) -> None:
        self._gone.set()
        self._submitter.shutdown()
        self._actor.close()

    def _collect(self) -> None:
        while not self._gone.is_set():
            packet = self._actor.collect(0.2)
            while self.host.silent and not self._gone.wait(0.05):
                pass
            if not self._gone.is_set():
                self._send_report(Frame(FrameKind.PACKET, self.name, packet))


class LocalLink:
    """A `runtime.cluster.link.Link` to actors in this process."""

    def __init__(self, settings: ClusterSettings, reactor: Reactor) -> None:
        self._reactor = reactor
        self._nodes: dict[str, LocalNode] = {}
        self._numbers = itertools.count()
        self.first: list[LocalHost] = []
        self.dropped: list[str] = []

    def start(self, received: Callable[[Frame], None], ended: Callable[[SandboxError | None], None]) -> None:
        self._receive, self.ended = received, ended
        self._send_report(Frame(FrameKind.NODES, body=str(len(self.first)).encode()))
        for host in self.first:
            self.join(host)

    def join(self, host: LocalHost, address: str | None = None) -> str:
        """A node with this host comes up; its name in the cluster."""
        node = f"node-{next(self._numbers)}"
        self._nodes[node] = LocalNode(node, host, self._send_report)
        self._send_report(Frame(FrameKind.UP, node, (address or host.settings.name).encode()))
        return node

    def lose(self, node: str, reason: str = "its actor died") -> None:
        self._nodes[node].lose()
        self._send_report(Frame(FrameKind.DOWN, node, reason.encode()))

    def inject(self, node: str, packet: bytes) -> None:
        self._send_report(Frame(FrameKind.PACKET, node, packet))

    def send(self, frame: Frame) -> None:
        if frame.kind is FrameKind.DOWN:
            self.dropped.append(frame.host)
        else:
            self._nodes[frame.host].submit(frame.body)

    def close(self) -> None:
        for node in self._nodes.values():
            node.close()

    def _send_report(self, frame: Frame) -> None:
        self._reactor.call(lambda: self._receive(frame))
