"""Tracks which hosts are present, from gateway frames and silence. Pure: time is an argument, no I/O.

Invariants: a host joins once and is lost once, alternately, and the placement knows; its reports are passed on only in
between; a host that is given up is notified. A host is given up if it was silent for too long, breaks the protocol,
turns us away, takes another's name, or drains without sessions of ours.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.broker.messages import WireFailure
from runtime.cluster import messages as m
from runtime.cluster.messages import Frame, FrameKind
from runtime.cluster.placement import HostPlacement
from runtime.cluster.settings import INSTALL
from runtime.errors import InfrastructureError, RefusedError, SandboxError
from runtime.settings import ClusterSettings

log = logging.getLogger(__name__)
OF_NOW = frozenset(["sessions", "waiting"])
"""Gauges, which are zero for a lost host."""


class HostLost(NamedTuple):
    node: str
    name: str
    """Name of the host; empty if it never joined."""
    what: str
    reason: str
    again: bool
    """True if it never joined, for the same reason as before."""


class Answered(NamedTuple):
    node: str
    name: str
    """Name of the host."""
    report: m.Did | m.CallFailed


Event = HostLost | Answered | Frame
"""Event of the roster; a frame is to be sent."""


@dataclass
class HostPeer:
    """Actor on one host of the cluster, from its first sign of life to its last."""

    node: str
    address: str
    since: float
    received: float | None = None
    """Time of its last message; None before the first."""
    name: str = ""
    """Empty until its welcome."""
    stats: dict[str, float] = field(default_factory=dict)


class Roster:
    def __init__(self, settings: ClusterSettings, hello: m.DriverHello, placement: HostPlacement) -> None:
        self._settings, self._hello, self._placement = settings, hello, placement
        self._peers: dict[str, HostPeer] = {}
        self._unused: dict[str, str] = {}
        """Reasons why hosts did not join at their last attempt, by address."""
        self._past: Counter[str] = Counter()
        """Counters of lost hosts."""
        self._expected: int | None = None
        """Hosts of the first listing that have neither joined nor been given up; None before it."""
        self.nodes: dict[str, str] = {}
        """Node ids of joined hosts, by name."""
        self.problem: SandboxError | None = None
        """Last error that explains a missing host."""
        self.barred = False
        """True if the cluster permanently rejects us."""

    @property
    def settled(self) -> bool:
        """True if every initially listed host has joined the cluster or failed to."""
        return self._expected is not None and self._expected <= 0

    def stats(self) -> Counter[str]:
        total = Counter(self._past)
        for peer in self._peers.values():
            total.update(peer.stats)
        return total

    def received(self, frame: Frame, now: float) -> Iterator[Event]:
        """Handles a frame from the gateway: yields the events that follow for hosts and calls."""
        peer = self._peers.get(frame.host)
        if frame.kind is FrameKind.NODES:
            self._expected = int(frame.body)
        elif frame.kind is FrameKind.REFUSED:
            self.problem = WireFailure.model_validate_json(frame.body).exception()
            self.barred = isinstance(self.problem, RefusedError)
        elif frame.kind is FrameKind.UP:
            self._peers[frame.host] = HostPeer(frame.host, frame.body.decode(), now)
            yield Frame(FrameKind.PACKET, frame.host, m.packet([self._hello]))
        elif peer is not None and frame.kind is FrameKind.DOWN:
            if not peer.name:
                self.problem = InfrastructureError(
                    f"the host at {peer.address} fails on contact: {frame.body.decode()}", hint=INSTALL
                )
            yield self._gone(peer, frame.body.decode())
        elif peer is not None:
            yield from self._packet(peer, frame.body, now)

    def silent(self, now: float) -> Iterator[Event]:
        """Gives up hosts that were silent for too long; yields the events that follow."""
        for peer in list(self._peers.values()):
            if peer.received is None and now - peer.since > self._settings.connect_seconds:
                yield from self._give_up(peer, f"no answer for {now - peer.since:.0f} s")
            elif peer.received is not None and now - peer.received > self._settings.lost_seconds:
                yield from self._give_up(peer, f"silent for {now - peer.received:.0f} s")

    def unlinked(self, reason: SandboxError | None) -> Iterator[Event]:
        """Handles the loss of the gateway, and thus of every host; yields the events that follow."""
        self.problem = reason or self.problem
        for peer in list(self._peers.values()):
            yield self._gone(peer, "this machine has lost the cluster")
        self._expected = None

    def _packet(self, peer: HostPeer, body: bytes, now: float) -> Iterator[Event]:
        peer.received = now
        try:
            reports = m.reports(body)
        except ValueError:
            yield from self._give_up(peer, "protocol violation")
            return
        for report in reports:
            if isinstance(report, m.HostWelcome) and peer.name:
                yield from self._give_up(peer, "protocol violation")
            elif isinstance(report, m.HostWelcome):
                yield from self._welcome(peer, report)
            elif isinstance(report, m.Turned):
                self.problem = report.failure.exception()
                yield from self._give_up(peer, report.failure.message)
            elif isinstance(report, m.Pulse):
                peer.stats = peer.stats if report.stats is None else report.stats
                if peer.name:
                    self._placement.drain(peer.name, report.draining)
                    if report.draining and not self._placement.hosts[peer.name].load.total():
                        yield from self._give_up(peer, "it has left the cluster")
            else:
                yield Answered(peer.node, peer.name, report)
            if peer.node not in self._peers:
                return

    def _welcome(self, peer: HostPeer, welcome: m.HostWelcome) -> Iterator[Event]:
        earlier = self._peers.get(self.nodes.get(welcome.name, ""))
        if earlier is not None and earlier.address != peer.address:
            self.problem = InfrastructureError(
                f"the hosts at {earlier.address} and {peer.address} are both called {welcome.name}",
                hint="give each its own name with `assay cluster join --name NAME`",
            )
            yield from self._give_up(peer, str(self.problem))
            return
        if earlier is not None:
            yield from self._give_up(earlier, "it returned before its loss was noticed")
        peer.name = welcome.name
        self.nodes[peer.name] = peer.node
        self._settle_one()
        self._placement.join(peer.name, welcome.capacity)
        log.info("host %s of the cluster is there: %s", peer.name, welcome.capacity)

    def _give_up(self, peer: HostPeer, reason: str) -> Iterator[Event]:
        """Drops a host from the roster; the gateway ends its actor and retries later. Yields the events that follow."""
        yield self._gone(peer, reason)
        yield Frame(FrameKind.DOWN, peer.node)

    def _gone(self, peer: HostPeer, reason: str) -> HostLost:
        del self._peers[peer.node]
        self._past.update({name: value for name, value in peer.stats.items() if name not in OF_NOW})
        if peer.name:
            del self.nodes[peer.name]
            self._placement.lose(peer.name)
        else:
            self._settle_one()
        again = not peer.name and self._unused.get(peer.address) == reason
        if peer.name:
            self._unused.pop(peer.address, None)
        else:
            self._unused[peer.address] = reason
        what = f"host {peer.name or peer.address} of the cluster"
        log.log(logging.DEBUG if again else logging.WARNING, "%s is lost: %s", what, reason)
        return HostLost(peer.node, peer.name, what, reason, again)

    def _settle_one(self) -> None:
        if self._expected is not None:
            self._expected -= 1
