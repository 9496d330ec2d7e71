"""Chooses the host of each session. Pure: no clock, no randomness, no I/O.

Invariants: a session has one host for its whole life; a host that drains, is lost or has no places of that tier gets
none; a lost host loses exactly its own sessions. A session goes to the host with the smallest load fraction afterwards,
so hosts fill in proportion to their size. A full host refuses nobody: sessions wait in its own queue, and queues also
grow in proportion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from runtime.errors import InfrastructureError
from runtime.sandbox import Tier

Capacity = Mapping[Tier, int]
"""Number of places for sessions of each tier."""


class Health(StrEnum):
    READY = "ready"
    DRAINING = "draining"
    """Keeps its sessions and gets no new ones."""
    LOST = "lost"


@dataclass
class HostLoad:
    name: str
    capacity: Capacity
    health: Health = Health.READY
    load: Counter[Tier] = field(default_factory=Counter)
    """Live sessions by tier."""

    def filled(self, tier: Tier, more: int = 0) -> Fraction:
        """Returns the fraction of the host's places taken with `more` sessions; above 1 the excess waits."""
        return Fraction(self.load[tier] + more, self.capacity[tier])


def choose(hosts: Iterable[HostLoad], tier: Tier) -> HostLoad | None:
    """Returns the host with the most room for a session of this tier; None if none is eligible.

    Ties go to the host with more room in other tiers, then the larger one, then the first by name.
    """

    def order(host: HostLoad) -> tuple[Fraction, Fraction, int, str]:
        others = sum((host.filled(other) for other in Tier if host.capacity.get(other)), Fraction(0))
        return host.filled(tier, 1), others, -host.capacity[tier], host.name

    fit = [host for host in hosts if host.health is Health.READY and host.capacity.get(tier, 0) > 0]
    return min(fit, key=order, default=None)


class HostPlacement:
    """Assignment of sessions to hosts of a cluster. Both are identified by their owner's names, used once."""

    def __init__(self) -> None:
        self.hosts: dict[str, HostLoad] = {}
        self._homes: dict[int, tuple[HostLoad, Tier]] = {}

    def join(self, name: str, capacity: Capacity) -> None:
        """Adds a new or returning host to the cluster, which starts empty."""
        if name in self.hosts and self.hosts[name].health is not Health.LOST:
            raise ValueError(f"host {name} has already joined")
        self.hosts[name] = HostLoad(name, dict(capacity))

    def drain(self, name: str, draining: bool = True) -> None:
        if self.hosts[name].health is not Health.LOST:
            self.hosts[name].health = Health.DRAINING if draining else Health.READY

    def lose(self, name: str) -> list[int]:
        """Marks a host as lost; returns its sessions, which have no host any more."""
        host = self.hosts[name]
        host.health = Health.LOST
        host.load.clear()
        gone = [session for session, (home, _) in self._homes.items() if home is host]
        for session in gone:
            del self._homes[session]
        return gone

    def open(self, session: int, tier: Tier) -> str:
        """Chooses and returns the host of a new session. Raises InfrastructureError if none is eligible."""
        host = choose(self.hosts.values(), tier)
        if host is None:
            raise InfrastructureError(
                f"no host of the cluster can take a session of the {tier.value} tier",
                hint="see the hosts with `assay cluster status`; add one with `assay cluster join`",
            )
        self.settle(session, host.name, tier)
        return host.name

    def settle(self, session: int, name: str, tier: Tier) -> None:
        """Records a session that must live on a given host, such as a branch of another session there."""
        if session in self._homes:
            raise ValueError(f"session {session} already has a host")
        host = self.hosts[name]
        host.load[tier] += 1
        self._homes[session] = host, tier

    def home(self, session: int) -> str | None:
        """Returns a session's host; None after `close`, and after the host was lost."""
        known = self._homes.get(session)
        return None if known is None else known[0].name

    def moved(self, session: int, tier: Tier) -> None:
        """Records that a session changed its tier on the same host."""
        known = self._homes.get(session)
        if known is not None and known[1] is not tier:
            host, before = known
            host.load[before] -= 1
            host.load[tier] += 1
            self._homes[session] = host, tier

    def close(self, session: int) -> None:
        known = self._homes.pop(session, None)
        if known is not None:
            host, tier = known
            host.load[tier] -= 1
