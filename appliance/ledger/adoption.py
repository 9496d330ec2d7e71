"""Reconciles a ledger with its audit log: once for a ledger older than the log, and after tampering.

Invariants: whatever an earlier log carries must match the ledger; the rest is adopted as found, once, and listed in the
entry `ledger.adopted`. After tampering, aliases and records that the log carries whole are restored from the log, rows
unknown to the log are removed, and the entry `ledger.put_right` lists the differences; records of which the log has
only a digest cannot be restored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, JsonValue
from sqlalchemy import Table, delete, select

from appliance.audit.attested import attested
from appliance.ledger import tables
from appliance.ledger.audited import AuditedLedger, TamperedError
from appliance.ledger.comparison import KINDS, bound_row, digest_in, steps_digest
from appliance.ledger.rows import payload_of, put_row
from appliance.ledger.sqlite import put_aliases
from appliance.records.checkpoints import Checkpoint
from appliance.records.evaluations import Approval
from appliance.records.jobs import Job
from appliance.records.service import Canary
from policies.contract.decision import Decision
from policies.in_force import ADOPTED

EMPTY = (
    "restore the log from a copy; if it is lost, `assay audit renew` begins another one from the ledger, and forgets "
    "all known keys"
)
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
    """Raises TamperedError if the log is empty but the ledger is not: the log was removed."""
    looked_at = (tables.ALIASES, tables.JOBS, *_tables().values())
    if ledger.audit.head is None and any(ledger.rows(select(table).limit(1)) for table in looked_at):
        error = TamperedError(f"the audit log {ledger.audit.path} is empty, but the ledger has records")
        error.hint = EMPTY
        raise error


def adopt(ledger: AuditedLedger, note: str) -> None:
    """Writes the ledger's existing aliases and records into its audit log, which vouches for them from now on. Raises
    TamperedError if an earlier log disagrees. Every entry carries `note`."""
    _compare_with_earlier(ledger)
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


def _compare_with_earlier(ledger: AuditedLedger) -> None:
    """Compares the ledger with records that an earlier version logged whole.

    These are alias moves, decisions, approvals and the starts of canaries.
    """
    rows = {row.name: row.manifest for row in ledger.rows(select(tables.ALIASES))}
    for name, said in ledger.in_force.aliases.items():
        if rows.get(name) != said:
            _differs(f"the alias {name} is {rows.get(name)}, and the log says {said}")
    logged: dict[str, dict[str, BaseModel]] = {"decisions": {}, "approvals": {}}
    canaries = set()
    for entry in ledger.in_force.earlier:
        if entry.kind == "decision":
            decision = Decision.model_validate(entry.what["decision"])
            logged["decisions"][decision.id] = decision
        elif entry.kind == "word":
            approval = Approval.model_validate(entry.what["word"])
            logged["approvals"][approval.digest()] = approval
        else:
            canaries.add(entry.what.get("canary"))
    begin = next(iter(ledger.in_force.statements))
    renewed, begun = "renewed" in begin.what, begin.at
    for name, records in logged.items():
        table, known = _tables()[name], {}
        for row in ledger.rows(select(table)):
            known[row.key] = SHAPES[name].model_validate_json(row.payload)
        for key, record in records.items():
            if known.get(key, record) != record:
                _differs(f"{name} has another {key[:40]!r} than the log")
            if key not in known:  # a kill came between the entry and the row
                _write(ledger, name, key, record)
        for key in sorted(known.keys() - records.keys()):
            if not renewed and _made(known[key]) >= begun:
                _differs(f"{name} has {key[:40]!r}, of which the log says nothing")
    for row in ledger.rows(select(tables.CANARIES)):
        if not (renewed or Canary.model_validate_json(row.payload).state.ended or row.key in canaries):
            _differs(f"the canary {row.key[:40]!r} began without an entry in the log")


def _made(record: Any) -> str:
    return str(record.made_at if isinstance(record, Decision) else record.created)


def _differs(found: str) -> None:
    error = TamperedError(found)
    error.hint = COPY_BACK
    raise error


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
        _differs("; ".join(left[:5]))
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


def _write(ledger: AuditedLedger, name: str, key: str, record: BaseModel) -> None:
    columns = {"candidate": record.candidate}  # type: ignore[attr-defined]
    with ledger.writing() as connection:
        put_row(connection, _tables()[name], {"key": key, "payload": payload_of(record), **columns})
