"""The broker's protocol: one packet of JSON on a Unix socket (SOCK_SEQPACKET) for each message, descriptors beside it.

Every request has a number that its answer repeats. The broker never trusts a client with more than its own sandboxes
and snapshots; a packet that is no message of this module ends the connection.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from runtime.backends.backend import BoxUsage, Cause
from runtime.profile import Profile
from runtime.sandbox import Priority

PROTOCOL = 3
PACKET_BYTES = 1 << 16
Name = Annotated[str, Field(max_length=200)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    request: int = Field(ge=0)


FIRST = 1
"""The number of a connection's first request, which is Hello: who is turned away is told so before it has spoken."""


class Hello(_Message):
    kind: Literal["hello"] = "hello"
    protocol: int


class Launch(_Message):
    """Answered with `Launched` and two descriptors (requests, replies), or `Failed`."""

    kind: Literal["launch"] = "launch"
    profile: Profile
    caller: Name = ""
    priority: Priority = Priority.TRAINING


class Restore(_Message):
    """As `Launch`."""

    kind: Literal["restore"] = "restore"
    snapshot: Digest
    reseed: bool = False
    caller: Name = ""
    priority: Priority = Priority.TRAINING


class Cancel(_Message):
    """Of a `Launch` or `Restore` with number `of`; answered with `Done`, and the other then with nothing."""

    kind: Literal["cancel"] = "cancel"
    of: int


class End(_Message):
    """Answered with `Ended`."""

    kind: Literal["end"] = "end"
    box: Name


class Measure(_Message):
    """Answered with `Measured`."""

    kind: Literal["measure"] = "measure"
    box: Name
    waits: bool = False
    """Those of its threads, too."""


class GiveWay(_Message):
    """Whether the box computes mostly when no other does; answered with `Done`."""

    kind: Literal["give_way"] = "give_way"
    box: Name
    others_first: bool


class Snapshot(_Message):
    """Answered with `Kept`."""

    kind: Literal["snapshot"] = "snapshot"
    box: Name
    durable: bool = False
    label: Name = ""


class Prepare(_Message):
    kind: Literal["prepare"] = "prepare"
    snapshot: Digest
    copies: int = Field(ge=0, le=64)


class Forget(_Message):
    kind: Literal["forget"] = "forget"
    snapshot: Digest


class List(_Message):
    """Answered with `Listing`."""

    kind: Literal["list"] = "list"


class Stats(_Message):
    """Answered with `Figures`."""

    kind: Literal["stats"] = "stats"


class Sweep(_Message):
    """Answered with `Swept`."""

    kind: Literal["sweep"] = "sweep"


Request = Annotated[
    Hello | Launch | Restore | Cancel | End | Measure | GiveWay | Snapshot | Prepare | Forget | List | Stats | Sweep,
    Field(discriminator="kind"),
]


class Welcome(_Message):
    kind: Literal["welcome"] = "welcome"
    protocol: int
    pid: int
    backends: dict[str, str]
    """Version by name, of those that work here."""
    refused: dict[str, str] = Field(default_factory=dict)
    """Why the others that may be used do not."""


class Launched(_Message):
    kind: Literal["launched"] = "launched"
    box: Name
    profile: Profile | None
    """None: as it was asked for. Who asks for a copy of a snapshot does not know it."""


class Ended(_Message):
    kind: Literal["ended"] = "ended"
    cause: Cause
    usage: BoxUsage


class Measured(_Message):
    kind: Literal["measured"] = "measured"
    usage: BoxUsage


class SnapshotKept(_Message):
    kind: Literal["kept"] = "kept"
    snapshot: Digest
    bytes: int
    seconds: float


class BoxLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    box: str
    mode: str
    backend: str
    state: Literal["starting", "ready", "held", "ending"]
    holder: int
    """Process number of the client; 0 for none."""
    caller: str
    age_seconds: float


class SnapshotLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: str
    bytes: int
    durable: bool
    references: int
    label: str
    created: str
    parent: str


class Listing(_Message):
    kind: Literal["listing"] = "listing"
    boxes: tuple[BoxLine, ...]
    snapshots: tuple[SnapshotLine, ...]
    more: int = 0
    """How many did not fit."""


class Figures(_Message):
    kind: Literal["figures"] = "figures"
    values: dict[str, float]


class Swept(_Message):
    kind: Literal["swept"] = "swept"
    owners: int
    processes: int
    cgroups: int
    folders: int


class Done(_Message):
    kind: Literal["done"] = "done"


class Failed(_Message):
    """`error` names the class of `runtime.errors` that the client raises."""

    kind: Literal["failed"] = "failed"
    error: Literal["bad_request", "limit", "busy", "refused", "infrastructure"]
    message: str
    hint: str = ""


Answer = Annotated[
    Welcome | Launched | Ended | Measured | SnapshotKept | Listing | Figures | Swept | Done | Failed,
    Field(discriminator="kind"),
]

REQUEST: TypeAdapter[Request] = TypeAdapter(Request)
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)
