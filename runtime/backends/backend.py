"""The seam between the broker and what isolates: one sandbox started, frozen, measured, ended.

Everything here is called, and calls back, on the broker's reactor thread; nothing blocks for more than a few
milliseconds. What always holds: a box is in control groups of its own before it runs an instruction; `end` leaves no
process, mount, group, folder or descriptor of it; what a backend cannot do it refuses with RefusedError, never by doing
less.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict, Field

from runtime.errors import SandboxError
from runtime.profile import BackendName, Profile


class Cause(StrEnum):
    """Why a box ended, as the host knows it."""

    ASKED = "asked"
    """Its holder, or the broker, wanted it gone."""
    MEMORY = "memory"
    CPU = "cpu"
    EXPIRED = "expired"
    DIED = "died"
    """By itself."""


class BoxUsage(BaseModel):
    """What the control groups say. Zeros where the kernel does not tell."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_seconds: float = 0.0
    memory_mib: float = 0.0
    peak_memory_mib: float = 0.0
    oom_kills: int = 0
    pids_denied: int = 0
    """How often the kernel refused a new process."""
    waits: dict[int, float] = Field(default_factory=dict)
    """Where it was asked for: by thread, the seconds for which it stood ready and had no processor."""


class Box(Protocol):
    """A running sandbox as its backend knows it."""

    id: str
    profile: Profile
    requests: int
    """The descriptor to write requests to, non-blocking."""
    replies: int
    """The descriptor to read replies from, non-blocking."""

    def complaint(self) -> str:
        """The end of what the backend's program said on its own, for the person who has to repair it."""
        ...


class Report(NamedTuple):
    """What `describe` found out about a backend on this machine, without starting a sandbox."""

    works: bool
    version: str
    problem: str = ""
    hint: str = ""


class Backend(Protocol):
    name: BackendName

    def image_parts(self, profile: Profile) -> tuple[str, ...]:
        """What a snapshot of such a box depends on besides its content: digests of the program, its flags, the bundle
        and the guest's root. Raises RefusedError when the backend cannot restore anything."""
        ...

    def start(self, profile: Profile, image: Path | None, done: Callable[[Box | SandboxError], None]) -> None:
        """A new box, from a folder that `checkpoint` filled, or cold. Its worker says READY, or answers PING, soon.

        Calls back with an InfrastructureError when it did not start, a RefusedError when it may not.
        """
        ...

    def checkpoint(
        self,
        box: Box,
        folder: Path,
        *,
        leave_running: bool,
        done: Callable[[SandboxError | None], None],
        settled: bool = False,
    ) -> None:
        """Freezes the box into an empty folder. The caller sees to it that no call is under way. `settled`: calls back
        no sooner than the box is under its own limits again, which a checkpoint may have widened."""
        ...

    def usage(self, box: Box, *, waits: bool = False) -> BoxUsage:
        """`waits` also asks for those of its threads, which takes a file for each of them."""
        ...

    def give_way(self, box: Box, others_first: bool) -> None:
        """Whether it computes mostly when nobody else does. Raises InfrastructureError."""
        ...

    def end(self, box: Box, done: Callable[[BoxUsage], None]) -> None:
        """Kills everything inside now, calls back with the last figures, then removes every trace in the background."""
        ...

    def close(self) -> None:
        """Ends every box and waits until nothing is left."""
        ...
