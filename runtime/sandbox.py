"""Is the seam between those who want code run and the backends that run it.

What always holds: a `CallResult` is what the *host* saw. Guest code can fail in any way it likes; it cannot choose the
status of its call, the identity of the sandbox or the time that was measured. Four statuses refine `exception` by what
the guest says of its own failure (`disk`, `files`, `pids`, and `memory` where the interpreter lives on); a lie there
changes the name of a failure and nothing else.
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
"""The folder that relative paths begin in."""
MOST_CALLS = 1 << 30


class CallStatus(StrEnum):
    """Says how one call ended, as the host saw it."""

    OK = "ok"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    """The call's wall clock."""
    CPU = "cpu"
    """The sandbox's CPU time, over all its calls."""
    EXPIRED = "expired"
    """The sandbox's own wall clock, from its first moment."""
    MEMORY = "memory"
    PIDS = "pids"
    DISK = "disk"
    FILES = "files"
    OUTPUT = "output"
    CALLS = "calls"
    """The session has had all its calls; this one did not run."""
    DIED = "died"


class Tier(StrEnum):
    """Is what a session's history has paid for so far; it only ever moves down this list. All three are in a
    sandbox."""

    SHARED = "shared"
    """A warm interpreter with other sessions, one namespace each: only snippets proved pure by an allow-list."""
    PROCESS = "process"
    """A process of its own in a sandbox with others: compute only, every other system call is denied."""
    SANDBOX = "sandbox"
    """A sandbox of its own: files, programs, threads."""


