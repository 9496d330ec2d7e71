"""Broker's end of one client connection: packets in, answers out, and the peer's identity.

Invariants: a client that does not read its answers, sends an invalid packet, or sends descriptors is disconnected;
unsent data is bounded; descriptors passed to `send` remain their owner's, who may close them when it returns. `closed`
is called once.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from pydantic import BaseModel

from runtime.broker import messages
from runtime.reactor import Reactor

log = logging.getLogger(__name__)
UNSENT_BYTES = 1 << 20
UNSENT = 8_192
UNSENT_SECONDS = 10.0
"""Time for which a client may leave answers unread once the kernel's buffer is full, in seconds."""
DISMISS_SECONDS = 2.0
AT_ONCE = 32
"""Packets read from one client before the others have their turn."""
_UCRED = struct.Struct("3i")


class ClientPeer(NamedTuple):
    """Identity of the connected process, from the kernel (unix(7), SO_PEERCRED)."""

    pid: int
    uid: int
    gid: int

    @classmethod
    def of(cls, connection: socket.socket) -> ClientPeer:
        return cls(*_UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)))


class ClientConnection:
    def __init__(
        self,
        reactor: Reactor,
        connection: socket.socket,
        number: int,
        *,
        received: Callable[[ClientConnection, bytes], None],
        closed: Callable[[ClientConnection], None],
    ) -> None:
        """Starts watching a client's connection for messages; from a reactor callback."""
        self.number = number
        self.peer = ClientPeer.of(connection)
        self.answered = False
        self._reactor, self._socket = reactor, connection
        self._received, self._closed = received, closed
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._unsent_bytes = 0
        self._progress = 0.0
        """Time at which the kernel last accepted an answer, while some are left."""
        self._watched = 0
        self.open = True
        self._dismissed = False
        connection.setblocking(False)
        self._watch()

    def send(self, message: BaseModel, descriptors: tuple[int, ...] = ()) -> None:
        """Sends a message with descriptors to the client; drops it on a closed connection."""
        if not self.open:
            return
        data = messages.pack(message)
        try:
            if not self._unsent and messages.send(self._socket, data, descriptors):
                return
            self._unsent.append((data, tuple(os.dup(descriptor) for descriptor in descriptors)))
        except ConnectionError:
            self.close()
            return
        except OSError as error:
            self.close(f"cannot send an answer: {error}")
            return
        self._unsent_bytes += len(data)
        if self._unsent_bytes > UNSENT_BYTES or len(self._unsent) > UNSENT:
            self.close(f"{len(self._unsent)} answers unread")
        elif len(self._unsent) == 1:
            self._progress = time.monotonic()
            self._reactor.after(UNSENT_SECONDS, self._check_reading)
            self._watch()

    def dismiss(self, message: BaseModel) -> None:
        """Sends the client a last message, then ignores input until the client hangs up or a short timeout: closing a
        socket with unread input would retract the message (unix(7))."""
        self.send(message)
        self._dismissed = True
        self._reactor.after(DISMISS_SECONDS, self.close)

    def close(self, why: str = "") -> None:
        if not self.open:
            return
        self.open = False
        if why:
            log.warning("connection %d of process %d closed: %s", self.number, self.peer.pid, why)
        self._reactor.watch(self._socket.fileno(), 0, self._ready)
        self._socket.close()
        for _, descriptors in self._unsent:
            messages.close_all(descriptors)
        self._unsent.clear()
        self._closed(self)

    def _watch(self) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        if events != self._watched:
            self._watched = events
            self._reactor.watch(self._socket.fileno(), events, self._ready)

    def _ready(self) -> None:
        if self._unsent:
            self._flush()
        for _ in range(AT_ONCE):
            if not self.open:
                return
            try:
                packet = messages.receive(self._socket)
            except messages.PacketError as error:
                self.close(str(error))
                return
            except OSError:
                self.close()
                return
            if packet is None:
                return
            if packet.descriptors:
                messages.close_all(packet.descriptors)
                self.close("client sent descriptors")
            elif not packet.data:
                self.close()
            elif not self._dismissed:
                self._received(self, packet.data)

    def _flush(self) -> None:
        try:
            while self._unsent:
                data, descriptors = self._unsent[0]
                if not messages.send(self._socket, data, descriptors):
                    return
                self._unsent.popleft()
                self._unsent_bytes -= len(data)
                self._progress = time.monotonic()
                messages.close_all(descriptors)
        except OSError:
            self.close()
            return
        self._watch()

    def _check_reading(self) -> None:
        """Disconnects a client that has not read for too long."""
        if not self.open or not self._unsent:
            return
        waited = time.monotonic() - self._progress
        if waited >= UNSENT_SECONDS:
            self.close(f"{len(self._unsent)} answers unread for {UNSENT_SECONDS:g} s")
        else:
            self._reactor.after(UNSENT_SECONDS - waited, self._check_reading)
