"""Broker protocol: one JSON packet per message on a Unix socket (SOCK_SEQPACKET), descriptors beside it.

Every request has a number that its answer repeats. The broker trusts a client only with its own sandboxes and
snapshots; a packet that is not a message of this module ends the connection.

Sends one message per packet: JSON on a connected Unix socket (SOCK_SEQPACKET), descriptors beside it.

Invariants: nothing blocks; a packet that is too long, or has too many descriptors, is a PacketError and never a partial
message; received descriptors are the receiver's to close.
"""

from __future__ import annotations

import array
import os
import socket
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, Field, TypeAdapter

from runtime.broker_api import SnapshotCopy, Termination
from runtime.errors import ERRORS, ErrorName, SandboxError, name_of
from runtime.model import FrozenModel
from runtime.profile import BoxUsage, Profile
from runtime.sandbox import Priority, SnapshotId

PROTOCOL = 6
PACKET_BYTES = 1 << 16
TEXT_CHARS = 2_000
"""Longest message or hint of an error, in characters; longer text is truncated."""
Name = Annotated[str, Field(max_length=200)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _BrokerMessage(FrozenModel):
    request: int = Field(ge=0)


FIRST = 1
"""Number of a connection's first request, the hello: a refused client gets its answer before it has sent anything."""


class ClientHello(_BrokerMessage):
    kind: Literal["hello"] = "hello"
    protocol: int


class Launch(_BrokerMessage):
    """Message to the broker that requests a sandbox; answered with `Launched` and two descriptors (requests, replies),
    or `RequestFailed`."""

    kind: Literal["launch"] = "launch"
    wanted: Profile | SnapshotCopy
    caller: Name = ""
    priority: Priority = Priority.TRAINING


class Cancel(_BrokerMessage):
    """Cancels the `Launch` with number `of`; answered with `Done`, and the launch itself not at all."""

    kind: Literal["cancel"] = "cancel"
    of: int


class EndBox(_BrokerMessage):
    """Ends a sandbox; answered with `BoxEnded`."""

    kind: Literal["end"] = "end"
    box: Name


class MeasureBox(_BrokerMessage):
    """Requests a sandbox's usage; answered with `Measured`."""

    kind: Literal["measure"] = "measure"
    box: Name
    waits: bool = False
    """Includes waits of its threads."""


class GiveWay(_BrokerMessage):
    """Sets the box's CPU priority, low with `others_first`; answered with `Done`."""

    kind: Literal["give_way"] = "give_way"
    box: Name
    others_first: bool


class RestBox(_BrokerMessage):
    """Throttles an idle box to almost no CPU, or wakes it; answered with `Done`."""

    kind: Literal["rest"] = "rest"
    box: Name
    rests: bool


class TakeSnapshot(_BrokerMessage):
    """Takes a snapshot of a sandbox; answered with `SnapshotKept`."""

    kind: Literal["snapshot"] = "snapshot"
    box: Name
    durable: bool = False
    label: Name = ""


class Prepare(_BrokerMessage):
    kind: Literal["prepare"] = "prepare"
    snapshot: Digest
    copies: int = Field(ge=0, le=64)


class ForgetSnapshot(_BrokerMessage):
    kind: Literal["forget"] = "forget"
    snapshot: Digest


class List(_BrokerMessage):
    """Lists sandboxes and snapshots; answered with `SnapshotListing`."""

    kind: Literal["list"] = "list"


class Stats(_BrokerMessage):
    """Requests the broker's counters; answered with `Figures`."""

    kind: Literal["stats"] = "stats"


class Sweep(_BrokerMessage):
    """Removes what dead brokers left; answered with `Swept`."""

    kind: Literal["sweep"] = "sweep"


Request = Annotated[
    ClientHello
    | Launch
    | Cancel
    | EndBox
    | MeasureBox
    | GiveWay
    | RestBox
    | TakeSnapshot
    | Prepare
    | ForgetSnapshot
    | List
    | Stats
    | Sweep,
    Field(discriminator="kind"),
]


class BrokerWelcome(_BrokerMessage):
    kind: Literal["welcome"] = "welcome"
    protocol: int
    pid: int
    backends: dict[str, str]
    """Versions of the working backends, by name."""
    refused: dict[str, str] = Field(default_factory=dict)
    """Reasons why other allowed backends do not work, by name."""


class Launched(_BrokerMessage):
    kind: Literal["launched"] = "launched"
    box: Name
    profile: Profile
    """Profile of the sandbox, unknown to a client that requested a snapshot copy."""


class BoxEnded(_BrokerMessage):
    kind: Literal["ended"] = "ended"
    termination: Termination


class Measured(_BrokerMessage):
    kind: Literal["measured"] = "measured"
    usage: BoxUsage


class SnapshotKept(_BrokerMessage):
    kind: Literal["kept"] = "kept"
    snapshot: SnapshotId


class BoxLine(FrozenModel):
    box: str
    mode: str
    backend: str
    state: Literal["starting", "ready", "held", "ending"]
    holder: int
    """Process id of the client; 0 for none."""
    caller: str
    age_seconds: float


class SnapshotLine(FrozenModel):
    snapshot: str
    bytes: int
    durable: bool
    references: int
    label: str
    created: str
    parent: str


class SnapshotListing(_BrokerMessage):
    kind: Literal["listing"] = "listing"
    boxes: tuple[BoxLine, ...]
    snapshots: tuple[SnapshotLine, ...]
    more: int = 0
    """Number of lines that did not fit."""


class Figures(_BrokerMessage):
    kind: Literal["figures"] = "figures"
    values: dict[str, float]


class Swept(_BrokerMessage):
    kind: Literal["swept"] = "swept"
    owners: int
    processes: int
    cgroups: int
    folders: int


class Done(_BrokerMessage):
    kind: Literal["done"] = "done"


class WireFailure(FrozenModel):
    """Exception of `runtime.errors` as a message, with its wire name; the receiver raises it again."""

    error: ErrorName
    message: str
    hint: str = ""

    @classmethod
    def of(cls, error: BaseException, **more: int) -> Self:
        """Converts any exception to a failure message; an unexpected one counts as infrastructure."""
        text = str(error) if isinstance(error, SandboxError) else f"{type(error).__name__}: {error}"
        hint = error.hint if isinstance(error, SandboxError) else ""
        return cls(error=name_of(error), message=_plain(text), hint=_plain(hint), **more)

    def exception(self) -> SandboxError:
        return ERRORS[self.error](self.message, hint=self.hint)


class RequestFailed(_BrokerMessage, WireFailure):
    kind: Literal["failed"] = "failed"


def _plain(text: str) -> str:
    """Escapes text for a terminal, because it may quote a guest's program."""
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text[:TEXT_CHARS])


