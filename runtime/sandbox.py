"""Interface between callers that run code and the backends that isolate it.

Invariants: a `CallResult` is what the *host* observed. Guest code can fail in any way; it cannot choose the status of
its call, the identity of the sandbox or the measured time. Four statuses refine `exception` by what the guest reports
of its own failure (`disk`, `files`, `pids`, and `memory` if the interpreter survives); a lie there changes only the
name of a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from enum import IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple, NewType, Protocol, Self

from pydantic import ConfigDict, Field

from runtime.model import FrozenModel, UnitName
from runtime.profile import MOST_COUNT, MOST_CPUS, MOST_MIB, MOST_SECONDS, PackageSet

NO_FILES: Mapping[str, bytes] = MappingProxyType({})
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
HOME = "/work"
"""Folder in which relative paths start."""
MOST_CALLS = 1 << 30


class CallStatus(StrEnum):
    """Outcome of one call in a sandbox, as observed by the host."""

    OK = "ok"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    """Wall-clock limit of the call."""
    CPU = "cpu"
    """CPU time of the sandbox, over all its calls."""
    EXPIRED = "expired"
    """Wall-clock lifetime of the sandbox."""
    MEMORY = "memory"
    PIDS = "pids"
    DISK = "disk"
    FILES = "files"
    OUTPUT = "output"
    CALLS = "calls"
    """The session has used all its calls; this one did not run."""
    DIED = "died"


class Tier(StrEnum):
    """Isolation tier that a session's history has required; it only moves down this list. All run in a sandbox."""

    SHARED = "shared"
    """Warm interpreter shared with other sessions, one namespace each: only snippets proved pure by an allow-list."""
    PROCESS = "process"
    """Separate process in a shared sandbox: compute only, every other system call is denied."""
    SANDBOX = "sandbox"
    """Separate sandbox: files, programs, threads."""


