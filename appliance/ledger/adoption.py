"""Reconciles a ledger with its audit log: after tampering, and when `assay audit renew` begins a new log.

Invariants: a renewed log lists every record of the ledger in the entry `ledger.adopted`; no other log takes a record
from the ledger. After tampering, aliases and records that the log carries whole are restored from the log, rows unknown
to the log are removed, and the entry `ledger.put_right` lists the differences; records of which the log has only a
digest cannot be restored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, JsonValue
from sqlalchemy import Table, delete, select

from appliance.audit.machine_keys import attested
from appliance.ledger import tables
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.ledger.comparison import KINDS, bound_row, digest_in, steps_digest
from appliance.ledger.rows import payload_of, put_row
from appliance.ledger.sqlite import put_aliases
from appliance.records.cycles import Checkpoint
from appliance.records.evaluations import Approval
from appliance.records.jobs import Job
from appliance.records.nights import Canary
from policies.contract.decision import Decision
from policies.in_force import ADOPTED

EMPTY = (
    "restore the log from a copy; if it is lost, `assay audit renew` begins another one from the ledger, and forgets "
    "all known keys"
)
UNLISTED = "`assay audit renew` was interrupted: run it again"
SHAPES: dict[str, type[BaseModel]] = {
    "checkpoints": Checkpoint,
    "decisions": Decision,
    "approvals": Approval,
    "canaries": Canary,
}
AT_ONCE = 4_000
"""Records per entry, which keeps an entry below the line limit."""
JOBS, CYCLES = 2_000, 20
"""Newest jobs and cycles whose ends, or steps, are adopted: canaries and nights look back no further."""
COPY_BACK = (
    "restore an earlier copy of ledger.sqlite3; or, after inspecting it, begin a new log from the ledger: "
    "`assay audit renew`"
)


def require_log(ledger: AuditedLedger) -> None:
    """Raises TamperedError if the log is empty but the ledger is not (the log was removed), or if the log does not
    list the ledger's records (a renewal was interrupted)."""
    if ledger.audit.head is not None and not ledger.in_force.adopted:
        raise _differs(f"the audit log {ledger.audit.path} does not list the ledger's records", UNLISTED)
    looked_at = (tables.ALIASES, tables.JOBS, *_tables().values())
    if ledger.audit.head is None and any(ledger.rows(select(table).limit(1)) for table in looked_at):
        raise _differs(f"the audit log {ledger.audit.path} is empty, but the ledger has records", EMPTY)


def adopt(ledger: AuditedLedger, note: str) -> None:
    """Records the ledger's present aliases and rows in the log that `assay audit renew` began, so that they count
    there."""
    aliases: dict[str, JsonValue] = {
        row.name: row.manifest for row in ledger.rows(select(tables.ALIASES).order_by(tables.ALIASES.c.name))
    }
    rows = list(_all_rows(ledger))
    parts: list[list[JsonValue]] = [rows[at : at + AT_ONCE] for at in range(0, len(rows), AT_ONCE)] or [[]]
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        ledger.audit.append(ADOPTED, note=note, aliases=aliases if last else {}, rows=part, adopted=last)


def _tables() -> dict[str, Table]:
    return {name: tables.METADATA.tables[name] for name in KINDS}


def _all_rows(ledger: AuditedLedger) -> Iterable[JsonValue]:
    for name, table in _tables().items():
        group = next(iter({"cycle", "candidate"}.intersection(table.c.keys())), "")
        for row in ledger.rows(select(table).order_by(table.c.sequence)):
            more = {"attestation": attested(ledger.data, row.key)} if table is tables.CHECKPOINTS else {}
            about = row._mapping[group] if group else ""
            yield bound_row(name, row.key, digest_in(name, row.payload), about, **more)
    jobs = ledger.rows(select(tables.JOBS.c.payload).order_by(tables.JOBS.c.sequence.desc()).limit(JOBS))
    for row in reversed(jobs):
        job = Job.model_validate_json(row.payload)
        if job.state.ended:
            yield bound_row("jobs", job.id, digest_in("jobs", row.payload), job.weights)
    for row in ledger.rows(select(tables.CYCLES.c.key).order_by(tables.CYCLES.c.sequence.desc()).limit(CYCLES)):
        if chain := steps_digest(ledger.query, row.key):
            yield bound_row("steps", row.key, chain, "")


def _differs(found: str, hint: str) -> TamperedError:
    error = TamperedError(found)
    error.hint = hint
    return error


def put_right(ledger: AuditedLedger) -> list[str]:
    """Returns the differences it repaired, empty for an intact ledger. Raises TamperedError if some remain."""
    found = ledger.mismatches(texts=LOOKED_AT)
    if not found:
        return []
    ledger.audit.append("ledger.put_right", found=[*found])
    whole = _whole_records(ledger)
    with ledger.writing() as connection:
        connection.execute(delete(tables.ALIASES))
        for name, table in _tables().items():
            there = {row.key: row.payload for row in connection.execute(select(table.c.key, table.c.payload))}
            for key in there.keys() - ledger.in_force.records.get(name, {}).keys():
                connection.execute(delete(table).where(table.c.key == key))
            for key, text in whole.get(name, {}).items():
                if there.get(key) != text["payload"]:
                    put_row(connection, table, {"key": key, **text})
        put_aliases(connection, dict(ledger.in_force.aliases), "put right from the log", ledger.audit.latest)
    left = ledger.mismatches(texts=LOOKED_AT)
    if left:
        raise _differs("; ".join(left[:5]), COPY_BACK)
    return found


LOOKED_AT = 16
"""Newest records of each kind whose text is compared at a start; each is compared again on use."""


def _whole_records(ledger: AuditedLedger) -> dict[str, dict[str, dict[str, str]]]:
    """Returns the rows that the log carries whole, by table and key, each from the newest entry about it."""
    kinds = {kind: (name, _tables()[name], whole) for name, (kind, whole) in KINDS.items() if whole}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for entry in ledger.audit.entries():
        row: Any = entry.what.get("row")
        if entry.kind in kinds and row:
            name, table, whole = kinds[entry.kind]
            payload = payload_of(SHAPES[name].model_validate_json(json.dumps(entry.what[whole])))
            bound = ledger.in_force.bound(name, row["key"])
            if bound is not None and digest_in(name, payload) == bound.sha256:
                columns = dict.fromkeys({"cycle", "candidate"}.intersection(table.c.keys()), bound.group)
                found.setdefault(name, {})[row["key"]] = {"payload": payload, **columns}
    return found
