"""The driver's end of its gateway: starts the process, sends frames, hears frames, starts it again when it ends.

What always holds: sending never blocks; frames go out in the order in which they were given; whatever is heard is heard
on the reactor's thread; after `close` the process is gone. A gateway that ends takes every host with it, which
`ended` says; a new one finds them again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from ipaddress import ip_address
from pathlib import Path
from typing import Protocol

from runtime.cluster import listening
from runtime.cluster.frames import Decoder, Frame
from runtime.cluster.settings import ClusterSettings
from runtime.cluster.token import QUICK, ray_environment
from runtime.errors import SandboxError
from runtime.reactor import Reactor

CLOSE_SECONDS = 15.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
READ_BYTES = 1 << 18


class Link(Protocol):
    """How a driver reaches hosts. All calls back come on the reactor's thread."""

    def start(self, heard: Callable[[Frame], None], ended: Callable[[SandboxError | None], None]) -> None:
        """Calls `heard` for every frame. `ended` says that all hosts are gone, with the reason where it was said, and
        that another attempt follows."""
        ...

    def send(self, frame: Frame) -> None:
        """From any thread. What is sent while there is no gateway is dropped: its host is gone."""
        ...

    def close(self) -> None: ...


class GatewayLink:
    def __init__(self, settings: ClusterSettings, reactor: Reactor) -> None:
        """Raises RefusedError when the token cannot be used."""
        self._settings, self._reactor = settings, reactor
        self._environ = ray_environment(os.environ, settings.token, **QUICK)
        self._listener: listening.Listener | None = None
        self._channel: socket.socket | None = None
        self._decoder = Decoder()
        self._outbox = bytearray()
        self._pause = FIRST_PAUSE
        self._heard_of = False
        """Whether the present gateway has said anything: before that it holds nothing."""
        self._closed = False

    def start(self, heard: Callable[[Frame], None], ended: Callable[[SandboxError | None], None]) -> None:
        self._heard, self._ended = heard, ended
        self._reactor.call(self._begin)

    def send(self, frame: Frame) -> None:
        self._reactor.here(lambda: self._write(frame.encoded()))

    def close(self) -> None:
        """The hosts close what this driver has there; bounded, then by force."""
        done: Future[listening.Listener | None] = Future()
        self._reactor.call(lambda: done.set_result(self._hang_up()))
        listener = done.result()
        if listener is None:
            return
        try:
            listener.process.wait(CLOSE_SECONDS if self._heard_of else 0)
        except subprocess.TimeoutExpired:
            listener.process.kill()
            listener.process.wait()
        listener.close()
        self._reactor.call(self._drop_channel)

    # on the reactor's thread

    def _begin(self) -> None:
        """The process dies with the thread that starts it, so that is always the reactor's."""
        if self._closed:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._listener = listening.start(
                    [sys.executable, "-I", "-m", "runtime.cluster.gateway", str(theirs.fileno()), self._arguments()],
                    ip_address(self._settings.interface),
                    environ=self._environ,
                    folder=Path("/"),
                    output=subprocess.DEVNULL,
                    descriptors=(theirs.fileno(),),
                )
            except SandboxError as error:
                ours.close()
                self._try_again(error)
                return
        ours.setblocking(False)
        self._channel, self._decoder, self._outbox, self._heard_of = ours, Decoder(), bytearray(), False
        self._reactor.watch(ours.fileno(), selectors.EVENT_READ, self._ready)

    def _arguments(self) -> str:
        return self._settings.model_dump_json()

    def _write(self, data: bytes) -> None:
        if self._channel is None:
            return
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
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                raise
            self._outbox.clear()  # the end of what it said follows
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
        self._pause, self._heard_of = FIRST_PAUSE, True
        for frame in self._decoder.feed(data):
            self._heard(frame)

    def _gateway_ended(self) -> None:
        self._drop_channel()
        if not self._closed:
            listener, self._listener = self._listener, None
            if listener is not None:
                listener.process.kill()
                listener.process.wait()
                listener.close()
            self._try_again(None)

    def _try_again(self, reason: SandboxError | None) -> None:
        self._ended(reason)
        self._reactor.after(self._pause, self._begin)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _hang_up(self) -> listening.Listener | None:
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
