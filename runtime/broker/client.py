"""Client of a broker: implements `runtime.broker_api.BrokerApi` over one connection.

Invariants: nothing blocks; every callback runs exactly once, on the reactor, even if the broker dies. Then waits end
with an InfrastructureError, and each held sandbox's request descriptor becomes a broken pipe, so that its guest sees
the end and the next write here raises BrokenPipeError. Its replies can still be read to their end. A sandbox that
arrives for a cancelled request is given back.

Starts a private broker: a child process that serves one connection and ends with it.

Invariants: the child serves only its parent's socket, which nobody else can reach; it ends when that socket is closed,
even if the parent was killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import selectors
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from runtime.broker import messages
from runtime.broker import messages as m
from runtime.broker_api import Handle, OnReady, SnapshotCopy, Termination
from runtime.errors import BrokerLostError, BusyError, InfrastructureError, RefusedError, SandboxError
from runtime.profile import BoxUsage, Cause, Profile
from runtime.reactor import Reactor
from runtime.sandbox import Priority, SnapshotId
from runtime.settings import BrokerSettings

log = logging.getLogger(__name__)
GONE_HINT = "See the broker's log or this terminal, then start a new one."
ALLOW_HINT = "Start the broker with `--allow-uid UID`."
CONNECT_SECONDS = 5
BUSY_HINT = "Nothing is known to be wrong: try again when the machine is less busy."
Answered = Callable[[m.Answer | SandboxError], None]
A = TypeVar("A", bound=m.Answer)
V = TypeVar("V")


def connect(path: Path) -> socket.socket:
    """Connects to a listening broker. Raises RefusedError if there is none, or access is denied."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        # unlike Python's timeout, SO_SNDTIMEO lets connect wait, that long, for a full backlog
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", CONNECT_SECONDS, 0))
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        if isinstance(error, PermissionError):
            raise RefusedError(f"the broker at {path} does not admit this user", hint=ALLOW_HINT) from error
        missing = isinstance(error, FileNotFoundError)
        why = f"no broker: {path} does not exist" if missing else f"no broker answers at {path}: {error}"
        raise RefusedError(why, hint="Start the service or the broker.") from error
    connection.setblocking(False)
    return connection


def ask(path: Path, seconds: float = 5.0) -> m.BrokerWelcome:
    """Returns the broker's welcome, if this user may use it; blocks. Raises BusyError if it does not answer in time,
    RefusedError otherwise."""
    with connect(path) as connection:
        connection.settimeout(seconds)
        try:
            connection.send(messages.pack(m.ClientHello(request=m.FIRST, protocol=m.PROTOCOL)))
            data = connection.recv(m.PACKET_BYTES)
            answer = m.ANSWER.validate_json(data) if data else None
        except (TimeoutError, BlockingIOError) as error:
            raise BusyError(
                f"too busy: the broker at {path} did not answer in {seconds:g} s", hint=BUSY_HINT
            ) from error
        except (OSError, ValidationError) as error:
            raise RefusedError(f"the broker at {path} does not answer: {error}", hint=GONE_HINT) from error
    if isinstance(answer, m.BrokerWelcome):
        return answer
    if isinstance(answer, m.RequestFailed):
        raise answer.exception()
    raise RefusedError(f"the broker at {path} closed the connection", hint=ALLOW_HINT)


class _Ticket(NamedTuple):
    client: BrokerClient
    number: int

    def cancel(self) -> None:
        self.client.cancel(self.number)


