"""Reads the model behind each alias from the audit log, beside the daemon that writes it.

Invariants: an alias is what a chain of entries signed by the daemon's key says, confirmed by a head outside the data
folder; if the check fails, no alias is returned. The ledger's own alias table, which anyone with write access to the
data folder can change, is never read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from appliance.audit.kept_heads import KeptHeads
from appliance.audit.log import AuditBroken, AuditError, log_file
from appliance.audit.machine_keys import public_file
from policies import audit
from policies.audit import AuditEntry, Head
from policies.envelopes import PublicKey
from policies.in_force import InForce

HINT = "`assay audit verify` says what does not hold"


class LoggedAliases:
    """Looks up models by alias in the audit log. Each query reads what was appended, or the whole log if the file was
    replaced."""

    def __init__(self, data: Path, kept: Sequence[Path] = ()) -> None:
        """Creates a reader of the data folder's audit log, without opening it. `kept` are the files outside with the
        log's head."""
        self._path, self._public, self._kept = log_file(data), public_file(data, "daemon"), KeptHeads(kept)
        self._forget()

    def alias(self, name: str) -> str | None:
        """Returns the digest of the model behind an alias, as the audit log has it now. None if the alias is unset or
        the log is missing. Raises AuditError."""
        try:
            self._read()
        except FileNotFoundError:
            self._forget()
        except (OSError, ValueError) as error:
            raise AuditError(f"the audit log {self._path} cannot be read: {error}", hint=HINT) from error
        return self._in_force.aliases.get(name)

    def _forget(self) -> None:
        self._in_force, self._file, self._offset = InForce(), (0, 0), 0
        self._head: Head | None = None

    def _read(self) -> None:
        with self._path.open("rb") as source:
            status = os.fstat(source.fileno())
            if (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset:
                self._forget()
            if status.st_size == self._offset:
                return
            source.seek(self._offset)
            # A line without its end is being written.
            lines = [line for line in source if line.endswith(b"\n")]
        if not lines:
            return
        public = PublicKey.read(self._public.read_text(encoding="utf-8")).key()
        entries: list[AuditEntry] = []
        found = audit.check(lines, public, signatures=False, entries=entries, after=self._head)
        problem = (found.bad, found.problem) if found.bad is not None else None
        if problem is None and self._head is None:
            problem = self._kept.problem(lines, public, expected=False)
        if problem is not None:
            self._forget()
            number, why = problem
            raise AuditBroken(f"the audit log {self._path} does not hold: entry {number}: {why}", number, hint=HINT)
        for entry in entries:
            self._in_force.add(entry)
        self._head, self._file = found.head, (status.st_dev, status.st_ino)
        self._offset += sum(map(len, lines))
