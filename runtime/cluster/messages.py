"""Defines what a driver and a host say to each other: packets of JSON, each a list of messages.

Ray carries them as bytes and as nothing else, so no class of anybody's crosses the wire and nothing is unpickled that
a guest had a hand in: what guests wrote are strings and base64 inside these messages. A packet that is no list of
these messages ends the connection between that driver and that host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from runtime.broker.messages import WireFailure
from runtime.model import FrozenModel
from runtime.profile import BackendName, PackageSet
from runtime.sandbox import HOME, CallResult, ExecResult, FileEntry, Limits, Priority, SnapshotId, Tier, Usage

PROTOCOL = 8
What = Literal["run", "exec", "write", "read", "list", "snapshot", "prepare", "restore", "fork", "measure", "forget"]


class _ClusterMessage(FrozenModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class _AboutSession(_ClusterMessage):
    session: int
    """Of a session or a sandbox: the driver gives both their numbers, each once."""


class _AboutCall(_AboutSession):
    call: int
    """Likewise; what it is answered with repeats both."""


# from the driver


class DriverHello(_ClusterMessage):
    """Is the first message; answered with `HostWelcome` or `Turned`."""

    kind: Literal["hello"] = "hello"
    protocol: int = PROTOCOL
    backend: BackendName
    """What isolates the driver's code; a host that has another is of no use."""
    limits: Limits
    program: str
    """The digest of the driver's program (`runtime.cluster.program`)."""
    packages: str
    """The digest of what guests may import on the driver's machine; empty where that is the standard library."""


class OpenSession(_AboutSession):
    """Opens a session; answered only when it fails, with `CallFailed` for call 0."""

    kind: Literal["open"] = "open"
    tier: Tier
    caller: str
    priority: Priority
    files: dict[str, bytes] = Field(default_factory=dict)
    """What /work begins with, by name."""
    userland: bool = False
    packages: PackageSet | None = None


class OpenBox(_AboutCall):
    """Opens a sandbox of its own; answered with `Did` or `CallFailed`."""

    kind: Literal["box"] = "box"
    limits: Limits | None
    userland: bool = False
    snapshot: SnapshotId | None
    caller: str
    priority: Priority


class Do(_AboutCall):
    """Asks for anything that a session or a sandbox can, or the pool (`forget`); answered with `Did` or
    `CallFailed`."""

    kind: Literal["do"] = "do"
    what: What
    text: str = ""
    """A path, a folder or the name of a snapshot."""
    arguments: tuple[str, ...] = ()
    data: bytes = b""
    """Standard input, the content of a file, or code: UTF-8 as Python has it (lone surrogates pass)."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Of a program's environment."""
    cwd: str = HOME
    user: str = ""
    seconds: float | None = None
    patience: float = 1.0
    number: int = 0
    """The most bytes to read or, where it is not 0, of output; or copies to prepare."""
    durable: bool = False
    keep: bool = False
    """Whether the session can be forked as it was before this call."""
    undo: bool = False
    """Fork it as it was before the last call with `keep`."""
    into: tuple[int, ...] = ()
    """What a fork makes: they are sessions or sandboxes too, once it is answered."""


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
    """The host cannot or will not have this driver's sessions."""

    kind: Literal["turned"] = "turned"
    failure: WireFailure


class Did(_AboutCall):
    """Answers what was asked for with what came of it, and no more."""

    kind: Literal["did"] = "did"
    result: CallResult | None = None
    ran: ExecResult | None = None
    text: str = ""
    data: bytes = b""
    entries: tuple[FileEntry, ...] = ()
    boxes: tuple[str, ...] = ()
    """The identity of each sandbox that is new, or that this one has now."""
    limits: Limits | None = None
    usage: Usage | None = None


class CallFailed(_AboutCall):
    """`call` is 0 when it was the opening."""

    kind: Literal["failed"] = "failed"
    failure: WireFailure


class Pulse(_ClusterMessage):
    """Ends every packet of a host: it is alive, and how it is."""

    kind: Literal["pulse"] = "pulse"
    draining: bool
    sessions: int
    stats: dict[str, float] | None = None
    """Of the pool; now and then."""


Report = Annotated[HostWelcome | Turned | Did | CallFailed | Pulse, Field(discriminator="kind")]

_COMMANDS: TypeAdapter[list[Command]] = TypeAdapter(list[Command])
_REPORTS: TypeAdapter[list[Report]] = TypeAdapter(list[Report])


def commands(packet: bytes) -> list[Command]:
    """Raises ValueError for anything else."""
    return _COMMANDS.validate_json(packet)


def reports(packet: bytes) -> list[Report]:
    """Raises ValueError for anything else."""
    return _REPORTS.validate_json(packet)


def packet(messages: Sequence[BaseModel]) -> bytes:
    return b"[" + b",".join(message.model_dump_json().encode() for message in messages) + b"]"
