"""What a driver and a host say to each other: packets of JSON, each a list of messages.

Ray carries them as bytes and as nothing else, so no class of anybody's crosses the wire and nothing is unpickled that
a guest had a hand in: what guests wrote are strings and base64 inside these messages. A packet that is no list of
these messages ends the connection between that driver and that host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from runtime.errors import (
    BadRequestError,
    BusyError,
    InfrastructureError,
    LimitError,
    RefusedError,
    SandboxError,
)
from runtime.profile import BackendName
from runtime.sandbox import CallResult, ExecResult, FileKind, Limits, Priority, SnapshotId, Tier, Usage

PROTOCOL = 3
What = Literal["run", "exec", "write", "read", "list", "snapshot", "prepare", "restore", "fork", "measure"]
ErrorName = Literal["bad_request", "limit", "busy", "refused", "infrastructure"]
_ERRORS: dict[ErrorName, type[SandboxError]] = {
    "bad_request": BadRequestError,
    "limit": LimitError,
    "busy": BusyError,
    "refused": RefusedError,
    "infrastructure": InfrastructureError,
}


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")


class Trouble(_Message):
    """An exception of `runtime.errors` by its name."""

    error: ErrorName
    message: str
    hint: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Trouble:
        """Anything that is no SandboxError is the infrastructure's fault."""
        for name, kind in _ERRORS.items():
            if isinstance(error, kind):
                return cls(error=name, message=_printable(str(error)), hint=_printable(getattr(error, "hint", "")))
        return cls(error="infrastructure", message=_printable(f"{type(error).__name__}: {error}"))

    def exception(self) -> SandboxError:
        return _ERRORS[self.error](self.message, hint=self.hint)


# from the driver


class Hello(_Message):
    """The first message; answered with `Welcome` or `Turned`."""

    kind: Literal["hello"] = "hello"
    protocol: int = PROTOCOL
    backend: BackendName
    """What isolates the driver's code; a host that has another is of no use."""
    limits: Limits


class Open(_Message):
    """Answered only when it fails, with `Failed` for the session. Sessions have numbers that the driver gives."""

    kind: Literal["open"] = "open"
    session: int
    tier: Tier
    caller: str
    priority: Priority
    files: dict[str, bytes] = {}
    """What /work begins with, by name."""


class Call(_Message):
    """Answered with `Called` or `Failed`. The code is UTF-8 as Python has it (lone surrogates pass)."""

    kind: Literal["call"] = "call"
    session: int
    call: int
    code: bytes
    seconds: float | None
    keep: bool = False
    """Whether the session can be forked as it was before."""


class Fork(_Message):
    """Answered with `Did` or `Failed`; then `into` are sessions too."""

    kind: Literal["fork"] = "fork"
    session: int
    call: int
    into: tuple[int, ...]
    undo: bool = False
    """As before the last call with `keep`."""


class Measure(_Message):
    """Answered with `Did`, which has the session's usage, or `Failed`."""

    kind: Literal["measure"] = "measure"
    session: int
    call: int


class Forget(_Message):
    """Of a snapshot on this host; answered with `Did` or `Failed`."""

    kind: Literal["forget"] = "forget"
    call: int
    snapshot: SnapshotId


class Close(_Message):
    """Of a session or a sandbox; not answered."""

    kind: Literal["close"] = "close"
    session: int


class Box(_Message):
    """A sandbox of its own, by number like a session. Answered with `Boxed` or `Failed`."""

    kind: Literal["box"] = "box"
    session: int
    call: int
    limits: Limits | None
    snapshot: SnapshotId | None
    caller: str
    priority: Priority


class Do(_Message):
    """Anything that a sandbox can; answered with `Called`, `Executed`, `Did` or `Failed`."""

    kind: Literal["do"] = "do"
    session: int
    call: int
    what: What
    text: str = ""
    """A path, a folder or the name of a snapshot."""
    arguments: tuple[str, ...] = ()
    data: bytes = b""
    """Code, standard input or the content of a file."""
    seconds: float | None = None
    patience: float = 1.0
    number: int = 0
    """The most bytes to read, or copies to prepare."""
    durable: bool = False
    into: tuple[int, ...] = ()


Command = Annotated[Hello | Open | Call | Fork | Measure | Forget | Close | Box | Do, Field(discriminator="kind")]

# from the host


class Welcome(_Message):
    kind: Literal["welcome"] = "welcome"
    protocol: int
    name: str
    capacity: dict[Tier, int]
    limits: Limits


class Turned(_Message):
    """The host cannot or will not have this driver's sessions."""

    kind: Literal["turned"] = "turned"
    trouble: Trouble


class Called(_Message):
    kind: Literal["called"] = "called"
    session: int
    call: int
    result: CallResult


class Executed(_Message):
    kind: Literal["executed"] = "executed"
    session: int
    call: int
    result: ExecResult


class Boxed(_Message):
    kind: Literal["boxed"] = "boxed"
    session: int
    call: int
    box: str
    limits: Limits


class Item(_Message):
    """One entry of a listing."""

    path: str
    what: FileKind
    size: int


class Did(_Message):
    kind: Literal["did"] = "did"
    session: int
    call: int
    text: str = ""
    data: bytes = b""
    entries: tuple[Item, ...] = ()
    boxes: tuple[str, ...] = ()
    usage: Usage | None = None


class Failed(_Message):
    """`call` is 0 when it was the opening."""

    kind: Literal["failed"] = "failed"
    session: int
    call: int
    trouble: Trouble


class Pulse(_Message):
    """Ends every packet of a host: it is alive, and how it is."""

    kind: Literal["pulse"] = "pulse"
    draining: bool
    sessions: int
    stats: dict[str, float] | None = None
    """Of the pool; now and then."""


Report = Annotated[
    Welcome | Turned | Called | Executed | Boxed | Did | Failed | Pulse,
    Field(discriminator="kind"),
]

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


def _printable(text: str) -> str:
    """Text that JSON can carry."""
    return text.encode("utf-8", "replace").decode()
