"""Channel to an actor placed on a cluster host: an engine, or learners.

Invariants: the actor lives as long as this object, and as the thread that created it. Whatever ends it (its process,
its host, the connection) raises one InfrastructureError, and nothing is answered afterwards; create another for a
retry.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from pydantic import Field

from runtime.broker.messages import WireFailure
from runtime.cluster import listening
from runtime.cluster.messages import Frame, FrameDecoder, FrameKind
from runtime.cluster.settings import QUICK, check_token, own_digest, ray_environment
from runtime.errors import InfrastructureError
from runtime.model import FrozenModel
from runtime.settings import ClusterSettings

CLOSE_SECONDS = 10.0
READ_BYTES = 1 << 18


class PlacementRequest(FrozenModel):
    """Request to start an actor on a host of the cluster, with its requirements."""

    servant: str
    """Class that answers there, as `module:attribute` (`placed_actor.Servant`)."""
    gpus: int = Field(0, ge=0)
    """GPUs of its host, reserved by Ray."""
    prefer: int = Field(0, ge=0)
    """Without GPUs: index of the host to try first, among hosts sorted by name, modulo their number."""
    program: str = Field(default_factory=own_digest)
    """Digest of the driver's program; actors with another one are not used."""
    ready_seconds: float = Field(180.0, gt=0)
    """Timeout for the start on a live host, in seconds."""
    silent_seconds: float = Field(60.0, gt=0)
    """Silence after which the actor counts as lost, in seconds."""


class PlacedChannel:
    """Connection to one actor on a host of the cluster. Not thread-safe."""

    def __init__(self, settings: ClusterSettings, placement: PlacementRequest) -> None:
        """Starts an actor on a host of the cluster and connects to it. Raises RefusedError without the token,
        InfrastructureError if no host takes it."""
        check_token(settings.token)
        self._decoder = FrameDecoder()
        self._frames: list[Frame] = []
        ours, theirs = socket.socketpair()
        self._socket = ours
        with theirs:
            self._listener = listening.start(
                [
                    sys.executable, "-I", "-m", "runtime.cluster.placed_gateway", str(theirs.fileno()),
                    settings.model_dump_json(), placement.model_dump_json(),
                ],
                ip_address(settings.interface),
                environ=ray_environment(os.environ, settings.token, **QUICK),
                folder=Path("/"),
                output=subprocess.DEVNULL,
                descriptors=(theirs.fileno(),),
            )  # fmt: skip
        self._closed = False
        try:
            found = self._receive()
        except BaseException:
            self.close()
            raise
        self.host, self.pid = str(found["host"]), int(found["pid"])
        """Host name, and process id there."""

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sends a message to the actor and returns its answer. Raises InfrastructureError."""
        self.begin(message)
        return self.answer()

    def begin(self, message: dict[str, Any]) -> None:
        """Sends a message to the actor; fetch its `answer` before the next request. Raises InfrastructureError."""
        self._send(do="ask", message=message)

    def answer(self) -> dict[str, Any]:
        """Returns the actor's answer to the message sent with `begin`. Raises InfrastructureError."""
        answer: dict[str, Any] = self._received()["answer"]
        return answer

    def put(self, path: Path) -> str:
        """Copies a file, or a folder of files, to the actor; returns its name there. Raises InfrastructureError."""
        return str(self._request(do="put", path=str(path))["name"])

    def get(self, name: str, target: Path) -> None:
        """Copies the files of the actor's folder `name` into an empty local one. Raises InfrastructureError."""
        self._request(do="get", name=name, path=str(target))

    def close(self) -> None:
        """Ends the actor and its gateway. Closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):  # wakes a thread that waits for an answer
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._listener.process.wait(CLOSE_SECONDS)
        self._listener.kill()

    def _request(self, **request: Any) -> dict[str, Any]:
        self._send(**request)
        return self._received()

    def _send(self, **request: Any) -> None:
        if self._closed:
            raise InfrastructureError("the placed actor has ended")
        with _broken():
            self._socket.sendall(Frame(FrameKind.PACKET, body=json.dumps(request).encode()).encoded())

    def _received(self) -> dict[str, Any]:
        with _broken():
            return self._receive()

    def _receive(self) -> dict[str, Any]:
        while not self._frames:
            if not (data := self._socket.recv(READ_BYTES)):
                raise InfrastructureError("the connection to the cluster has ended")
            self._frames += self._decoder.frames(data)
        frame = self._frames.pop(0)
        if frame.kind is FrameKind.REFUSED:
            raise WireFailure.model_validate_json(frame.body).exception()
        message: dict[str, Any] = json.loads(frame.body)
        return message


@contextlib.contextmanager
def _broken() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InfrastructureError(f"the connection to the cluster broke: {error.strerror}") from error
