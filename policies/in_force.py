"""Folds audit log entries into the state in force: aliases, and which records count, each by its digest.

Invariants: a record counts from the entry that names it, with that entry's content, and for no other reason; records
are ordered like their entries. The log thus determines the list of records, and the ledger only supplies their text.
Pure: entries arrive verified, in order, each once.

An entry that makes a record count has `row`: {"table", "key", "sha256", "group"}; `ledger.adopted` has many in `rows`:
`assay audit renew` lists with it what the ledger has. A checkpoint's row also has "attestation".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from policies.audit import AuditEntry

BEGIN, ADOPTED, ALIASES = "log.begin", "ledger.adopted", "aliases"
CERTIFICATE = "certificate"
"""Taskset certificate entry: `taskset`, its digest (`made`), and `holds`."""
KEY_ADMITTED, KEY_REVOKED = "key.admitted", "key.revoked"
POLICY_FIRST_USE, POLICY_SIGNED = "policy.first_use", "policy.signed"
STATEMENTS = frozenset({BEGIN, KEY_ADMITTED, KEY_REVOKED, POLICY_FIRST_USE, POLICY_SIGNED})
"""Entry kinds kept whole: they determine valid keys and the policy."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Newest audit log entry about a record of the ledger."""

    sha256: str
    """SHA-256 of the text that the ledger keeps."""
    group: str
    """Lookup key for lists of records: a candidate, a cycle or weights."""
    number: int
    """Number of the first entry about the record."""


@dataclass
class InForce:
    """State that the audit log vouches for, built entry by entry. Changes only through `add`."""

    aliases: dict[str, str | None] = field(default_factory=dict)
    moves: list[dict[str, str | None]] = field(default_factory=list)
    """Alias changes, oldest first: the names set, `reason`, `at`."""
    records: dict[str, dict[str, Bound]] = field(default_factory=dict)
    """Records by table and key, in the order in which they came into force."""
    attestations: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each checkpoint's attestation, by checkpoint."""
    statements: list[AuditEntry] = field(default_factory=list)
    certificates: dict[str, str] = field(default_factory=dict)
    """Last certified version and digest by taskset; absent after a failed certification."""
    adopted: bool = False
    """True if the log names every record that counts, false while a renewal is unfinished; a head outside the data
    folder then exists too."""

    def add(self, entry: AuditEntry) -> None:
        what: dict[str, Any] = entry.what
        if entry.kind in STATEMENTS:
            self.statements.append(entry)
        if entry.kind == ALIASES:
            self.aliases |= what["after"]
            self.moves.append({**what["after"], "reason": what["reason"], "at": entry.at})
        elif entry.kind == ADOPTED:
            self.aliases |= what["aliases"]
            self._bind(what["rows"], entry.number)
        elif "row" in what:
            self._bind([what["row"]], entry.number)
        elif entry.kind == CERTIFICATE:
            self.certificates.pop(what["taskset"], None)
            if what["holds"] is True:
                self.certificates[what["taskset"]] = what["made"]
        if what.get("adopted") is True and entry.kind in (BEGIN, ADOPTED):
            self.adopted = True

    def bound(self, table: str, key: str) -> Bound | None:
        return self.records.get(table, {}).get(key)

    def keys(self, table: str, group: str | None = None) -> list[str]:
        """Returns the keys of a ledger table's records in force, newest first, optionally of one group."""
        known = self.records.get(table, {})
        return [key for key in reversed(known) if group is None or known[key].group == group]

    def _bind(self, rows: Iterable[dict[str, str]], number: int) -> None:
        for row in rows:
            known = self.records.setdefault(row["table"], {})
            before = known.get(row["key"])
            first = number if before is None else before.number
            known[row["key"]] = Bound(row["sha256"], row["group"], first)
            if row.get("attestation"):
                self.attestations[row["key"]] = row["attestation"]
