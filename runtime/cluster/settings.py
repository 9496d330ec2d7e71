"""What a cluster has to be told: by the driver where it is, by each host what it gives."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from runtime.sandbox import Tier
from runtime.settings import RuntimeSettings

PORT = 6379
"""Of the head; the hosts take those up to `PORT + PORTS - 1`, each on its own address."""
PORTS = 64
LOOPBACK = "127.0.0.2"
"""For a cluster of one machine. Ray replaces 127.0.0.1 by the machine's outward address."""
HOST_VARIABLE = "ASSAY_CLUSTER_HOST"
"""Names the file with a host's own settings, for the processes that Ray starts there."""
DRAINING, IN_USE = "draining", "in-use"
"""Files in a host's folder."""
SESSIONS_PER_INTERPRETER = 64
"""Sessions of the shared tier that one interpreter is reckoned to have room for."""


def _interface(text: str) -> str:
    address = IPv4Address(text)  # Ray's servers choose between 0.0.0.0 and :: by other things than the node's address
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"{text} is not the address of one interface")
    if text == "127.0.0.1":
        raise ValueError(f"Ray replaces {text} by the machine's outward address; {LOOPBACK} stays on this machine")
    return text


def _address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 1024 <= int(port) <= 65535 - PORTS:
        raise ValueError(f"{text!r} is not ADDRESS:PORT with a port from 1024 to {65535 - PORTS}")
    _interface(host)
    return text


Interface = Annotated[str, AfterValidator(_interface)]
Address = Annotated[str, AfterValidator(_address)]


class ClusterSettings(BaseModel):
    """How a driver finds its hosts. The driver's own machine must be one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: Address
    """ADDRESS:PORT of the head."""
    interface: Interface = LOOPBACK
    """The address of this machine in the cluster; nothing listens on another."""
    token: Path
    """A file that only its owner can read. Who knows what is in it can run anything on every host."""
    connect_seconds: float = Field(60.0, gt=0)
    """How long to wait for the cluster, and for a host to say what it has."""
    lost_seconds: float = Field(8.0, ge=2)
    """A host that was silent for so long is lost, and its sessions with it."""
    retry_seconds: float = Field(3.0, gt=0)
    """A host that was lost is asked again after so long."""


class HostSettings(BaseModel):
    """What one host gives, decided there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        """Locked (shared) by every driver's actor."""
        return self.folder / IN_USE
