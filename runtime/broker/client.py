"""A client's end of the broker: implements `runtime.launcher.Launcher` over one connection.

What always holds: nothing blocks; every call back comes exactly once, on the reactor, also when the broker dies: then
waits end with an InfrastructureError, and of every sandbox still held the end for requests is replaced by a broken
pipe, so that its guest sees the end of it and the next write here raises BrokenPipeError. Its replies stay the
holder's to read to their end. A sandbox that arrives for a cancelled request is given back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from runtime.backends.backend import BoxUsage, Cause
from runtime.broker import messages as m
from runtime.broker import packets
from runtime.broker.failures import error_of
from runtime.errors import BrokerLostError, InfrastructureError, RefusedError, SandboxError
from runtime.launcher import Fate, Given, Handle, Kept
from runtime.profile import Profile
from runtime.reactor import Reactor
from runtime.sandbox import Priority, SnapshotId

log = logging.getLogger(__name__)
GONE_HINT = "Look at the broker's own words, in its log or on this terminal; a new one may be started."
CONNECT_SECONDS = 5
Answered = Callable[[m.Answer | SandboxError], None]
A = TypeVar("A", bound=m.Answer)


def connect(path: Path) -> socket.socket:
    """A connection to a broker that listens there. Raises RefusedError when there is none, or it may not be used."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        # a blocking connect waits while the broker has many to accept, for so long; one with Python's timeout does not
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", CONNECT_SECONDS, 0))
        connection.connect(str(path))
    except FileNotFoundError as error:
        connection.close()
        raise RefusedError(f"no broker: {path} does not exist", hint="Start the service, or the broker.") from error
    except PermissionError as error:
        connection.close()
        raise RefusedError(
            f"the broker at {path} is not for this user", hint="It is told with --allow-uid who may use it."
        ) from error
    except OSError as error:
        connection.close()
        raise RefusedError(f"no broker answers at {path}: {error}", hint="Start the service, or the broker.") from error
    connection.setblocking(False)
    return connection


def ask(path: Path, seconds: float = 5.0) -> m.Welcome:
    """Whether a broker that we may use listens there, and what it has; blocks. Raises RefusedError when not."""
    with connect(path) as connection:
        connection.settimeout(seconds)
        try:
            connection.send(packets.pack(m.Hello(request=m.FIRST, protocol=m.PROTOCOL)))
            data = connection.recv(m.PACKET_BYTES)
            answer = m.ANSWER.validate_json(data) if data else None
        except (OSError, ValidationError) as error:
            raise RefusedError(f"the broker at {path} does not answer: {error}", hint=GONE_HINT) from error
    if isinstance(answer, m.Welcome):
        return answer
    if isinstance(answer, m.Failed):
        raise error_of(answer)
    raise RefusedError(f"the broker at {path} hung up on us", hint="It is told with --allow-uid who may use it.")


class _Ticket(NamedTuple):
    client: BrokerClient
    number: int

    def cancel(self) -> None:
        self.client.cancel(self.number)


