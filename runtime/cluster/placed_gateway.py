"""Gateway between a driver and one actor placed by Ray, in a separate process, because Ray takes over its importer.

    python -I -m runtime.cluster.placed_gateway DESCRIPTOR CLUSTER PLACEMENT

Invariants: one actor, which ends with this process, as this does with its driver; requests are answered in order.
During an answer or a copy, the actor's liveness is polled: if its host or process is gone or silent, it is lost, and
this process reports that and ends. An actor with another program than the driver's gets no requests. Files are read and
written here, on the driver's machine, and transferred in parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.broker.messages import WireFailure
from runtime.cluster.gateway import CLOSE_SECONDS, ERRORS, NAMESPACE, join, living_nodes, own_job, reason_of
from runtime.cluster.messages import Frame, FrameDecoder, FrameKind
from runtime.cluster.placed import PlacementRequest
from runtime.cluster.placed_actor import LARGEST_PART, PlacedActor
from runtime.cluster.settings import INSTALL
from runtime.errors import InfrastructureError
from runtime.settings import ClusterSettings

PULSE_SECONDS = 1.0
FEWER = "wait for what holds them, or set placement.engine_gpus or placement.learner_gpus lower"
LOOK = "list the hosts with `assay cluster status`"


class PlacedGateway:
    def __init__(self, placement: PlacementRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._placement, self._reader, self._writer = placement, reader, writer
        self._loop = asyncio.get_running_loop()
        self._actor: Any = None
        self._host = ""
        self._lost = False
        self._folders = 0
        self._numbers = itertools.count()

    async def run(self) -> None:
        """Starts the actor, then serves the driver until it hangs up. Raises RayError, InfrastructureError."""
        try:
            said = await self._placed()
            self._host = str(said["host"])
            self._send(said)
            decoder = FrameDecoder()
            while data := await self._reader.read(1 << 18):
                for frame in decoder.frames(data):
                    self._send(await self._answer(json.loads(frame.body)))
        finally:
            await self._close()

    async def _placed(self) -> dict[str, Any]:
        """Starts the actor where Ray finds GPUs for it, otherwise on the first host that takes it; tries each once."""
        wanted = self._placement
        nodes = sorted(living_nodes(), key=lambda node: str(node["NodeName"]))
        first = wanted.prefer % max(1, len(nodes))
        failure: Exception = InfrastructureError("the cluster has no live host")
        for node in nodes[first:] + nodes[:first]:
            try:
                if wanted.gpus:  # Ray knows where GPUs are free, and tries the next such host itself
                    free = f"{wanted.gpus} GPU{'s' * (wanted.gpus > 1)} free"
                    late = f"no host of the cluster had {free} and started the actor"
                    return await self._made("SPREAD", late, FEWER)
                strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                return await self._made(strategy, f"{node['NodeName']} did not start the actor", LOOK)
            except (RayError, InfrastructureError) as error:
                failure = error
                self._kill()
                if wanted.gpus and isinstance(error.__cause__, TimeoutError):
                    break
        raise failure

    async def _made(self, strategy: Any, late: str, hint: str) -> dict[str, Any]:
        """Starts the actor with one scheduling strategy; `late` and `hint` are the error text for a timeout."""
        self._actor = (
            ray.remote(PlacedActor)
            .options(
                name=f"placed {own_job()} {next(self._numbers)}",
                namespace=f"{NAMESPACE}-placed",
                num_cpus=0,
                num_gpus=self._placement.gpus,
                max_restarts=0,  # the driver starts and verifies a replacement
                max_concurrency=2,  # answers liveness polls while it works
                max_task_retries=0,
                enable_task_events=False,
                scheduling_strategy=strategy,
            )
            .remote(self._placement.servant)
        )
        try:
            answer = await asyncio.wait_for(self._actor.ready.remote(), self._placement.ready_seconds)
        except TimeoutError as error:
            raise InfrastructureError(f"{late} within {self._placement.ready_seconds:g} s", hint=hint) from error
        said: dict[str, Any] = json.loads(answer)
        if said.get("program") != self._placement.program:
            raise InfrastructureError(f"{said['host']} has another version of Assay than this machine", hint=INSTALL)
        return said

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "ask":
            answered: bytes = await self._alive_until(self._actor.ask.remote(json.dumps(request["message"]).encode()))
            return {"answer": json.loads(answered)}
        if request["do"] == "put":
            return {"name": await self._put(Path(request["path"]))}
        await self._get(str(request["name"]), Path(request["path"]))
        return {}

    async def _alive_until(self, asked: Any) -> Any:
        """Waits for an answer of the actor. Raises InfrastructureError once its host is gone, long before Ray does."""
        answer, pulse = asyncio.ensure_future(asked), None
        heard = self._loop.time()
        while not (await asyncio.wait({answer}, timeout=PULSE_SECONDS))[0]:
            hosts = await self._loop.run_in_executor(None, living_nodes)
            if self._host not in {node["NodeName"] for node in hosts}:
                self._lost = True
                raise InfrastructureError(f"the placed actor is lost: {self._host} is gone")
            if pulse is None or pulse.done():
                if pulse is not None:
                    pulse.result()
                    heard = self._loop.time()
                pulse = asyncio.ensure_future(self._actor.alive.remote())
            elif self._loop.time() - heard > self._placement.silent_seconds:
                raise InfrastructureError(f"the actor placed on {self._host} is silent")
        return answer.result()

    async def _put(self, path: Path) -> str:
        self._folders += 1
        folder = f"f{self._folders}"
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            with file.open("rb") as source:
                offset = 0
                while (part := source.read(LARGEST_PART)) or not offset:
                    await self._alive_until(self._actor.put.remote(folder, file.name, offset, part))
                    offset += len(part)
                    if len(part) < LARGEST_PART:
                        break
        return folder if path.is_dir() else f"{folder}/{path.name}"

    async def _get(self, folder: str, target: Path) -> None:
        for name in json.loads(await self._alive_until(self._actor.names.remote(folder))):
            with (target / Path(name).name).open("xb") as file:
                while part := await self._alive_until(self._actor.get.remote(folder, name, file.tell())):
                    file.write(part)
                    if len(part) < LARGEST_PART:
                        break

    def _send(self, message: dict[str, Any]) -> None:
        self._writer.write(Frame(FrameKind.PACKET, body=json.dumps(message).encode()).encoded())

    async def _close(self) -> None:
        if self._actor is None or self._lost:
            return
        with contextlib.suppress(RayError, TimeoutError):
            await asyncio.wait_for(self._actor.close.remote(), CLOSE_SECONDS)
        self._kill()

    def _kill(self) -> None:
        """Kills the actor without a message, so that a late one does not start later."""
        with contextlib.suppress(RayError, ValueError):
            ray.kill(self._actor, no_restart=True)


async def _serve(settings: ClusterSettings, placement: PlacementRequest, channel: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=channel, limit=1 << 20)
    try:
        join(settings)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        await PlacedGateway(placement, reader, writer).run()
    except (*ERRORS, TimeoutError, OSError) as error:
        said = InfrastructureError(f"the placed actor is lost: {reason_of(error)}")
        failure = error if isinstance(error, InfrastructureError) else said
        writer.write(Frame(FrameKind.REFUSED, body=WireFailure.of(failure).model_dump_json().encode()).encoded())
        with contextlib.suppress(OSError):
            await writer.drain()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    asyncio.run(
        _serve(
            ClusterSettings.model_validate_json(sys.argv[2]),
            PlacementRequest.model_validate_json(sys.argv[3]),
            socket.socket(fileno=int(sys.argv[1])),
        )
    )
