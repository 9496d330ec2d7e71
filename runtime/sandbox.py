"""The seam between those who want code run and the backends that run it.

What always holds: a `CallResult` is what the *host* saw. Guest code can fail in any way it likes; it cannot choose the
status of its call, the identity of the sandbox or the time that was measured.

Snapshot, restore and fork will be a second protocol beside `Sandbox`, for the backends that can do them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from enum import StrEnum
from types import TracebackType
from typing import Protocol, Self

from pydantic import BaseModel, ConfigDict, Field


class CallStatus(StrEnum):
    """How one call ended, as the host saw it."""

    OK = "ok"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT = "output"
    DIED = "died"


class Tier(StrEnum):
    """What a session's history has paid for so far; it only ever moves down this list. All three are in a sandbox."""

    SHARED = "shared"
    """A warm interpreter with other sessions, one namespace each: only snippets proved pure by an allow-list."""
    PROCESS = "process"
    """A process of its own in a sandbox with others: compute only, every other system call is denied."""
    SANDBOX = "sandbox"
    """A sandbox of its own: files, programs, threads."""


class Limits(BaseModel):
    """What one sandbox may use. Enforced by the host (cgroups, a wall clock) and by rlimits inside."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_seconds: float = Field(2.0, gt=0)
    """Wall clock of one call, measured on the host; the worker is killed at its end."""
    memory_mib: int = Field(256, ge=48)
    pids: int = Field(128, ge=16)
    cpus: float = Field(1.0, gt=0)
    output_bytes: int = Field(16_384, ge=64)
    """Bytes of standard output and error that one call may produce; more ends the call with status `output`."""
    tmp_mib: int = Field(64, ge=1)
    work_mib: int = Field(32, ge=1)


class CallResult(BaseModel):
    """One call: what came out, and what the host measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: CallStatus
    output: str = ""
    """Standard output and error together, decoded with replacement. Hostile text: escape it before it is shown."""
    error: str = ""
    """For `exception`: `Type: message`, one line. For the other failures: a sentence of the host's own."""
    traceback: str = ""
    """For `exception`: the frames of the guest's own code, shortened."""
    seconds: float
    tier: Tier
    sandbox: str
    """Identity of the sandbox in which it ran; never empty for code that ran."""


class ExecResult(BaseModel):
    """One program that ran to its end inside a sandbox."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: CallStatus
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float


class Sandbox(Protocol):
    """One isolated machine with a warm, stateful Python worker. Not thread-safe: one caller at a time."""

    id: str
    limits: Limits

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        """Runs Python in the worker; names persist from call to call. `seconds` shortens the limit, never extends it.

        Raises InfrastructureError when the sandbox broke on its own account, BadRequestError after `close`.
        """
        ...

    def exec(self, argv: Sequence[str], *, stdin: bytes = b"", seconds: float | None = None) -> ExecResult:
        """Runs a program inside, without a shell."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Creates or replaces a regular file under /work or /tmp."""
        ...

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """The content of a regular file under /work or /tmp. Raises BadRequestError where there is none."""
        ...

    def close(self) -> None:
        """Kills everything inside and removes every trace on the host. Closing twice is fine."""
        ...


class Session(Protocol):
    """What one rollout holds: state that no other session can see or change. Calls of one session run in order."""

    id: str

    @property
    def tier(self) -> Tier: ...

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        """As `Sandbox.run`; blocks."""
        ...

    def start(self, code: str, *, seconds: float | None = None) -> Future[CallResult]:
        """The same without blocking: the caller's loop goes on while the code runs."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SessionPool(Protocol):
    """Where sessions come from. One a process; close it and nothing of it is left on the host."""

    def open(self, *, tier: Tier = Tier.SHARED) -> Session:
        """A fresh session; `tier` is the least that its family asks for. Raises RefusedError without isolation."""
        ...

    def stats(self) -> dict[str, float]:
        """Counters since the start: calls, calls by tier and by status, seconds in calls, sandboxes started, killed."""
        ...

    def close(self) -> None: ...
