"""Gateway between a driver and Ray, in a separate process: only this module and `placed_gateway` import Ray.

Ray ends a process whose node dies, takes over its signals and listens on ports, which must not happen to a driver. So
the driver exchanges frames with this process (`runtime.cluster.messages`). The gateway keeps one actor on each host,
which ends with it, and forwards packets without reading them. Invariants: packets for a host arrive in order; a host
whose actor failed is reported once and retried later. Deciding that a host is silent for too long is left to the
driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import AuthenticationError, RayError
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.broker.messages import WireFailure
from runtime.cluster.host_actor import HostActor
from runtime.cluster.messages import Frame, FrameDecoder, FrameKind, Pulse
from runtime.cluster.settings import HOST_VARIABLE, HostSettings
from runtime.cluster.status import ANSWER, HostLine
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.sessions import Sessions
from runtime.settings import ClusterSettings


class SessionsHost:
    """Ray actor that runs a driver's sessions on one host. It forwards calls to `HostActor`, because Ray wraps every
    method of an actor's class."""

    def __init__(self) -> None:
        """Creates the actor from the settings of its host. Raises KeyError on a Ray node that did not join through
        `runtime.cluster.node`."""
        settings = HostSettings.model_validate_json(Path(os.environ[HOST_VARIABLE]).read_bytes())
        self._host = HostActor(
            settings,
            lambda limits: Sessions(settings.runtime.model_copy(update={"limits": limits})),
            ended=lambda: os._exit(0),
        )

    def submit(self, packets: list[bytes]) -> None:
        self._host.submit(packets)

    def collect(self, seconds: float) -> bytes:
        return self._host.collect(seconds)

    def report(self) -> bytes:
        return self._host.report()

    def close(self) -> None:
        self._host.close()


NAMESPACE = "assay"
COLLECT_SECONDS = 1.0
"""Longest interval between a host's signs of life, in seconds."""
CONCURRENCY = 4
"""Concurrent methods of an actor: collect, submit, close, and report."""
LIST_SECONDS = 1.0
CLOSE_SECONDS = 5.0
ASK_SECONDS = 3.0
RAY_ERRORS = (ConnectionError, RayError, RuntimeError, ValueError)
ERRORS = (*RAY_ERRORS, SandboxError)
REFUSAL = "InvalidAuthToken"
"""Marker of Ray's error for a wrong token, which sometimes comes only as text."""


