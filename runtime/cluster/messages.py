"""Messages between a driver and a host: JSON packets, each a list of messages.

Ray carries them as bytes only, so no class crosses the wire and nothing influenced by a guest is unpickled: guest data
are strings and base64 inside these messages. A packet that is not a list of these messages ends the connection between
that driver and that host.

Frames between a driver and its gateway, on one socket: a kind, the host concerned, and a body.

Both ends are ours and trust each other; an unreadable frame is a defect and ends the gateway.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from runtime.broker.messages import WireFailure
from runtime.guest.frames import FrameReader
from runtime.model import FrozenModel
from runtime.profile import BackendName, PackageSet
from runtime.sandbox import HOME, CallResult, ExecResult, FileEntry, Limits, Priority, SnapshotId, Tier, Usage

PROTOCOL = 8
What = Literal["run", "exec", "write", "read", "list", "snapshot", "prepare", "restore", "fork", "measure", "forget"]


class _ClusterMessage(FrozenModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class _AboutSession(_ClusterMessage):
    session: int
    """Number of a session or sandbox, assigned by the driver and used once."""


class _AboutCall(_AboutSession):
    call: int
    """Number of the call, assigned by the driver; answers repeat both numbers."""


# from the driver


class DriverHello(_ClusterMessage):
    """First message of a driver; answered with `HostWelcome` or `Turned`."""

    kind: Literal["hello"] = "hello"
    protocol: int = PROTOCOL
    backend: BackendName
    """Backend that isolates the driver's code; a host with another one is unusable."""
    limits: Limits
    program: str
    """Digest of the driver's program (`runtime.cluster.settings`)."""
    packages: str
    """Digest of the guest packages on the driver's machine; empty for the standard library only."""


class OpenSession(_AboutSession):
    """Opens a session; answered only on failure, with `CallFailed` for call 0."""

    kind: Literal["open"] = "open"
    tier: Tier
    caller: str
    priority: Priority
    files: dict[str, bytes] = Field(default_factory=dict)
    """Initial content of /work, by name."""
    userland: bool = False
    packages: PackageSet | None = None


class OpenBox(_AboutCall):
    """Opens a separate sandbox; answered with `Did` or `CallFailed`."""

    kind: Literal["box"] = "box"
    limits: Limits | None
    userland: bool = False
    packages: PackageSet | None = None
    snapshot: SnapshotId | None
    caller: str
    priority: Priority


class Do(_AboutCall):
    """Requests an operation of a session, a sandbox, or the pool (`forget`); answered with `Did` or `CallFailed`."""

    kind: Literal["do"] = "do"
    what: What
    text: str = ""
    """Path, folder or snapshot name."""
    arguments: tuple[str, ...] = ()
    data: bytes = b""
    """Standard input, file content, or code: UTF-8 with lone surrogates passed through."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Environment variables of a program."""
    cwd: str = HOME
    user: str = ""
    seconds: float | None = None
    patience: float = 1.0
    number: int = 0
    """Most bytes to read or, unless 0, of output; or the number of copies to prepare."""
    durable: bool = False
    keep: bool = False
    """True if the session can be forked from its state before this call."""
    undo: bool = False
    """Forks the state before the last `keep` call."""
    into: tuple[int, ...] = ()
    """Numbers of the sessions or sandboxes that a fork creates."""


class Close(_AboutSession):
    """Closes a session or a sandbox; not answered."""

    kind: Literal["close"] = "close"


Command = Annotated[DriverHello | OpenSession | OpenBox | Do | Close, Field(discriminator="kind")]

# from the host


class HostWelcome(_ClusterMessage):
    kind: Literal["welcome"] = "welcome"
    name: str
    capacity: dict[Tier, int]


class Turned(_ClusterMessage):
    """Message with which a host refuses a driver."""

    kind: Literal["turned"] = "turned"
    failure: WireFailure


class Did(_AboutCall):
    """Answer to an operation of a session or sandbox, with only the fields of its result."""

    kind: Literal["did"] = "did"
    result: CallResult | None = None
    ran: ExecResult | None = None
    text: str = ""
    data: bytes = b""
    entries: tuple[FileEntry, ...] = ()
    boxes: tuple[str, ...] = ()
    """Identities of new sandboxes, or this one's new identity."""
    limits: Limits | None = None
    usage: Usage | None = None


class CallFailed(_AboutCall):
    """Error of a driver's call; `call` is 0 for an opening."""

    kind: Literal["failed"] = "failed"
    failure: WireFailure


class Pulse(_ClusterMessage):
    """Host's sign of life with current figures, at the end of every packet to a driver."""

    kind: Literal["pulse"] = "pulse"
    draining: bool
    sessions: int
    stats: dict[str, float] | None = None
    """Counters of the pool, included occasionally."""


Report = Annotated[HostWelcome | Turned | Did | CallFailed | Pulse, Field(discriminator="kind")]

_COMMANDS: TypeAdapter[list[Command]] = TypeAdapter(list[Command])
_REPORTS: TypeAdapter[list[Report]] = TypeAdapter(list[Report])


def commands(packet: bytes) -> list[Command]:
    """Parses a driver's packet into its commands. Raises ValueError for an invalid one."""
    return _COMMANDS.validate_json(packet)


def reports(packet: bytes) -> list[Report]:
    """Parses a host's packet into its reports. Raises ValueError for an invalid one."""
    return _REPORTS.validate_json(packet)


def packet(messages: Sequence[BaseModel]) -> bytes:
    return b"[" + b",".join(message.model_dump_json().encode() for message in messages) + b"]"


HEADER = struct.Struct(">IBH")
LARGEST = 1 << 30


class FrameKind(IntEnum):
    NODES = 1
    """From the gateway, once it is in the cluster; the body is the number of hosts."""
    UP = 2
    """A host is reachable; the body is its address."""
    PACKET = 3
    """Packet in either direction."""
    DOWN = 4
    """From the gateway: the host is gone. From the driver: treat it as gone, and retry later."""
    REFUSED = 5
    """From the gateway, before it ends: why it is not in the cluster, as a `WireFailure`."""


class Frame(NamedTuple):
    kind: FrameKind
    host: str = ""
    body: bytes = b""

    def encoded(self) -> bytes:
        host = self.host.encode()
        return HEADER.pack(len(host) + len(self.body), self.kind, len(host)) + host + self.body


class FrameDecoder(FrameReader):
    """Reassembles the frames of a cluster gateway's stream from arbitrary pieces."""

    def __init__(self) -> None:
        super().__init__(HEADER, LARGEST)

    def accepts(self, header: tuple[Any, ...]) -> bool:
        """True if a frame's header is acceptable and its host name fits into the frame."""
        return bool(header[2] <= header[0] <= self.most)

    def frames(self, data: bytes) -> list[Frame]:
        """Takes bytes received from the gateway; returns the frames they complete. Raises FrameError, or ValueError."""
        return [Frame(FrameKind(kind), body[:host].decode(), body[host:]) for (_, kind, host), body in self.feed(data)]