class BrokerClient:
    def __init__(self, reactor: Reactor, connection: socket.socket, gone: Callable[[], None] | None = None) -> None:
        """Opens the protocol on a connection to a broker and sends the hello; from a reactor callback, like everything
        here. `gone` is called once the broker has hung up and every wait was answered; not after `close`."""
        self._reactor, self._socket, self._gone = reactor, connection, gone
        self._waiting: dict[int, Answered] = {}
        self._handles: dict[str, Handle] = {}
        self._cancelled: set[int] = set()
        self._unsent: list[bytes] = []
        self._numbers = 0
        self.lost: SandboxError | None = None
        self.backends: dict[str, str] = {}
        """Backend versions by name, after the broker's welcome."""
        self.refused: dict[str, str] = {}
        """Reasons why other backends do not work there, by name."""
        connection.setblocking(False)
        reactor.watch(connection.fileno(), selectors.EVENT_READ, self._receive)
        hello = m.ClientHello(request=self._next(), protocol=m.PROTOCOL)
        self._ask(hello, _with(m.BrokerWelcome, _itself, self._welcomed))

    def launch(self, wanted: Profile | SnapshotCopy, *, caller: str, priority: Priority, on_ready: OnReady) -> _Ticket:
        request = m.Launch(request=self._next(), wanted=wanted, caller=caller, priority=priority)
        self._ask(request, _with(m.Launched, lambda launched: self._handles[launched.box], on_ready))
        return _Ticket(self, request.request)

    def cancel(self, number: int) -> None:
        """Cancels the sandbox launch with this request number; its callback never runs."""
        if self._waiting.pop(number, None) is not None and self.lost is None:
            self._cancelled.add(number)
            self._ask(m.Cancel(request=self._next(), of=number), lambda _answer: self._cancelled.discard(number))

    def prepare(self, snapshot: SnapshotId, copies: int, done: Callable[[SandboxError | None], None]) -> None:
        self._ask(m.Prepare(request=self._next(), snapshot=snapshot, copies=copies), _once(done))

    def snapshot(
        self, handle: Handle, *, durable: bool, label: str, done: Callable[[SnapshotId | SandboxError], None]
    ) -> None:
        request = m.TakeSnapshot(request=self._next(), box=handle.id, durable=durable, label=label)
        self._ask(request, _with(m.SnapshotKept, lambda message: message.snapshot, done))

    def forget(self, snapshot: SnapshotId, done: Callable[[SandboxError | None], None]) -> None:
        self._ask(m.ForgetSnapshot(request=self._next(), snapshot=snapshot), _once(done))

    def usage(self, handle: Handle, done: Callable[[BoxUsage | SandboxError], None], *, waits: bool = False) -> None:
        request = m.MeasureBox(request=self._next(), box=handle.id, waits=waits)
        self._ask(request, _with(m.Measured, lambda measured: measured.usage, done))

    def rest(self, handle: Handle, rests: bool, done: Callable[[SandboxError | None], None]) -> None:
        self._ask(m.RestBox(request=self._next(), box=handle.id, rests=rests), _once(done))

    def give_way(self, handle: Handle, others_first: bool, done: Callable[[SandboxError | None], None]) -> None:
        self._ask(m.GiveWay(request=self._next(), box=handle.id, others_first=others_first), _once(done))

    def end(self, handle: Handle, done: Callable[[Termination], None]) -> None:
        """Asks the broker to end a sandbox, and closes its descriptors. Ending twice answers `died`."""
        self._drop(handle)

        def ended(found: Termination | SandboxError) -> None:
            done(Termination(Cause.DIED, BoxUsage()) if isinstance(found, SandboxError) else found)

        self._ask(
            m.EndBox(request=self._next(), box=handle.id), _with(m.BoxEnded, lambda answer: answer.termination, ended)
        )

    def listing(self, done: Callable[[m.SnapshotListing | SandboxError], None]) -> None:
        self._ask(m.List(request=self._next()), _with(m.SnapshotListing, _itself, done))

    def stats(self, done: Callable[[m.Figures | SandboxError], None]) -> None:
        self._ask(m.Stats(request=self._next()), _with(m.Figures, _itself, done))

    def sweep(self, done: Callable[[m.Swept | SandboxError], None]) -> None:
        self._ask(m.Sweep(request=self._next()), _with(m.Swept, _itself, done))

    def close(self) -> None:
        """Closes the connection to the broker, which then ends this client's sandboxes."""
        self._gone = None
        self._lose(InfrastructureError("the connection to the broker is closed"))

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ask(self, request: m.Request, answered: Answered) -> None:
        if self.lost is not None:
            self._reactor.call(partial(answered, self.lost))
            return
        self._waiting[request.request] = answered
        self._unsent.append(messages.pack(request))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        sent = 0
        try:
            for packet in self._unsent:
                if not messages.send(self._socket, packet):
                    break
                sent += 1
        except OSError as error:
            self._unsent.clear()
            self._reactor.call(partial(self._receive_last, error))
            return
        was_full = len(self._unsent) > sent
        del self._unsent[:sent]
        self._reactor.watch(
            self._socket.fileno(), selectors.EVENT_READ | (selectors.EVENT_WRITE if was_full else 0), self._receive
        )

    def _receive(self) -> None:
        if self._unsent:
            self._flush()
        while self.lost is None:
            try:
                packet = messages.receive(self._socket)
                if packet is None:
                    return
                if not packet.data:
                    raise BrokerLostError("the broker has ended", hint=GONE_HINT)
                answer = m.ANSWER.validate_json(packet.data)
            except (OSError, messages.PacketError, ValidationError, InfrastructureError) as error:
                self._lose(error)
                return
            self._take(answer, packet.descriptors)

    def _receive_last(self, problem: OSError) -> None:
        """Reads remaining answers of a broker that accepts no more requests; they may contain the reason."""
        self._receive()
        self._lose(problem)

    def _take(self, answer: m.Answer, descriptors: tuple[int, ...]) -> None:
        if not isinstance(answer, m.Launched):
            messages.close_all(descriptors)
        elif len(descriptors) != messages.DESCRIPTORS:
            messages.close_all(descriptors)
            self._lose(messages.PacketError("sandbox without descriptors"))
            return
        else:
            handle = self._handles[answer.box] = Handle(answer.box, answer.profile, *descriptors)
            if answer.request not in self._waiting:  # crossed its cancellation
                self.end(handle, lambda _termination: None)
                return
        answered = self._waiting.pop(answer.request, None)
        if answered is not None:
            answered(answer.exception() if isinstance(answer, m.RequestFailed) else answer)
        elif answer.request not in self._cancelled:
            log.warning("unexpected answer %s from the broker", answer.kind)

    def _welcomed(self, found: m.BrokerWelcome | SandboxError) -> None:
        if isinstance(found, SandboxError):
            self._lose(found)
        else:
            self.backends, self.refused = found.backends, found.refused

    def _drop(self, handle: Handle) -> None:
        if self._handles.pop(handle.id, None) is not None:
            for descriptor in (handle.requests, handle.replies):
                self._reactor.watch(descriptor, 0, lambda: None)
                os.close(descriptor)

    def _lose(self, error: Exception) -> None:
        if self.lost is not None:
            return
        problem = error
        if not isinstance(problem, SandboxError):
            problem = BrokerLostError(f"the connection to the broker broke: {error}", hint=GONE_HINT)
        self.lost = problem
        self._reactor.watch(self._socket.fileno(), 0, self._receive)
        self._socket.close()
        for handle in self._handles.values():
            _break(handle.requests)
        waiting, self._waiting = self._waiting, {}
        for answered in waiting.values():
            answered(problem)
        if self._gone is not None:
            self._gone()


