"""Messages between a driver and a host: JSON packets, each a list of messages.

Ray carries them as bytes only, so no class crosses the wire and nothing influenced by a guest is unpickled: guest data
are strings and base64 inside these messages. A packet that is not a list of these messages ends the connection between
that driver and that host.
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
    """Digest of the driver's program (`runtime.cluster.program`)."""
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