class Limits(FrozenModel):
    """Resource limits of one sandbox, enforced by the host (cgroups, wall clock) and by rlimits inside."""

    call_seconds: float = Field(2.0, gt=0, le=MOST_SECONDS)
    """Wall-clock time of one call, measured on the host; the worker is killed at its end."""
    memory_mib: int = Field(256, ge=48, le=MOST_MIB // 16)
    """Memory of one sandbox, including everything that runs in it."""
    pids: Annotated[int, UnitName("processes")] = Field(128, ge=16, le=MOST_COUNT // 16)
    """Processes and threads alive concurrently in one sandbox."""
    cpus: Annotated[float, UnitName("processors")] = Field(1.0, gt=0, le=MOST_CPUS)
    """CPU time that one sandbox may use per second of wall clock."""
    output_bytes: int = Field(16_384, ge=64, le=1 << 40)
    """Bytes of standard output and error per call; more ends the call with status `output`."""
    tmp_mib: int = Field(64, ge=1, le=MOST_MIB // 16)
    """Size of /tmp."""
    work_mib: int = Field(32, ge=1, le=MOST_MIB // 16)
    """Size of /work, the folder in which code runs."""
    open_files: Annotated[int, UnitName("descriptors")] = Field(256, ge=32, le=MOST_COUNT)
    """Open descriptors per process."""
    entries: Annotated[int, UnitName("names")] = Field(4_096, ge=1, le=MOST_COUNT)
    """Files and folders per listing, upload or download."""
    cpu_seconds: float = Field(600.0, gt=0, le=MOST_SECONDS)
    """CPU time of a separate sandbox, over all its calls."""
    life_seconds: float = Field(3_600.0, gt=0, le=MOST_SECONDS)
    """Wall-clock lifetime of a separate sandbox, used or not."""
    calls: Annotated[int, UnitName("calls")] = Field(1_000, ge=1, le=MOST_CALLS)
    """Calls per session or sandbox."""
    snapshots: Annotated[int, UnitName("snapshots")] = Field(64, ge=0, le=MOST_CALLS)
    """Snapshots per session or sandbox."""


class CallResult(FrozenModel):
    """Result of one call in a sandbox: output, and host measurements."""

    status: CallStatus
    output: str = ""
    """Standard output and error together, decoded with replacement. Hostile text: escape before display."""
    error: str = ""
    """For `exception`: `Type: message`, one line. For other failures: a sentence from the host."""
    traceback: str = ""
    """For `exception`: frames of the guest's own code, shortened."""
    seconds: float
    computed: float | None = None
    """CPU seconds of a call with patience that ran long enough to be measured."""
    waited: float = 0.0
    """Seconds for which that call was runnable without a CPU."""
    tier: Tier
    sandbox: str
    """Identity of the sandbox in which the call ran; never empty for code that ran."""


class ExecResult(FrozenModel):
    """Result of one program run to completion inside a sandbox."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    status: CallStatus
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    computed: float | None = None
    """CPU seconds, as in `CallResult`; likewise `waited`."""
    waited: float = 0.0


SnapshotId = NewType("SnapshotId", str)
"""SHA-256, in hex, over everything a snapshot depends on: runsc and its flags, the bundle, the parent, the content."""


class Priority(IntEnum):
    """Priority of a request for scarce sandboxes, highest first. Callers of one priority take turns."""

    JOB = 0
    TRAINING = 1
    BACKGROUND = 2


class Usage(FrozenModel):
    """Resource usage of a session so far, measured by the host."""

    calls: int = 0
    seconds: float = 0.0
    """Wall-clock time inside calls."""
    output_bytes: int = 0
    snapshots: int = 0
    moves: int = 0
    """Number of moves to a tier with more isolation, or to another sandbox."""
    cpu_seconds: float | None = None
    """CPU time of its own sandboxes; None while it shared one, or if a sandbox's broker was lost."""
    peak_memory_mib: float | None = None
    """Peak memory of its own sandboxes; None as for `cpu_seconds`."""


class FileKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    OTHER = "other"
    """Links, pipes, sockets, devices, and files with several names: listed, never read."""


class FileEntry(NamedTuple):
    """File or folder in a listing below /work or /tmp of a sandbox. The name is hostile text."""

    path: str
    kind: FileKind
    size: int


class ClosesOnExit:
    """Context manager mixin that calls `close` at the end of the block."""

    def close(self) -> None:
        """Frees all held resources; closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Sandbox(Protocol):
    """Isolated machine with a warm, stateful Python worker. Not thread-safe: one caller at a time.

    Paths belong to the sandbox. Relative paths start in /work; `..`, links and non-text names are refused. Files are
    reachable below /work and /tmp; with a userland everywhere but in /proc, /sys and /dev, with the rights of the
    ordinary user. A missing file raises FileMissingError, denied access FileDeniedError, a folder in place of a file
    FileIsFolderError; other mistakes raise BadRequestError, the parent of all three.
    """

    id: str
    limits: Limits

    @property
    def usage(self) -> Usage: ...

    def run(self, code: str, *, seconds: float | None = None, patience: float = 1.0) -> CallResult:
        """Runs Python code in the sandbox's worker; names persist between calls. `seconds` can only shorten the limit.

        With `patience` above 1, a long call yields to other sandboxes, and the limit counts the time in which it
        computes or rests, not the time in which others have the CPUs; wall-clock time is at most `patience` times the
        limit. Raises InfrastructureError when the sandbox itself failed, BadRequestError after `close`.
        """

    def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] = NO_VARIABLES,
        cwd: str = HOME,
        user: str = "",
        seconds: float | None = None,
        output_bytes: int | None = None,
        patience: float = 1.0,
    ) -> ExecResult:
        """Runs a program inside without a shell, found by path or by name on its PATH.

        `env` is added to PATH, HOME, LANG and TMPDIR; nothing of the host's environment is passed. `user` is a name or
        number in the sandbox's /etc/passwd; empty for the ordinary user. Only a sandbox with a userland under gVisor
        has others, including its own root. `seconds` and `output_bytes` (per stream) can only shorten the limits.
        `patience` as in `run`; a sandbox whose patience ends is gone.

        Raises FileMissingError or FileDeniedError for a missing or inaccessible program or folder, UnknownUserError for
        an unknown user, RefusedError for a user that this sandbox cannot have, LimitError for input above half its
        memory.
        """

    def write(self, path: str, data: bytes) -> None:
        """Creates or replaces a regular file in the sandbox, and missing parent folders; an existing mode stays. Raises
        LimitError if it cannot fit."""

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """Returns the content of a regular file in the sandbox. Raises FileTooLargeError above `max_bytes`."""

    def list(self, path: str = "/work") -> Sequence[FileEntry]:
        """Lists everything below a sandbox's folder, following no links. Raises LimitError beyond `Limits.entries`."""

    def upload(self, source: Path, path: str) -> int:
        """Copies all regular files below a host folder into the sandbox; returns their number. Raises BadRequestError
        if anything else is in the tree."""

    def download(self, path: str, target: Path) -> int:
        """Copies the regular files below a folder into a new host folder; returns their number.

        Regardless of hostile names and files, nothing outside `target` is touched, and `target` gets only plain files
        and folders. Raises BadRequestError if the tree cannot be copied completely.
        """

    def snapshot(self, *, durable: bool = False) -> SnapshotId:
        """Saves the sandbox's whole state: heap, threads, child processes, open files, /tmp and /work. The sandbox
        keeps running.

        A durable snapshot outlives this process and the broker, until it is forgotten. Raises RefusedError if the
        backend cannot, LimitError beyond `Limits.snapshots` or the store's quota.
        """

    def prepare(self, snapshot: SnapshotId, copies: int = 1) -> None:
        """Keeps `copies` sandboxes restored from a snapshot ready ahead of demand, for `restore` and `fork` to take."""

    def restore(self, snapshot: SnapshotId) -> None:
        """Rolls the sandbox back to a snapshot, discarding later state. Its identity changes."""

    def fork(self, snapshot: SnapshotId, n: int) -> Sequence[Sandbox]:
        """Starts `n` new sandboxes from a snapshot, each with different random numbers; this one is unaffected."""

    def close(self) -> None:
        """Kills everything inside the sandbox and removes every trace on the host. Closing twice is fine."""


class Session(Protocol):
    """Interpreter state of one rollout, isolated from every other session. Calls of one session run in order."""

    id: str

    @property
    def tier(self) -> Tier: ...

    @property
    def usage(self) -> Usage: ...

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        """Runs Python code in the session like `Sandbox.run`, and waits for the result."""

    def start(
        self, code: str, *, seconds: float | None = None, keep: bool = False, patience: float = 1.0
    ) -> Future[CallResult]:
        """Runs Python code in the session without blocking and returns a future of the result.

        With `keep` the session can later be forked as it was before this call; the state kept for an earlier call is
        dropped. That is free except in a separate sandbox that was called before, which is snapshot first. With
        `patience` above 1, in a separate sandbox, the limit counts only the call's own time, computing or resting, not
        time in which others have the CPUs, up to `patience` times the limit of wall clock.
        """

    def fork(self, n: int, *, undo: bool = False) -> list[Session]:
        """Returns `n` independent sessions with this one's names. Waits for running calls.

        Pure and compute-only histories are replayed, at their cost; a separate sandbox is snapshot. With `undo` the
        copies start as this session was before its last `keep` call, whatever its outcome. Raises BadRequestError if
        nothing was kept, LimitError or InfrastructureError if the state could not be kept.
        """

    def start_fork(self, n: int, *, undo: bool = False) -> Future[list[Session]]:
        """Forks the session like `fork`, but returns a future immediately. Calls started later are not included."""

    def close(self) -> None:
        """Frees all of the session's resources immediately, even during a call."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: object) -> None: ...


class SessionPool(Protocol):
    """Source of sessions, one per process; after `close` nothing of it is left on the host."""

    limits: Limits
    """Limits of each sandbox unless others are requested."""

    def open(
        self,
        *,
        tier: Tier = Tier.SHARED,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
        files: Mapping[str, bytes] = NO_FILES,
        userland: bool = False,
        packages: PackageSet | None = None,
    ) -> Session:
        """Opens a fresh session; `tier` is the least isolation its taskset requires. Callers of one priority take
        turns.

        `files` are the initial content of /work, by plain name; such a session gets a separate sandbox, and each
        replacement sandbox, after a fork or a killed call, has them as they were or as at first. `userland` also
        implies a separate sandbox, with the distribution's shell and small programs. Raises RefusedError without
        isolation, BusyError when too many sessions wait, BadRequestError for an invalid name, LimitError for more files
        than fit into /work.

        `packages`, a set installed on the host, implies a separate sandbox with these in place of the usual ones; its
        first call raises RefusedError if the host lacks the set, or the backend cannot.
        """

    def sandbox(
        self,
        limits: Limits | None = None,
        *,
        userland: bool = False,
        packages: PackageSet | None = None,
        snapshot: SnapshotId | None = None,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
    ) -> Sandbox:
        """Opens a separate sandbox, fresh or from a snapshot; blocks until it is ready.

        With `userland` it has the distribution's shell and small programs beside Python, and users under gVisor;
        `packages` as in `open`. A snapshot's own build takes precedence over `limits`, `userland` and `packages`; the
        sandbox's attributes report it.
        """

    def forget(self, snapshot: SnapshotId) -> None:
        """Deletes a snapshot, even a durable one. Raises BadRequestError for an unknown one."""

    def stats(self) -> dict[str, float]:
        """Returns counters since the pool's start: calls, calls by tier and by status, seconds in calls, sandboxes."""

    def close(self) -> None: ...
