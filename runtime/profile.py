"""Says what one sandbox is for and what it may use, and what it had used and why when it ended.

Equal profiles give equal sandboxes: each names a golden image.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from runtime.model import FrozenModel
from runtime.programs import ProgramName

Mode = Literal["shared", "process", "sandbox"]
ModuleName = Annotated[str, StringConstraints(pattern=r"\A[A-Za-z_][A-Za-z0-9_.]*\z")]


class BackendName(StrEnum):
    GVISOR = "gvisor"
    NSJAIL = "nsjail"


SetDigest = Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{16}\z")]


class PackageSet(FrozenModel):
    """Names packages that a guest's root has in place of the usual ones, and which of them are imported ahead."""

    digest: SetDigest
    """Of a set that was installed on the broker's host; see `runtime.backends.packages`."""
    preload: tuple[ModuleName, ...] = Field((), max_length=64)
    memory_mib: int = Field(64, ge=0, le=1 << 14)
    """What the modules take that are imported ahead; it comes on top of what a sandbox may use."""


MOST_MIB, MOST_COUNT, MOST_CPUS, MOST_SECONDS, MOST_AHEAD = 1 << 24, 1 << 22, 4_096, 1e9, 1_024
"""More than any machine has: a profile may come from another user."""


class Profile(FrozenModel):
    backend: BackendName = BackendName.GVISOR
    mode: Mode
    program: ProgramName | None = None
    """One of the broker's programs instead of the guests' Python; `mode` is `sandbox` then."""
    userland: bool = False
    """A root with the distribution's shell and small programs; under gVisor with users, too, the guest's root among
    them. Only where `mode` is `sandbox`."""
    packages: SetDigest | None = None
    """A root with this set of packages. Only where `mode` is `sandbox`."""
    preload: tuple[ModuleName, ...] = Field((), max_length=64)
    """Modules that are imported before the first call, and so are part of the golden image."""
    memory_mib: int = Field(ge=16, le=MOST_MIB)
    """Of the whole sandbox, gVisor's own part (about 30 MiB) included."""
    process_memory_mib: int = Field(ge=16, le=MOST_MIB)
    """Address space of one process inside."""
    pids: int = Field(ge=1, le=MOST_COUNT)
    cpus: float = Field(gt=0, le=MOST_CPUS)
    tmp_mib: int = Field(ge=1, le=MOST_MIB)
    work_mib: int = Field(ge=1, le=MOST_MIB)
    open_files: int = Field(256, ge=32, le=MOST_COUNT)
    output_bytes: int = Field(ge=64, le=MOST_MIB << 20)
    slice_seconds: float = Field(0.25, gt=0, le=MOST_SECONDS)
    ahead: int = Field(0, ge=0, le=MOST_AHEAD)
    """Processes forked before anybody asks."""
    most_ahead: int = Field(0, ge=0, le=MOST_AHEAD)
    """So many once they turn out to be too few; less than `ahead` is as much as `ahead`."""
    cpu_seconds: float | None = Field(None, ge=0, le=MOST_SECONDS)
    """CPU time of the sandbox; the broker kills it at its end. None: no end."""
    life_seconds: float | None = Field(None, ge=0, le=MOST_SECONDS)
    """Likewise, wall clock from its hand-over."""

    @property
    def users(self) -> bool:
        """Whether programs can be started for other users than the ordinary one. nsjail's guests have one user of the
        host each, and no capability to become another."""
        return self.userland and self.backend is BackendName.GVISOR

    @model_validator(mode="after")
    def _only_a_sandbox_has_a_userland(self) -> Self:
        if self.userland and (self.mode != "sandbox" or self.program is not None):
            raise ValueError("only a guest with a sandbox of its own has programs and users")
        if self.packages is not None and (self.mode != "sandbox" or self.program is not None or self.userland):
            raise ValueError("only a guest with a sandbox of its own, and without a userland, has packages of its own")
        return self

    def worker_limits(self) -> str:
        """Writes what the worker enforces itself, as its second argument."""
        limits = {
            "output_bytes": self.output_bytes,
            "memory_bytes": self.process_memory_mib << 20,
            "open_files": self.open_files,
            "slice_seconds": self.slice_seconds,
            "ahead": self.ahead,
            "most_ahead": self.most_ahead,
            "preload": ",".join(self.preload),
            "userland": ("users" if self.users else "programs") if self.userland else "no",
        }
        return " ".join(f"{name}={value}" for name, value in limits.items())


class Cause(StrEnum):
    """Says why a box ended, as the host knows it."""

    ASKED = "asked"
    """Its holder, or the broker, wanted it gone."""
    MEMORY = "memory"
    CPU = "cpu"
    EXPIRED = "expired"
    DIED = "died"
    """By itself."""


class BoxUsage(FrozenModel):
    """Holds what the control groups say. Zeros where the kernel does not tell."""

    cpu_seconds: float = 0.0
    memory_mib: float = 0.0
    peak_memory_mib: float = 0.0
    oom_kills: int = 0
    pids_denied: int = 0
    """How often the kernel refused a new process."""
    waits: dict[int, float] = Field(default_factory=dict)
    """Where it was asked for: by thread, the seconds for which it stood ready and had no processor."""
