"""Profile of one sandbox: its purpose and resources, its usage, and why it ended.

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
    """Packages that replace the usual ones in a guest's root, and modules to import ahead."""

    digest: SetDigest
    """Digest of a set installed on the broker's host; see `runtime.backends.packages`."""
    preload: tuple[ModuleName, ...] = Field((), max_length=64)
    memory_mib: int = Field(64, ge=0, le=1 << 14)
    """Memory of the preloaded modules in MiB, in addition to the sandbox's limit."""
    call_seconds: float = Field(0.0, ge=0, le=600)
    """Least time limit per call in seconds; a larger limit of the sandbox holds."""


MOST_MIB, MOST_COUNT, MOST_CPUS, MOST_SECONDS, MOST_AHEAD = 1 << 24, 1 << 22, 4_096, 1e9, 1_024
"""Upper bounds beyond any machine: a profile may come from another user."""


class Profile(FrozenModel):
    backend: BackendName = BackendName.GVISOR
    mode: Mode
    program: ProgramName | None = None
    """Program of the broker instead of the guests' Python; `mode` is `sandbox` then."""
    userland: bool = False
    """Root with the distribution's shell and small programs, under gVisor also with users including the guest's root.
    Requires mode `sandbox`."""
    packages: SetDigest | None = None
    """Root with this set of packages. Requires mode `sandbox`."""
    preload: tuple[ModuleName, ...] = Field((), max_length=64)
    """Modules imported before the first call, and therefore part of the golden image."""
    memory_mib: int = Field(ge=16, le=MOST_MIB)
    """Memory of the whole sandbox in MiB, including gVisor's own part (about 30 MiB)."""
    process_memory_mib: int = Field(ge=16, le=MOST_MIB)
    """Address space of one process inside, in MiB."""
    pids: int = Field(ge=1, le=MOST_COUNT)
    cpus: float = Field(gt=0, le=MOST_CPUS)
    tmp_mib: int = Field(ge=1, le=MOST_MIB)
    work_mib: int = Field(ge=1, le=MOST_MIB)
    open_files: int = Field(256, ge=32, le=MOST_COUNT)
    output_bytes: int = Field(ge=64, le=MOST_MIB << 20)
    slice_seconds: float = Field(0.25, gt=0, le=MOST_SECONDS)
    ahead: int = Field(0, ge=0, le=MOST_AHEAD)
    """Number of processes forked ahead of demand."""
    most_ahead: int = Field(0, ge=0, le=MOST_AHEAD)
    """Number of processes forked ahead once `ahead` proves too few; at least `ahead`."""
    cpu_seconds: float | None = Field(None, ge=0, le=MOST_SECONDS)
    """CPU time of the sandbox, after which the broker kills it. None: unlimited."""
    life_seconds: float | None = Field(None, ge=0, le=MOST_SECONDS)
    """Wall-clock time of the sandbox from its hand-over, after which the broker kills it. None: unlimited."""

    @property
    def users(self) -> bool:
        """True if the sandbox's programs can run as other users than the ordinary one.

        nsjail's guests have one user of the host each, and no capability to become another.
        """
        return self.userland and self.backend is BackendName.GVISOR

    @model_validator(mode="after")
    def _only_a_sandbox_has_a_userland(self) -> Self:
        if self.userland and (self.mode != "sandbox" or self.program is not None):
            raise ValueError("a userland needs mode `sandbox` and no program")
        if self.packages is not None and (self.mode != "sandbox" or self.program is not None):
            raise ValueError("packages need mode `sandbox` and no program")
        return self

    def worker_limits(self) -> str:
        """Limits that the sandbox's worker enforces itself, formatted as its second argument."""
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
    """Cause of a sandbox's end, as observed by the host."""

    ASKED = "asked"
    """Ended by its holder or the broker."""
    MEMORY = "memory"
    CPU = "cpu"
    EXPIRED = "expired"
    DIED = "died"
    """Ended by itself."""


class BoxUsage(FrozenModel):
    """Resource usage of a sandbox from its control groups; zeros where the kernel reports nothing."""

    cpu_seconds: float = 0.0
    memory_mib: float = 0.0
    peak_memory_mib: float = 0.0
    oom_kills: int = 0
    pids_denied: int = 0
    """Number of new processes that the kernel refused."""
    waits: dict[int, float] = Field(default_factory=dict)
    """Seconds runnable without a CPU, by thread; only on request."""
