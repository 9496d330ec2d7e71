"""Holds what one host of a cluster gives, decided there."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from runtime.model import FrozenModel
from runtime.sandbox import Tier
from runtime.settings import RuntimeSettings

HOST_VARIABLE = "ASSAY_CLUSTER_HOST"
"""Names the file with a host's own settings, for the processes that Ray starts there."""
DRAINING, IN_USE = "draining", "in-use"
"""Files in a host's folder."""
SESSIONS_PER_INTERPRETER = 64
"""Sessions of the shared tier that one interpreter is reckoned to have room for."""


class HostSettings(FrozenModel):
    """Holds what a host gives to the drivers that ask it."""

    name: str
    folder: Path
    """State of this host's part of the cluster; belongs to it alone."""
    runtime: RuntimeSettings
    """Limits are the driver's; the rest counts."""
    lease_seconds: float = Field(20.0, gt=0)
    """A driver that was silent for so long is gone: its sessions are closed."""

    @property
    def capacity(self) -> dict[Tier, int]:
        return {
            Tier.SHARED: self.runtime.shared_workers * SESSIONS_PER_INTERPRETER,
            Tier.PROCESS: self.runtime.process_sessions,
            Tier.SANDBOX: self.runtime.sandboxes,
        }

    @property
    def draining(self) -> Path:
        """While this file is there, the host takes no new sessions."""
        return self.folder / DRAINING

    @property
    def in_use(self) -> Path:
        """Names the file that every driver's actor has locked (shared)."""
        return self.folder / IN_USE
