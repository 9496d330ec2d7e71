"""Decides which host gets the next session. Pure: no clock, no chance, no I/O.

What always holds: a session has one host from its first moment to its last; a host that drains, is lost or has no
places of that kind gets none; a lost host takes exactly its own sessions with it. Sessions go to the host that is
fullest by the smallest part afterwards, so hosts fill in proportion to their size. Being full refuses nobody: who
comes then waits in his host's own queue, and the queues grow in proportion too.
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
"""Sessions of each tier that a host has places for."""


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
    """Sessions that live there, by tier."""

    def filled(self, tier: Tier, more: int = 0) -> Fraction:
        """Computes the part of its places that would be taken; beyond 1 the rest waits."""
        return Fraction(self.load[tier] + more, self.capacity[tier])


def choose(hosts: Iterable[HostLoad], tier: Tier) -> HostLoad | None:
    """Finds the host with the most room for one more session of this tier; None when none may have it.

    Between equals goes the one with more room in the other tiers, then the larger one, then the first by name.
    """

    def order(host: HostLoad) -> tuple[Fraction, Fraction, int, str]:
        others = sum((host.filled(other) for other in Tier if host.capacity.get(other)), Fraction(0))
        return host.filled(tier, 1), others, -host.capacity[tier], host.name

    fit = [host for host in hosts if host.health is Health.READY and host.capacity.get(tier, 0) > 0]
    return min(fit, key=order, default=None)


class HostPlacement:
    """Knows who lives where. Hosts and sessions are known by names that their owner chooses and uses once."""

    def __init__(self) -> None:
        self.hosts: dict[str, HostLoad] = {}
        self._homes: dict[int, tuple[HostLoad, Tier]] = {}

    def join(self, name: str, capacity: Capacity) -> None:
        """A host is there, or is there again: it begins empty."""
        if name in self.hosts and self.hosts[name].health is not Health.LOST:
            raise ValueError(f"host {name} has joined already")
        self.hosts[name] = HostLoad(name, dict(capacity))

    def drain(self, name: str, draining: bool = True) -> None:
        if self.hosts[name].health is not Health.LOST:
            self.hosts[name].health = Health.DRAINING if draining else Health.READY

    def lose(self, name: str) -> list[int]:
        """The host is gone; which sessions went with it. They have no home any more."""
        host = self.hosts[name]
        host.health = Health.LOST
        host.load.clear()
        gone = [session for session, (home, _) in self._homes.items() if home is host]
        for session in gone:
            del self._homes[session]
        return gone

    def open(self, session: int, tier: Tier) -> str:
        """Finds a home for a new session. Raises InfrastructureError when no host can have it."""
        host = choose(self.hosts.values(), tier)
        if host is None:
            raise InfrastructureError(
                f"no host of the cluster can take a session of the {tier.value} tier",
                hint="`assay cluster status` shows the hosts; each joins with `assay cluster join`",
            )
        self.settle(session, host.name, tier)
        return host.name

    def settle(self, session: int, name: str, tier: Tier) -> None:
        """Notes a session that has to live on this host, such as a branch of one that does."""
        if session in self._homes:
            raise ValueError(f"session {session} has a home already")
        host = self.hosts[name]
        host.load[tier] += 1
        self._homes[session] = host, tier

    def home(self, session: int) -> str | None:
        """None after `close`, and when its host was lost."""
        known = self._homes.get(session)
        return None if known is None else known[0].name

    def moved(self, session: int, tier: Tier) -> None:
        """The session takes a place of another tier now, on the same host."""
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