Answer = Annotated[
    BrokerWelcome
    | Launched
    | BoxEnded
    | Measured
    | SnapshotKept
    | SnapshotListing
    | Figures
    | Swept
    | Done
    | RequestFailed,
    Field(discriminator="kind"),
]

REQUEST: TypeAdapter[Request] = TypeAdapter(Request)
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


DESCRIPTORS = 2
_ANCILLARY = socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)


class PacketError(Exception):
    """Raised for input that is not a packet of this protocol."""


class Packet(NamedTuple):
    data: bytes
    """Payload; empty if the other side has hung up."""
    descriptors: tuple[int, ...]


def pack(message: BaseModel) -> bytes:
    return message.model_dump_json().encode()


def send(connection: socket.socket, data: bytes, descriptors: Sequence[int] = ()) -> bool:
    """Sends a packet with descriptors; False if the kernel's buffer is full. Raises OSError if the peer has hung up."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    try:
        connection.sendmsg([data], rights, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except BlockingIOError:
        return False
    return True


def receive(connection: socket.socket) -> Packet | None:
    """Returns a socket's next packet, or None if none has arrived. Raises PacketError, or OSError if it is broken."""
    try:
        data, ancillary, flags, _ = connection.recvmsg(
            PACKET_BYTES, _ANCILLARY, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
        )
    except BlockingIOError:
        return None
    descriptors = _descriptors(ancillary)
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        close_all(descriptors)
        raise PacketError(f"packet exceeds {PACKET_BYTES} bytes or {DESCRIPTORS} descriptors")
    return Packet(data, descriptors)


def close_all(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, ...]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return tuple(found)
