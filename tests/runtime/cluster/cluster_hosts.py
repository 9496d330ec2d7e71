"""Hosts of a cluster inside the test's own process: real actors and a real driver, without Ray between them.

The pool behind an actor is a small one of its own that runs the tests' own snippets on threads. What Ray does is
tested with Ray, and what sandboxes do with sandboxes.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from runtime.cluster.frames import Frame, FrameKind
from runtime.cluster.host_actor import HostActor
from runtime.cluster.settings import ClusterSettings, HostSettings
from runtime.errors import BadRequestError, BusyError, SandboxError
from runtime.reactor import Reactor
from runtime.sandbox import CallResult, CallStatus, Limits, Priority, Tier, Usage
from runtime.settings import BrokerSettings, RuntimeSettings


class ThreadSession:
    """Names in a dictionary, one thread."""

    def __init__(self, number: int, tier: Tier, names: dict[str, object] | None = None) -> None:
        self.id = f"thread-{number}"
        self.tier = tier
        self.names: dict[str, object] = dict(names or {})
        self.calls = 0
        self.closed = False
        self._thread = ThreadPoolExecutor(1)

    @property
    def usage(self) -> Usage:
        return Usage(calls=self.calls)

    def start(self, code: str, *, seconds: float | None = None) -> Future[CallResult]:
        if self.closed:
            raise BadRequestError(f"{self.id} is closed")
        return self._thread.submit(self._run, code)

    def _run(self, code: str) -> CallResult:
        began, said = time.monotonic(), io.StringIO()
        if "open(" in code:
            self.tier = Tier.SANDBOX
        self.names["print"] = lambda *what: print(*what, file=said)
        exec(code.encode("utf-8", "replace").decode(), self.names)
        self.calls += 1
        if self.closed:
            raise BadRequestError(f"{self.id}: it was closed")
        return CallResult(
            status=CallStatus.OK,
            output=said.getvalue(),
            seconds=time.monotonic() - began,
            tier=self.tier,
            sandbox=self.id,
        )

    def fork(self, n: int) -> list[ThreadSession]:
        return [ThreadSession(number, self.tier, self.names) for number in range(n)]

    def close(self) -> None:
        self.closed = True
        self._thread.shutdown(wait=False)


class ThreadPool:
    def __init__(self, limits: Limits, most: int = 1000) -> None:
        self.limits, self.most = limits, most
        self.sessions: list[ThreadSession] = []
        self.closed = False

    def open(
        self, *, tier: Tier = Tier.SHARED, caller: str = "", priority: Priority = Priority.TRAINING
    ) -> ThreadSession:
        if len(self.sessions) >= self.most:
            raise BusyError("too many sessions wait", hint="come back later")
        session = ThreadSession(len(self.sessions), tier)
        self.sessions.append(session)
        return session

    def sandbox(self, *_: object, **__: object) -> object:
        raise SandboxError("there is none here")

    def stats(self) -> dict[str, float]:
        return {"calls": float(sum(session.calls for session in self.sessions))}

    def close(self) -> None:
        self.closed = True
        for session in self.sessions:
            session.close()


def host_settings(name: str, folder: Path, **runtime: object) -> HostSettings:
    own = BrokerSettings(state_dir=folder / "state", root_dir=folder / "root")
    return HostSettings(name=name, folder=folder, runtime=RuntimeSettings(own=own, **runtime), lease_seconds=20)


class LocalHost:
    """One actor and what stands for its machine's network."""

    def __init__(self, settings: HostSettings, most: int = 1000) -> None:
        self.settings, self.most = settings, most
        settings.folder.mkdir(exist_ok=True)
        self.pools: list[ThreadPool] = []
        self.silent = False

    def make_pool(self, limits: Limits) -> ThreadPool:
        self.pools.append(ThreadPool(limits, self.most))
        return self.pools[-1]


class LocalLink:
    """A `runtime.cluster.link.Link` to actors on a loop in this process."""

    def __init__(self, settings: ClusterSettings, reactor: Reactor) -> None:
        self._reactor = reactor
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._actors: dict[str, HostActor] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._numbers = itertools.count()
        self.first: list[LocalHost] = []
        self.dropped: list[str] = []

    def __call__(self, _settings: ClusterSettings, _reactor: Reactor) -> LocalLink:
        return self

    def start(self, heard: Callable[[Frame], None], ended: Callable[[SandboxError | None], None]) -> None:
        self._heard, self.ended = heard, ended
        self._say(Frame(FrameKind.NODES, body=str(len(self.first)).encode()))
        for host in self.first:
            self.join(host)

    def join(self, host: LocalHost, address: str | None = None) -> str:
        """A node with this host comes up; its name in the cluster."""
        node = f"node-{next(self._numbers)}"
        self._loop.call_soon_threadsafe(self._join, node, host)
        self._say(Frame(FrameKind.UP, node, (address or host.settings.name).encode()))
        return node

    def lose(self, node: str, reason: str = "its actor died") -> None:
        self._loop.call_soon_threadsafe(self._tasks[node].cancel)
        self._say(Frame(FrameKind.DOWN, node, reason.encode()))

    def inject(self, node: str, packet: bytes) -> None:
        self._say(Frame(FrameKind.PACKET, node, packet))

    def send(self, frame: Frame) -> None:
        if frame.kind is FrameKind.DOWN:
            self.dropped.append(frame.host)
        else:
            self._loop.call_soon_threadsafe(self._submit, frame)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _end(self) -> None:
        for actor in self._actors.values():
            await actor.close()
        mine = asyncio.all_tasks() - {asyncio.current_task()}
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    def _say(self, frame: Frame) -> None:
        self._reactor.call(lambda: self._heard(frame))

    def _join(self, node: str, host: LocalHost) -> None:
        self._actors[node] = HostActor(host.settings, host.make_pool, ended=lambda: None)
        self._tasks[node] = self._loop.create_task(self._collect(node, host))

    def _submit(self, frame: Frame) -> None:
        if not self._tasks[frame.host].done():
            self._loop.create_task(self._actors[frame.host].submit([frame.body]))

    async def _collect(self, node: str, host: LocalHost) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while True:
                packet = await self._actors[node].collect(0.2)
                while host.silent:
                    await asyncio.sleep(0.05)
                self._say(Frame(FrameKind.PACKET, node, packet))
