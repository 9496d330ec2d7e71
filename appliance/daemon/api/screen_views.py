"""Read models that only the screens of `assay tui` use: machine, curves, lineage, pages of the audit log.

Invariants: read-only, and only the shown part is read: a page costs the same however much is on record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from appliance.client.screen import AuditBefore, AuditLine, CycleCurves, MachineView, ModelLineage
from appliance.config.places import broker_socket
from appliance.daemon.contract.errors import BrokenError, NotThereError
from appliance.daemon.coordination.core import Core
from appliance.daemon.machine.usage import MachineWatch
from appliance.daemon.views.curves import step_figures
from appliance.daemon.views.ledger_views import checkpoint_views_of, cycle_named
from appliance.records.checkpoints import Checkpoint
from policies import audit

CHUNK = 1 << 16
MOST_BYTES = 20_000
"""Largest log entry sent with its content, in bytes."""


class ScreenViews:
    """Read models for the TUI's screens; thread-safe."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._machine = MachineWatch(core.data, broker_socket(core.settings, core.data))

    def machine(self) -> MachineView:
        worker = self._core.supervisor.status.pid
        return self._machine.view({"core": os.getpid(), **({"worker": worker} if worker is not None else {})})

    def curves(self, name: str) -> CycleCurves:
        """Returns a cycle's training curves. Raises NotThereError, AmbiguousPrefixError."""
        cycle = cycle_named(self._core.ledger, name)
        return CycleCurves(cycle=cycle.id, steps=step_figures(self._core.ledger, cycle))

    def lineage(self, name: str, limit: int) -> ModelLineage:
        """Returns a checkpoint and its ancestors. Raises NotThereError."""
        ledger = self._core.ledger
        models: list[Checkpoint] = []
        found = ledger.checkpoint(self._core.governance.digest_of(name))
        while found is not None and len(models) < limit:
            models.append(found)
            found = ledger.checkpoint(found.parent) if found.parent is not None else None
        if not models:
            raise NotThereError(f"no such checkpoint: {name!r}", hint="`assay model ls` lists them")
        return ModelLineage(models=tuple(checkpoint_views_of(ledger, models)), cut=found is not None)

    def audit(self, where: AuditBefore, limit: int) -> list[AuditLine]:
        """Returns log entries, newest first. Raises BrokenError for an unreadable log."""
        before = where.before
        entries: list[AuditLine] = []
        skip = 0
        for line in lines_from_the_end(self._core.ledger.audit.path):
            if skip > 0:
                skip -= 1
                continue
            if len(entries) >= limit:
                break
            try:
                entry = audit.read(line + b"\n")
            except ValueError as error:
                raise BrokenError(f"the audit log cannot be read: {error}", hint="`assay audit verify`") from error
            if before is not None and entry.number >= before:
                skip = entry.number - before
                continue
            what = entry.what if len(line) <= MOST_BYTES else {"bytes": len(line), "holds": ", ".join(entry.what)}
            entries.append(AuditLine(number=entry.number, at=entry.at, kind=entry.kind, what=what))
        return entries


def lines_from_the_end(path: Path) -> Iterator[bytes]:
    """Yields the complete lines of a file, last first; a line still being written is left out."""
    with path.open("rb") as source:
        place, rest, first = source.seek(0, os.SEEK_END), b"", True
        while place > 0:
            size = min(CHUNK, place)
            place -= size
            source.seek(place)
            lines = (source.read(size) + rest).split(b"\n")
            rest = lines[0]
            whole = lines[1:-1] if first else lines[1:]
            first = first and len(lines) == 1
            yield from (line for line in reversed(whole) if line)
        if rest and not first:
            yield rest
