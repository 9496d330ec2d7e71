"""Settings of one cluster host, decided on that host."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from runtime.model import FrozenModel
from runtime.sandbox import Tier
from runtime.settings import RuntimeSettings

HOST_VARIABLE = "ASSAY_CLUSTER_HOST"
"""Environment variable with the file of a host's settings, for processes started by Ray."""
DRAINING, IN_USE = "draining", "in-use"
"""File names in a host's folder."""
SESSIONS_PER_INTERPRETER = 64
"""Estimated sessions of the shared tier per interpreter."""


class HostSettings(FrozenModel):
    """Resources that a host of the cluster offers to drivers."""

    name: str
    folder: Path
    """State of this host's node, used by it alone."""
    runtime: RuntimeSettings
    """Runtime settings of the host; the limits are the driver's."""
    lease_seconds: float = Field(20.0, gt=0)
    """Silence after which a driver's sessions are closed, in seconds."""

    @property
    def capacity(self) -> dict[Tier, int]:
        return {
            Tier.SHARED: self.runtime.shared_workers * SESSIONS_PER_INTERPRETER,
            Tier.PROCESS: self.runtime.process_sessions,
            Tier.SANDBOX: self.runtime.sandboxes,
        }

    @property
    def draining(self) -> Path:
        """Path of the file whose presence makes the host refuse new sessions."""
        return self.folder / DRAINING

    @property
    def in_use(self) -> Path:
        """Path of the file that every driver's actor locks (shared)."""
        return self.folder / IN_USE