class HostProxy:
    """Gateway's side of the Ray actor on one host: starts it, sends it packets and collects reports."""

    numbers = itertools.count()

    def __init__(self, gateway: Gateway, node: str) -> None:
        self.node, self._gateway = node, gateway
        self.actor: Any = (
            ray.remote(SessionsHost)
            .options(
                name=f"{node} {own_job()} {next(self.numbers)}",
                namespace=NAMESPACE,
                num_cpus=0,
                max_restarts=0,
                max_concurrency=CONCURRENCY,
                max_task_retries=0,
                enable_task_events=False,  # the head would remember every packet
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote()
        )
        self._waiting: list[bytes] = []
        self._some = asyncio.Event()
        self._tasks = [asyncio.create_task(self._until_lost(work)) for work in (self._collect(), self._submit())]

    def send(self, packet: bytes) -> None:
        self._waiting.append(packet)
        self._some.set()

    def end(self) -> None:
        """Kills the host's actor without a message; its resources are closed with its process."""
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(RayError, ValueError):
            ray.kill(self.actor, no_restart=True)

    async def close(self) -> None:
        with contextlib.suppress(RayError, TimeoutError):
            await asyncio.wait_for(self.actor.close.remote(), CLOSE_SECONDS)
        self.end()

    async def _until_lost(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RayError as error:
            self._gateway.down(self, reason_of(error))

    async def _collect(self) -> None:
        while True:
            packet = await self.actor.collect.remote(COLLECT_SECONDS)
            self._gateway.send(Frame(FrameKind.PACKET, self.node, packet))

    async def _submit(self) -> None:
        """Sends packets to the host's actor, one message at a time, in order; batches those that arrive meanwhile."""
        while True:
            await self._some.wait()
            self._some.clear()
            packets, self._waiting = self._waiting, []
            await self.actor.submit.remote(packets)


class Gateway:
    def __init__(self, settings: ClusterSettings, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._settings, self._reader, self._writer = settings, reader, writer
        self._hosts: dict[str, HostProxy] = {}
        self._rest: dict[str, float] = {}
        """Failed nodes, with the time of their next retry."""

    def send(self, frame: Frame) -> None:
        self._writer.write(frame.encoded())

    def down(self, host: HostProxy, reason: str) -> None:
        if self._hosts.get(host.node) is host:
            self._forget(host)
            self.send(Frame(FrameKind.DOWN, host.node, reason.encode()))

    async def run(self) -> None:
        """Passes messages between the driver and the cluster's hosts until the driver hangs up."""
        tasks = {asyncio.create_task(self._keep_listing()), asyncio.create_task(self._keep_reading())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*(host.close() for host in self._hosts.values()))

    async def _keep_reading(self) -> None:
        decoder = FrameDecoder()
        while data := await self._reader.read(1 << 18):
            for frame in decoder.frames(data):
                host = self._hosts.get(frame.host)
                if host is None:
                    continue  # it went down while this was on its way
                if frame.kind is FrameKind.PACKET:
                    host.send(frame.body)
                else:
                    self._forget(host)

    def _forget(self, host: HostProxy) -> None:
        del self._hosts[host.node]
        self._rest[host.node] = asyncio.get_running_loop().time() + self._settings.retry_seconds
        host.end()

    async def _keep_listing(self) -> None:
        loop, first = asyncio.get_running_loop(), True
        while True:
            nodes = await loop.run_in_executor(None, living_nodes)
            alive = {node["NodeID"]: str(node["NodeManagerAddress"]) for node in nodes}
            if first:
                self.send(Frame(FrameKind.NODES, body=str(len(alive)).encode()))
                first = False
            for node, address in alive.items():
                if node not in self._hosts and self._rest.get(node, 0.0) <= loop.time():
                    self._hosts[node] = HostProxy(self, node)
                    self.send(Frame(FrameKind.UP, node, address.encode()))
            self._rest = {node: when for node, when in self._rest.items() if node in alive}
            await asyncio.sleep(LIST_SECONDS)


def known_nodes() -> list[dict[str, Any]]:
    listed: Any = ray.nodes
    return list(listed())


def own_job() -> str:
    """Returns this driver's id within the cluster; a process id is unique on one machine only."""
    return str(ray.get_runtime_context().get_job_id())


def living_nodes() -> list[dict[str, Any]]:
    """Returns the hosts currently in the cluster, as Ray describes them."""
    return [node for node in known_nodes() if node["Alive"]]


def reason_of(error: BaseException) -> str:
    """Returns the first line of a Ray error; the rest is for Ray's own log."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:500]


def _understood(error: BaseException, settings: ClusterSettings) -> SandboxError:
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, AuthenticationError) or REFUSAL in str(link):
            return RefusedError(
                f"the cluster at {settings.address} does not accept the token in {settings.token}",
                hint="copy the file from the first host of the cluster",
            )
        link = link.__cause__ or link.__context__
    return InfrastructureError(
        f"the cluster at {settings.address} cannot be joined: {error}",
        hint="check that its first host is up, and join this machine with `assay cluster join`",
    )


def join(settings: ClusterSettings) -> None:
    """Connects this process to the Ray cluster as a driver. Raises RefusedError for a wrong token, InfrastructureError
    if joining fails."""
    try:
        ray.init(
            address=settings.address,
            _node_ip_address=settings.interface,
            namespace=NAMESPACE,
            log_to_driver=False,
            configure_logging=False,
        )
    except RAY_ERRORS as error:
        raise _understood(error, settings) from error


async def _serve(settings: ClusterSettings, channel: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=channel, limit=1 << 20)
    try:
        join(settings)
        # Ray would end this process immediately; the driver's hang-up ends it in order.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        await Gateway(settings, reader, writer).run()
    except ERRORS as error:
        writer.write(Frame(FrameKind.REFUSED, body=WireFailure.of(error).model_dump_json().encode()).encoded())
        await writer.drain()
    finally:
        ray.shutdown()


async def _ask(name: str) -> Pulse | None:
    """Asks the Ray actor of one driver for its pulse; None if it ends or does not answer."""
    try:
        actor = ray.get_actor(name, namespace=NAMESPACE)
        return Pulse.model_validate_json(await asyncio.wait_for(actor.report.remote(), ASK_SECONDS))
    except (RayError, TimeoutError, ValueError):
        return None


async def _list_hosts() -> list[HostLine]:
    actors = [str(actor["name"]) for actor in list_named_actors(all_namespaces=True) if actor["namespace"] == NAMESPACE]
    pulses = dict(zip(actors, await asyncio.gather(*map(_ask, actors)), strict=True))
    lines: list[HostLine] = []
    for node in known_nodes():
        mine = [pulse for name, pulse in pulses.items() if pulse and name.split()[0] == node["NodeID"]]
        lines.append(
            HostLine(
                name=node["NodeName"],
                address=node["NodeManagerAddress"],
                alive=node["Alive"],
                head="node:__internal_head__" in node["Resources"],
                drivers=len(mine),
                sessions=sum(pulse.sessions for pulse in mine),
                draining=any(pulse.draining for pulse in mine),
            )
        )
    return lines


def _write_answer(settings: ClusterSettings, output: int) -> None:
    """Joins the cluster and writes the list of its hosts, or the error, to a descriptor."""
    answer: list[HostLine] | WireFailure
    try:
        join(settings)
        answer = asyncio.run(_list_hosts())
    except ERRORS as error:
        answer = WireFailure.of(error)
    os.write(output, ANSWER.dump_json(answer))


if __name__ == "__main__":
    settings = ClusterSettings.model_validate_json(sys.argv[2])
    if sys.argv[3:] == ["status"]:
        _write_answer(settings, int(sys.argv[1]))
    else:
        asyncio.run(_serve(settings, socket.socket(fileno=int(sys.argv[1]))))