def _break(descriptor: int) -> None:
    """Replaces a descriptor by a broken pipe's writing end: its number stays taken until its owner closes it."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.close(reading)
    with contextlib.closing(os.fdopen(writing, "wb", buffering=0)):
        os.dup2(writing, descriptor, inheritable=False)


def _with(kind: type[A], value: Callable[[A], V], done: Callable[[V | SandboxError], None]) -> Answered:
    """Adapts a callback to a broker's answers of one kind: calls it with the extracted value, or with the error."""

    def answered(answer: m.Answer | SandboxError) -> None:
        if isinstance(answer, kind):
            done(value(answer))
        elif isinstance(answer, SandboxError):
            done(answer)
        else:
            done(InfrastructureError(f"unexpected answer {answer.kind!r} from the broker"))

    return answered


def _once(done: Callable[[SandboxError | None], None]) -> Answered:
    return _with(m.Done, lambda _: None, done)


def _itself(answer: A) -> A:
    return answer


END_SECONDS = 15.0


def start_private(settings: BrokerSettings) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Starts a private broker; returns our end of the connection, and the process for `wait_for_private`.

    Returns immediately; problems with the machine or the settings are reported on the connection. Raises
    InfrastructureError if no process can be started.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", "runtime.broker", "--settings", "-", "--connection", str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # ^C is for us: the broker ends with us
        )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(settings.model_dump_json().encode())
    except OSError as error:
        ours.close()
        raise InfrastructureError(f"no broker could be started: {error}") from error
    finally:
        theirs.close()
    return ours, process


def wait_for_private(process: subprocess.Popen[bytes], seconds: float = END_SECONDS) -> None:
    """Waits until the broker has ended, after its connection was closed.

    A broker that does not end in time is killed; its keeper kills its sandboxes, and the next start sweeps them.
    """
    if process.poll() is None and not _has_ended(process.pid, seconds):
        log.warning("broker %d did not end within %g s and is killed", process.pid, seconds)
        process.kill()
    process.wait()


def _has_ended(pid: int, seconds: float) -> bool:
    """Waits at most `seconds` for a child's end, without the 50 ms polling of `Popen.wait`; True if it ended."""
    with contextlib.closing(os.fdopen(os.pidfd_open(pid), "rb", buffering=0)) as ended:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
