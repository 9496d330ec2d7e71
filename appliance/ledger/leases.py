"""Leases work to workers: a commit counts only while the lease it was made under is valid.

Invariants: each lease has a growing fencing token (`attempt`), a deadline on a clock that cannot be set, and the boot
it was given in. Every transaction of a worker checks its leases first, inside the transaction: a worker past its
deadline, or whose work was leased again, writes nothing (`LeaseLostError`). Only the core gives leases, and only the
core writes without one. Consecutive infrastructure deaths per work are stored here and survive a restart; a machine
that went down counts as one, an orderly end of the core does not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.sqlite import insert as insert_or

from appliance.ledger.database import Database
from appliance.ledger.ledger import LedgerError
from appliance.ledger.tables import LEASES
from appliance.system.clock import RunningClock

LEASE_SECONDS = 60.0
"""Lifetime of a lease in seconds; workers renew theirs every `ledger.RENEW_SECONDS`."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class LeaseLostError(LedgerError):
    """A worker is too late: its lease expired, or its work was leased to another worker."""


@dataclass
class Holder:
    """A worker as the core sees it: its leases by fencing token, and whether it may get more."""

    owner: str
    """Name for messages."""
    may_claim: Callable[[], bool] = lambda: True
    may_wait: Callable[[], bool] = lambda: True
    """True if the worker may wait for a future job."""
    held: dict[str, int] = field(default_factory=dict)
    last: str = ""
    """Work that was leased to the worker last."""
    sent_away: bool = False
    """True once the worker asked for work and was told to end, because nothing may begin now."""
    gone: bool = False
    """True once the process has ended: the worker gets nothing more."""


class Leases:
    """Leases of a ledger's work to workers, thread-safe; `acting` sets the holder on whose behalf a thread works."""

    def __init__(self, database: Database, clock: Callable[[], float] | None = None) -> None:
        self._database = database
        self.clock = clock or RunningClock()
        self.seconds = LEASE_SECONDS
        self._acting = threading.local()
        self._boot = _BOOT.read_text().strip() if _BOOT.exists() else ""
        database.fence = self._check

    @property
    def holder(self) -> Holder | None:
        """The worker on whose behalf this thread writes to the ledger; None for the core itself."""
        return getattr(self._acting, "holder", None)

    @contextmanager
    def acting(self, holder: Holder | None) -> Iterator[None]:
        """Makes every ledger write of this thread inside the block depend on the holder's leases."""
        before, self._acting.holder = self.holder, holder
        try:
            yield
        finally:
            self._acting.holder = before

    def take(self, work: str, holder: Holder) -> None:
        """Leases a cycle or job to this holder exclusively; an earlier holder loses it."""
        row = {
            "work": work,
            "attempt": 1,
            "owner": holder.owner,
            "boot": self._boot,
            "deadline": self.clock() + self.seconds,
            "deaths": 0,
        }
        given = {name: row[name] for name in ("owner", "boot", "deadline")}
        put = insert_or(LEASES).on_conflict_do_update(
            index_elements=["work"], set_={**given, "attempt": LEASES.c.attempt + 1}
        )
        with self.acting(None), self._database.writing() as connection:
            connection.execute(put, row)
            holder.held[work] = self._row(connection, work).attempt
        holder.last = work

    def holds(self, work: str) -> bool:
        """True if this thread may write about the cycle or job: for the core, or with a lease."""
        return self.holder is None or work in self.holder.held

    def renew(self) -> None:
        """Extends the deadlines of the calling worker's leases. Raises LeaseLostError if one is lost."""
        holder = self.holder
        if holder is None or not holder.held:
            return
        with self._database.writing() as connection:
            mine = LEASES.c.work.in_(holder.held)
            connection.execute(update(LEASES).where(mine).values(deadline=self.clock() + self.seconds))

    def release(self, holder: Holder, *, in_order: bool = False) -> None:
        """Ends the leases that the worker still has. `in_order` means that it finished by itself: the count of
        consecutive deaths starts again."""
        held, holder.held = holder.held, {}
        if not held:
            return
        ended = {"deadline": None, "deaths": 0} if in_order else {"deadline": None}
        with self.acting(None), self._database.writing() as connection:
            for work, attempt in held.items():
                mine = (LEASES.c.work == work) & (LEASES.c.attempt == attempt)
                connection.execute(update(LEASES).where(mine).values(**ended))

    def overdue(self, holder: Holder) -> str:
        """Returns the cycle or job whose lease the worker failed to renew in time; empty if none."""
        now = self.clock()
        with self._database.reading() as connection:
            for work, attempt in holder.held.copy().items():
                row = self._row(connection, work)
                if row is not None and row.attempt == attempt and row.deadline is not None and row.deadline < now:
                    return work
        return ""

    def died(self, work: str, *, progress: bool) -> int:
        """Counts an infrastructure death at a cycle or job, ends its lease, and returns the count. After `progress` it
        restarts at 1."""
        with self.acting(None), self._database.writing() as connection:
            first = insert_or(LEASES).values(work=work, attempt=0, owner="", boot="", deadline=None, deaths=0)
            connection.execute(first.on_conflict_do_nothing())
            deaths = 1 if progress else LEASES.c.deaths + 1
            connection.execute(update(LEASES).where(LEASES.c.work == work).values(deaths=deaths, deadline=None))
            return int(self._row(connection, work).deaths)

    def deaths(self, work: str) -> int:
        with self._database.reading() as connection:
            row = self._row(connection, work)
            return 0 if row is None else int(row.deaths)

    def revive(self, work: str) -> None:
        """Resets the count of infrastructure deaths of a cycle or job."""
        with self.acting(None), self._database.writing() as connection:
            connection.execute(update(LEASES).where(LEASES.c.work == work).values(deaths=0))

    def open(self, unended: Sequence[str]) -> None:
        """Drops all leases of an earlier process, and forgets ended work; requires the data folder's lock.

        A machine that went down while work was leased counts as a death at this work.
        """
        with self._database.writing() as connection:
            went_down = LEASES.c.deadline.is_not(None) & (LEASES.c.boot != self._boot)
            connection.execute(update(LEASES).where(went_down).values(deaths=LEASES.c.deaths + 1))
            connection.execute(update(LEASES).values(deadline=None))
            for row in connection.execute(select(LEASES.c.work)).all():
                if row.work not in unended:
                    connection.execute(delete(LEASES).where(LEASES.c.work == row.work))

    def _row(self, connection: Connection, work: str) -> Any:
        return connection.execute(select(LEASES).where(LEASES.c.work == work)).first()

    def _check(self, connection: Connection) -> None:
        """Raises LeaseLostError unless all leases of the writing worker are valid. Runs inside its transaction."""
        holder = self.holder
        if holder is None:
            return
        now = self.clock()
        for work, attempt in holder.held.items():
            row = self._row(connection, work)
            if row is None or row.attempt != attempt or row.deadline is None or row.boot != self._boot:
                _refuse(holder, work, "another worker has it")
            if row.deadline < now:
                _refuse(holder, work, "it was not renewed in time")


def _refuse(holder: Holder, work: str, why: str) -> None:
    raise LeaseLostError(
        f"{holder.owner} has lost its lease of {work}: {why}; nothing of this was written",
        hint="another worker resumes from the last record",
    )