class BrokerClient:
    def __init__(self, reactor: Reactor, connection: socket.socket, gone: Callable[[], None] | None = None) -> None:
        """From a callback of the reactor, as everything here. `gone` is called once the broker has hung up, after every
        wait was answered; not after `close`."""
        self._reactor, self._socket, self._gone = reactor, connection, gone
        self._waiting: dict[int, Answered] = {}
        self._handles: dict[str, Handle] = {}
        self._cancelled: set[int] = set()
        self._profiles: dict[int, Profile] = {}
        """Of launches under way."""
        self._unsent: list[bytes] = []
        self._numbers = 0
        self.lost: SandboxError | None = None
        self.backends: dict[str, str] = {}
        """Version by name, once the broker has said so."""
        self.refused: dict[str, str] = {}
        """Why others do not work there."""
        connection.setblocking(False)
        reactor.watch(connection.fileno(), selectors.EVENT_READ, self._hear)
        self._ask(m.Hello(request=self._next(), protocol=m.PROTOCOL), self._welcomed)

    def launch(self, profile: Profile, *, caller: str, priority: Priority, given: Given) -> _Ticket:
        number = self._next()
        request = m.Launch(request=number, profile=profile, caller=caller, priority=priority)
        self._profiles[number] = profile
        self._ask(request, lambda answer: self._given(answer, given))
        return _Ticket(self, number)

    def restore(self, snapshot: SnapshotId, *, reseed: bool, caller: str, priority: Priority, given: Given) -> _Ticket:
        number = self._next()
        request = m.Restore(request=number, snapshot=snapshot, reseed=reseed, caller=caller, priority=priority)
        self._ask(request, lambda answer: self._given(answer, given))
        return _Ticket(self, number)

    def cancel(self, number: int) -> None:
        """Of a launch or restore that is no longer wanted."""
        if self._waiting.pop(number, None) is not None and self.lost is None:
            self._cancelled.add(number)
            self._ask(m.Cancel(request=self._next(), of=number), lambda _answer: self._was_cancelled(number))

    def prepare(self, snapshot: SnapshotId, copies: int, done: Callable[[SandboxError | None], None]) -> None:
        request = m.Prepare(request=self._next(), snapshot=snapshot, copies=copies)
        self._ask(request, lambda answer: done(_problem(answer, m.Done)))

    def snapshot(
        self, handle: Handle, *, durable: bool, label: str, done: Callable[[Kept | SandboxError], None]
    ) -> None:
        def kept(answer: m.Answer | SandboxError) -> None:
            found = _only(answer, m.SnapshotKept)
            if isinstance(found, SandboxError):
                done(found)
            else:
                done(Kept(SnapshotId(found.snapshot), found.bytes, found.seconds))

        self._ask(m.Snapshot(request=self._next(), box=handle.id, durable=durable, label=label), kept)

    def forget(self, snapshot: SnapshotId, done: Callable[[SandboxError | None], None]) -> None:
        request = m.Forget(request=self._next(), snapshot=snapshot)
        self._ask(request, lambda answer: done(_problem(answer, m.Done)))

    def usage(self, handle: Handle, done: Callable[[BoxUsage | SandboxError], None], *, waits: bool = False) -> None:
        def measured(answer: m.Answer | SandboxError) -> None:
            found = _only(answer, m.Measured)
            done(found if isinstance(found, SandboxError) else found.usage)

        self._ask(m.Measure(request=self._next(), box=handle.id, waits=waits), measured)

    def give_way(self, handle: Handle, others_first: bool, done: Callable[[SandboxError | None], None]) -> None:
        request = m.GiveWay(request=self._next(), box=handle.id, others_first=others_first)
        self._ask(request, lambda answer: done(_problem(answer, m.Done)))

    def end(self, handle: Handle, done: Callable[[Fate], None]) -> None:
        """Stops watching its descriptors and closes them, too. Ending twice answers `died`."""
        self._drop(handle)

        def ended(answer: m.Answer | SandboxError) -> None:
            found = _only(answer, m.Ended)
            done(Fate(found.cause, found.usage) if isinstance(found, m.Ended) else Fate(Cause.DIED, BoxUsage()))

        self._ask(m.End(request=self._next(), box=handle.id), ended)

    def listing(self, done: Callable[[m.Listing | SandboxError], None]) -> None:
        self._ask(m.List(request=self._next()), lambda answer: done(_only(answer, m.Listing)))

    def stats(self, done: Callable[[m.Figures | SandboxError], None]) -> None:
        self._ask(m.Stats(request=self._next()), lambda answer: done(_only(answer, m.Figures)))

    def sweep(self, done: Callable[[m.Swept | SandboxError], None]) -> None:
        self._ask(m.Sweep(request=self._next()), lambda answer: done(_only(answer, m.Swept)))

    def close(self) -> None:
        """The broker ends all that this connection has."""
        self._gone = None
        self._lose(InfrastructureError("the connection to the broker is closed"))

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ask(self, request: m.Request, answered: Answered) -> None:
        if self.lost is not None:
            problem = self.lost
            self._reactor.call(lambda: answered(problem))
            return
        self._waiting[request.request] = answered
        self._unsent.append(packets.pack(request))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        sent = 0
        try:
            for packet in self._unsent:
                if not packets.send(self._socket, packet):
                    break
                sent += 1
        except OSError as error:
            problem = error
            self._unsent.clear()
            self._reactor.call(lambda: self._hear_last_words(problem))
            return
        was_full = len(self._unsent) > sent
        del self._unsent[:sent]
        self._reactor.watch(
            self._socket.fileno(), selectors.EVENT_READ | (selectors.EVENT_WRITE if was_full else 0), self._hear
        )

    def _hear(self) -> None:
        if self._unsent:
            self._flush()
        while self.lost is None:
            try:
                packet = packets.receive(self._socket)
                if packet is None:
                    return
                if not packet.data:
                    raise BrokerLostError("the broker has ended", hint=GONE_HINT)
                answer = m.ANSWER.validate_json(packet.data)
            except (OSError, packets.PacketError, ValidationError, InfrastructureError) as error:
                self._lose_to(error)
                return
            self._take(answer, packet.descriptors)

    def _hear_last_words(self, problem: OSError) -> None:
        """It takes nothing any more; perhaps it said why."""
        self._hear()
        self._lose_to(problem)

    def _take(self, answer: m.Answer, descriptors: tuple[int, ...]) -> None:
        asked = self._profiles.pop(answer.request, None)
        if isinstance(answer, m.Launched):
            profile = answer.profile or asked
            if len(descriptors) != packets.DESCRIPTORS or profile is None:
                packets.close_all(descriptors)
                self._lose_to(packets.PacketError("a sandbox without its descriptors or its profile"))
                return
            self._handles[answer.box] = Handle(answer.box, profile, *descriptors)
            if answer.request not in self._waiting:  # it crossed the word that it is no longer wanted
                self.end(self._handles[answer.box], lambda _fate: None)
                return
        else:
            packets.close_all(descriptors)
        answered = self._waiting.pop(answer.request, None)
        if answered is not None:
            answered(error_of(answer) if isinstance(answer, m.Failed) else answer)
        elif answer.request not in self._cancelled:
            log.warning("the broker answered %s to nothing", answer.kind)

    def _was_cancelled(self, number: int) -> None:
        self._cancelled.discard(number)
        self._profiles.pop(number, None)

    def _given(self, answer: m.Answer | SandboxError, given: Given) -> None:
        found = _only(answer, m.Launched)
        given(found if isinstance(found, SandboxError) else self._handles[found.box])

    def _welcomed(self, answer: m.Answer | SandboxError) -> None:
        found = _only(answer, m.Welcome)
        if isinstance(found, SandboxError):
            self._lose(found)
        else:
            self.backends, self.refused = found.backends, found.refused

    def _drop(self, handle: Handle) -> None:
        if self._handles.pop(handle.id, None) is not None:
            for descriptor in (handle.requests, handle.replies):
                self._reactor.watch(descriptor, 0, lambda: None)
                os.close(descriptor)

    def _lose_to(self, error: Exception) -> None:
        if isinstance(error, SandboxError):
            self._lose(error)
        else:
            self._lose(BrokerLostError(f"the connection to the broker broke: {error}", hint=GONE_HINT))

    def _lose(self, problem: SandboxError) -> None:
        if self.lost is not None:
            return
        self.lost = problem
        self._reactor.watch(self._socket.fileno(), 0, self._hear)
        self._socket.close()
        for handle in self._handles.values():
            _break(handle.requests)
        waiting, self._waiting = self._waiting, {}
        for answered in waiting.values():
            answered(problem)
        if self._gone is not None:
            self._gone()


def _break(descriptor: int) -> None:
    """Puts the writing end of a broken pipe in its place: its number stays taken until its owner closes it."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.close(reading)
    with contextlib.closing(os.fdopen(writing, "wb", buffering=0)):
        os.dup2(writing, descriptor, inheritable=False)


def _only(answer: m.Answer | SandboxError, kind: type[A]) -> A | SandboxError:
    if isinstance(answer, (SandboxError, kind)):
        return answer
    return InfrastructureError(f"the broker answered {answer.kind}, which is no answer to this")


def _problem(answer: m.Answer | SandboxError, kind: type[A]) -> SandboxError | None:
    found = _only(answer, kind)
    return found if isinstance(found, SandboxError) else None
