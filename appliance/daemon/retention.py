"""Retention: after how many nights the tokens of training rollouts go, by hand or by itself after each cycle.

What always holds: what may go is `appliance.ledger.retention`'s to say; what went is an event and an entry of the audit
log, which is written first.
"""

from __future__ import annotations

from appliance.client.retention import Prune, Pruned
from appliance.daemon.events import EventLog
from appliance.daemon.trust import Trust
from appliance.ledger.sqlite import SqliteLedger

MOST_CYCLES = 100_000


class Retention:
    """Its methods may be called from any thread. `nights` is what the configuration says; None keeps everything."""

    def __init__(self, ledger: SqliteLedger, trust: Trust, events: EventLog, nights: int | None) -> None:
        self._ledger, self._trust, self._events, self._nights = ledger, trust, events, nights
        self._done: set[str] = set()

    def apply(self) -> None:
        """Does what the configuration says."""
        if self._nights is not None:
            self.prune(Prune(nights=self._nights))

    def prune(self, wanted: Prune) -> Pruned:
        """Raises LedgerError and AuditError; what was dropped by then is dropped."""
        ended = [cycle.id for cycle in self._ledger.cycles(limit=MOST_CYCLES) if cycle.state.ended]
        old = [name for name in ended[wanted.nights :] if name not in self._done]
        found = self._ledger.drop_tokens(old, dry_run=True)
        if found.rollouts and not wanted.dry_run:
            self._trust.log("ledger.pruned", cycles=str(len(old)), rollouts=str(found.rollouts), oldest=old[-1])
            found = self._ledger.drop_tokens(old)
            mib = found.bytes / 2**20
            self._events.add(
                "retention", f"the tokens of {found.rollouts} training rollouts were dropped: {mib:.1f} MiB are free"
            )
        if not wanted.dry_run:
            self._done.update(old)
        return Pruned(cycles=tuple(old), rollouts=found.rollouts, bytes=found.bytes, dry_run=wanted.dry_run)
