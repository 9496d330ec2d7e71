"""What the audit log says is in force, folded entry by entry: the aliases, and which records count, each by its digest.

What always holds: a record counts from the entry that names it, in the words of that entry, and nothing else makes one
count; the order of records is the order of their entries. So a list of records follows from the log, and the ledger
only lends the text to each. Pure: entries come in whose chain was checked, in their order, each once.

An entry that makes a record count has `row`: {"table", "key", "sha256", "group"}; `ledger.adopted` has many of them in
`rows`, for what was there before the log named records. Of a checkpoint it has "attestation", too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from policies.audit import AuditEntry

BEGIN, ADOPTED, ALIASES = "log.begin", "ledger.adopted", "aliases"
CERTIFICATE = "certificate"
"""Of a taskset: `taskset`, what it makes (`made`), and whether it `holds`."""
KEY_ADMITTED, KEY_REVOKED = "key.admitted", "key.revoked"
POLICY_FIRST_USE, POLICY_SIGNED = "policy.first_use", "policy.signed"
STATEMENTS = frozenset({BEGIN, KEY_ADMITTED, KEY_REVOKED, POLICY_FIRST_USE, POLICY_SIGNED})
"""Kinds whose entries are kept whole: whose keys count, and which policy."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What the newest entry about a record says of it."""

    sha256: str
    """Of the text that the ledger keeps."""
    group: str
    """What lists of them are asked for by: a candidate, a cycle, weights."""
    number: int
    """Of the first entry about it."""


@dataclass
class InForce:
    """Grows by `add`, and by nothing else."""

    aliases: dict[str, str | None] = field(default_factory=dict)
    moves: list[dict[str, str | None]] = field(default_factory=list)
    """Of aliases, oldest first: the names that each set, `reason`, `at`."""
    records: dict[str, dict[str, Bound]] = field(default_factory=dict)
    """By table and key, in the order in which they came to count."""
    attestations: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the attestation that each checkpoint came on record with."""
    statements: list[AuditEntry] = field(default_factory=list)
    earlier: list[AuditEntry] = field(default_factory=list)
    """Decisions and approvals that an earlier version logged without naming their rows; none once `adopted`."""
    certificates: dict[str, str] = field(default_factory=dict)
    """By taskset: the version and digest that it was last certified in; nothing of one that then failed."""
    adopted: bool = False
    """Whether the log names every record that counts; it then has a head outside the data folder, too."""

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
        elif not self.adopted and (entry.kind in ("decision", "word") or entry.kind.startswith("canary.")):
            self.earlier.append(entry)
        if what.get("adopted") is True and entry.kind in (BEGIN, ADOPTED):
            self.adopted = True
            self.earlier.clear()

    def bound(self, table: str, key: str) -> Bound | None:
        return self.records.get(table, {}).get(key)

    def keys(self, table: str, group: str | None = None) -> list[str]:
        """Newest first; those of one group if it is given."""
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
