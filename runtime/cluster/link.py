"""Driver's end of its gateway: starts the process, exchanges frames, and restarts it when it ends.

Invariants: sending never blocks; frames keep their order; everything is received on the reactor's thread; after `close`
the process is gone. A gateway that ends takes every host with it, as `ended` reports; a new one finds them again.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from runtime.cluster import listening
from runtime.cluster.messages import Frame, FrameDecoder
from runtime.cluster.settings import QUICK, check_token, ray_environment
from runtime.errors import SandboxError
from runtime.reactor import Reactor
from runtime.settings import ClusterSettings

CLOSE_SECONDS = 15.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
READ_BYTES = 1 << 18


def start_gateway(settings: ClusterSettings, descriptor: int, *extra: str) -> listening.ClusterListener:
    """Starts the gateway process, which talks to Ray for this driver and dies with the calling thread; it uses
    `descriptor`. Raises RefusedError without the token."""
    return listening.start(
        [sys.executable, "-I", "-m", "runtime.cluster.gateway", str(descriptor), settings.model_dump_json(), *extra],
        ip_address(settings.interface),
        environ=ray_environment(os.environ, settings.token, **QUICK),
        folder=Path("/"),
        output=subprocess.DEVNULL,
        descriptors=(descriptor,),
    )


class Link(Protocol):
    """Driver's connection to the cluster's hosts. All callbacks run on the reactor's thread."""

    def start(self, received: Callable[[Frame], None], ended: Callable[[SandboxError | None], None]) -> None:
        """Connects to the hosts and calls `received` for every frame from them. `ended` reports that all hosts are
        gone, with the reason if known; another attempt follows."""

    def send(self, frame: Frame) -> None:
        """Sends a frame to its host, from any thread. Without a gateway it is dropped: its host is gone."""

    def close(self) -> None: ...


class GatewayLink:
    def __init__(self, settings: ClusterSettings, reactor: Reactor) -> None:
        """Creates a link to the hosts through a gateway, not yet started. Raises RefusedError for a bad token."""
        self._settings, self._reactor = settings, reactor
        check_token(settings.token)
        self._listener: listening.ClusterListener | None = None
        self._channel: socket.socket | None = None
        self._decoder = FrameDecoder()
        self._outbox = bytearray()
        self._pause = FIRST_PAUSE
        self._connected = False
        """True once the current gateway has sent anything: before that it holds nothing."""
        self._closed = False

    def start(self, received: Callable[[Frame], None], ended: Callable[[SandboxError | None], None]) -> None:
        self._receive, self._ended = received, ended
        self._reactor.call(self._begin)

    def send(self, frame: Frame) -> None:
        self._reactor.here(lambda: self._write(frame.encoded()))

    def close(self) -> None:
        """Lets the hosts close this driver's sessions, up to a timeout, then kills the gateway process."""
        listener = self._reactor.result(self._hang_up)
        if listener is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                listener.process.wait(CLOSE_SECONDS if self._connected else 0)
            listener.kill()
            self._reactor.call(self._drop_channel)

    # on the reactor's thread

    def _begin(self) -> None:
        """Starts the gateway process, always on the reactor's thread, because it dies with its starting thread."""
        if self._closed:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._listener = start_gateway(self._settings, theirs.fileno())
            except SandboxError as error:
                ours.close()
                self._try_again(error)
                return
        ours.setblocking(False)
        self._channel, self._decoder, self._outbox, self._connected = ours, FrameDecoder(), bytearray(), False
        self._reactor.watch(ours.fileno(), selectors.EVENT_READ, self._ready)

    def _write(self, data: bytes) -> None:
        if self._channel is not None:
            self._outbox += data
            self._flush()

    def _flush(self) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            while self._outbox:
                del self._outbox[: channel.send(memoryview(bytes(self._outbox[:READ_BYTES])))]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self._outbox.clear()  # its remaining output and the end follow
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outbox else 0)
        self._reactor.watch(channel.fileno(), events, self._ready)

    def _ready(self) -> None:
        if self._outbox:
            self._flush()
        channel = self._channel
        if channel is None:
            return
        try:
            data = channel.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._gateway_ended()
            return
        self._pause, self._connected = FIRST_PAUSE, True
        for frame in self._decoder.frames(data):
            self._receive(frame)

    def _gateway_ended(self) -> None:
        self._drop_channel()
        if not self._closed:
            listener, self._listener = self._listener, None
            if listener is not None:
                listener.kill()
            self._try_again(None)

    def _try_again(self, reason: SandboxError | None) -> None:
        self._ended(reason)
        self._reactor.after(self._pause, self._begin)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _hang_up(self) -> listening.ClusterListener | None:
        self._closed = True
        listener, self._listener = self._listener, None
        if self._channel is not None:
            self._outbox.clear()
            with contextlib.suppress(OSError):  # it has hung up already
                self._channel.shutdown(socket.SHUT_WR)
        return listener

    def _drop_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            self._reactor.watch(channel.fileno(), 0, self._ready)
            channel.close()