class Limits(FrozenModel):
    """Says what one sandbox may use. Enforced by the host (cgroups, a wall clock) and by rlimits inside."""

    call_seconds: float = Field(2.0, gt=0, le=MOST_SECONDS)
    """Wall clock of one call, measured on the host; the worker is killed at its end."""
    memory_mib: int = Field(256, ge=48, le=MOST_MIB // 16)
    """Memory of one sandbox, with everything that runs in it."""
    pids: Annotated[int, UnitName("processes")] = Field(128, ge=16, le=MOST_COUNT // 16)
    """Processes and threads that are alive at once in one sandbox."""
    cpus: Annotated[float, UnitName("processors")] = Field(1.0, gt=0, le=MOST_CPUS)
    """Processor time that one sandbox may use in each second of wall clock."""
    output_bytes: int = Field(16_384, ge=64, le=1 << 40)
    """Bytes of standard output and error that one call may produce; more ends the call with status `output`."""
    tmp_mib: int = Field(64, ge=1, le=MOST_MIB // 16)
    """How much /tmp holds."""
    work_mib: int = Field(32, ge=1, le=MOST_MIB // 16)
    """How much /work holds, the folder in which code runs."""
    open_files: Annotated[int, UnitName("descriptors")] = Field(256, ge=32, le=MOST_COUNT)
    """Descriptors that one process may have open."""
    entries: Annotated[int, UnitName("names")] = Field(4_096, ge=1, le=MOST_COUNT)
    """Files and folders that one listing, upload or download may name."""
    cpu_seconds: float = Field(600.0, gt=0, le=MOST_SECONDS)
    """CPU time of a sandbox of its own, over all its calls."""
    life_seconds: float = Field(3_600.0, gt=0, le=MOST_SECONDS)
    """Wall clock of a sandbox of its own, used or not."""
    calls: Annotated[int, UnitName("calls")] = Field(1_000, ge=1, le=MOST_CALLS)
    """Calls of one session or sandbox."""
    snapshots: Annotated[int, UnitName("snapshots")] = Field(64, ge=0, le=MOST_CALLS)
    """Snapshots that one session or sandbox may take."""


class CallResult(FrozenModel):
    """Is one call: what came out, and what the host measured."""

    status: CallStatus
    output: str = ""
    """Standard output and error together, decoded with replacement. Hostile text: escape it before it is shown."""
    error: str = ""
    """For `exception`: `Type: message`, one line. For the other failures: a sentence of the host's own."""
    traceback: str = ""
    """For `exception`: the frames of the guest's own code, shortened."""
    seconds: float
    computed: float | None = None
    """Processor seconds of a call that was given patience and took long enough to be looked at."""
    waited: float = 0.0
    """Of the same: for how long it stood ready and others had the processors."""
    tier: Tier
    sandbox: str
    """Identity of the sandbox in which it ran; never empty for code that ran."""


class ExecResult(FrozenModel):
    """Is one program that ran to its end inside a sandbox."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    status: CallStatus
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    computed: float | None = None
    """As of `CallResult`, and the next too."""
    waited: float = 0.0


SnapshotId = NewType("SnapshotId", str)
"""SHA-256, in hex, over all that a snapshot depends on: runsc and its flags, the bundle, the parent, the content."""


class Priority(IntEnum):
    """Says who goes first when places are short. Within one priority callers take turns."""

    JOB = 0
    TRAINING = 1
    BACKGROUND = 2


class Usage(FrozenModel):
    """Holds what a session has used so far, measured by the host."""

    calls: int = 0
    seconds: float = 0.0
    """Wall clock inside calls."""
    output_bytes: int = 0
    snapshots: int = 0
    moves: int = 0
    """How often it moved to a tier with more isolation, or to another sandbox."""
    cpu_seconds: float | None = None
    """Of its own sandboxes; None while it shared one, and when the broker of one is gone: then nobody knows."""
    peak_memory_mib: float | None = None
    """Likewise."""


class FileKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    OTHER = "other"
    """Links, pipes, sockets, devices, and files with more than one name: listed, never read."""


class FileEntry(NamedTuple):
    """Says what stands under a name below /work or /tmp. The name is hostile text."""

    path: str
    kind: FileKind
    size: int


class ClosesOnExit:
    """Closes itself at the end of the block that it is held for."""

    def close(self) -> None:
        """Frees all that it holds; closing twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class Sandbox(Protocol):
    """Is one isolated machine with a warm, stateful Python worker. Not thread-safe: one caller at a time.

    Paths are of the sandbox. Relative ones begin in /work; `..`, links, and names that are no text are refused. Files
    can be reached below /work and /tmp; in a sandbox with a userland everywhere but in /proc, /sys and /dev, as far as
    its ordinary user may. What is not there raises FileMissingError, what may not be read or written FileDeniedError, a
    folder in the place of a file FileIsFolderError; other mistakes BadRequestError, which is the parent of all three.
    """

    id: str
    limits: Limits

    @property
    def usage(self) -> Usage: ...

    def run(self, code: str, *, seconds: float | None = None, patience: float = 1.0) -> CallResult:
        """Runs Python in the worker; names persist from call to call. `seconds` shortens the limit, never extends it.

        With `patience` above 1, what takes long gives way to other sandboxes, and the limit counts the time in which it
        computes or rests, not that in which others have the processors; so many times the limit is the most of wall
        clock. Raises InfrastructureError when the sandbox broke on its own account, BadRequestError after `close`.
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
        """Runs a program inside, without a shell: by its path, or by its name on the PATH that it will have.

        `env` comes on top of a PATH, HOME, LANG and TMPDIR; nothing of the host's environment is in it. `user` is a
        name or number in the sandbox's /etc/passwd; empty for the ordinary one. Only a sandbox with a userland under
        gVisor has others, its own root among them. `seconds` and `output_bytes` (of each output) shorten the limits,
        never extend them. `patience` as of `run`; a sandbox whose patience ends is gone.

        Raises FileMissingError or FileDeniedError for a program or a folder that is not there or may not be used,
        UnknownUserError for a user that is not there, RefusedError for one that this sandbox cannot have, LimitError
        for more input than half its memory.
        """

    def write(self, path: str, data: bytes) -> None:
        """Creates or replaces a regular file; missing folders are made, and its mode stays. Raises LimitError for more
        than there can be room for."""

    def read(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        """Reads the content of a regular file. Raises FileTooLargeError where it has more."""

    def list(self, path: str = "/work") -> Sequence[FileEntry]:
        """Lists everything below a folder, links not followed. Raises LimitError beyond `Limits.entries`."""

    def upload(self, source: Path, path: str) -> int:
        """Copies a tree of regular files in; how many. Raises BadRequestError for anything else in it."""

    def download(self, path: str, target: Path) -> int:
        """Copies the regular files below a folder into a new folder of the host; how many.

        Whatever the guest made of the names and files, nothing outside `target` is touched, and nothing in it is
        anything but a plain file or folder. Raises BadRequestError when what is there cannot be taken whole.
        """

    def snapshot(self, *, durable: bool = False) -> SnapshotId:
        """Keeps the whole state: heap, threads, child processes, open files, /tmp and /work. It goes on running.

        A durable snapshot outlives this process and the broker, until it is forgotten. Raises RefusedError where the
        backend cannot, LimitError beyond `Limits.snapshots` or the store's quota.
        """

    def prepare(self, snapshot: SnapshotId, copies: int = 1) -> None:
        """Has copies restored ahead of need, for `restore` and `fork` to take."""

    def restore(self, snapshot: SnapshotId) -> None:
        """Goes back: everything since is gone. The sandbox has another identity afterwards."""

    def fork(self, snapshot: SnapshotId, n: int) -> Sequence[Sandbox]:
        """Makes `n` new sandboxes that begin there, each with other random numbers; this one goes on undisturbed."""

    def close(self) -> None:
        """Kills everything inside and removes every trace on the host. Closing twice is fine."""


class Session(Protocol):
    """Is what one rollout holds: state that no other session can see or change. Calls of one session run in order."""

    id: str

    @property
    def tier(self) -> Tier: ...

    @property
    def usage(self) -> Usage: ...

    def run(self, code: str, *, seconds: float | None = None) -> CallResult:
        """Runs it as `Sandbox.run` does; blocks."""

    def start(
        self, code: str, *, seconds: float | None = None, keep: bool = False, patience: float = 1.0
    ) -> Future[CallResult]:
        """Runs it without blocking: the caller's loop goes on while the code runs.

        With `keep` the session can later be forked as it was before this call; what was kept for an earlier one is
        given up. That costs nothing but in a sandbox of its own that has been called before, which is snapshot first.

        With `patience` above 1, in a sandbox of its own, the limit is of the call's own time, in which it computed or
        rested: the time in which others had the processors does not count, up to so many limits of wall clock.
        """

    def fork(self, n: int, *, undo: bool = False) -> list[Session]:
        """Makes `n` sessions with this one's names, each on its own from here on. Waits for the calls under way.

        Pure and compute-only histories are repeated, which costs what they cost; a sandbox of its own is snapshot.
        With `undo` they begin as this one was before its last call with `keep`, whatever became of that call. Raises
        BadRequestError where nothing was kept, LimitError or InfrastructureError where it could not be.
        """

    def start_fork(self, n: int, *, undo: bool = False) -> Future[list[Session]]:
        """Does the same without blocking. Calls that are started later do not count for it."""

    def close(self) -> None:
        """Frees what it holds at once, also in the middle of a call."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: object) -> None: ...


class SessionPool(Protocol):
    """Is where sessions come from. One a process; close it and nothing of it is left on the host."""

    limits: Limits
    """Of each of its sandboxes, unless another is asked for."""

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
        """Opens a fresh session; `tier` is the least that its family asks for. Callers of one priority take turns.

        `files` are what /work begins with, by plain name; such a session has a sandbox of its own, and whenever it gets
        another one, in a fork or after a call that had to be killed, they are there as they were or as at first. With
        `userland` it has a sandbox of its own, too, with the distribution's shell and small programs. Raises
        RefusedError without isolation, BusyError when too many sessions wait already, BadRequestError for a name that
        is none, LimitError for more files than /work has room for.

        With `packages`, a set that was installed on the host, it has a sandbox of its own with these in place of the
        usual ones; its first call says RefusedError where the host has no such set, or the backend cannot.
        """

    def sandbox(
        self,
        limits: Limits | None = None,
        *,
        userland: bool = False,
        snapshot: SnapshotId | None = None,
        caller: str = "",
        priority: Priority = Priority.TRAINING,
    ) -> Sandbox:
        """Opens a sandbox of its own, fresh or from a snapshot; blocks until it is ready.

        With `userland` it has the distribution's shell and small programs beside Python, and under gVisor users. What a
        snapshot's sandbox was built with goes before `limits` and `userland`; those of the sandbox tell all.
        """

    def forget(self, snapshot: SnapshotId) -> None:
        """Gives up a snapshot, a durable one too. Raises BadRequestError when there is none."""

    def stats(self) -> dict[str, float]:
        """Counters since the start: calls, calls by tier and by status, seconds in calls, sandboxes started, killed."""

    def close(self) -> None: ...
