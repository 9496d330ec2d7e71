"""Compares the rows of a ledger with the records that its audit log declares in force.

Invariants: nothing is changed. `Query` reads the file through any connection: the daemon compares what it uses, and a
command compares everything from outside the daemon, without the daemon's database library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pydantic import JsonValue

from policies.envelopes import canonical
from policies.in_force import Bound, InForce

Query = Callable[..., Sequence[Any]]
"""Runs a statement with values for its question marks and returns the rows."""
KINDS: dict[str, tuple[str, str]] = {
    "checkpoints": ("checkpoint", "record"),
    "evaluations": ("evaluation", ""),
    "decisions": ("decision", "decision"),
    "approvals": ("word", "word"),
    "canaries": ("canary", "record"),
    "cycles": ("cycle", ""),
    "artifacts": ("artifact", ""),
}
"""Per table: the kind of its log entries, and the field that carries the whole record (empty: only a digest is logged).
"""
PARTS = {"cycles": ("id", "kind", "seed", "plan")}
"""Fields that count in a record that keeps changing; for other tables all fields count."""
NOT_OF_THE_END = ("spent_seconds", "validation")
"""Job fields that change after the job has ended."""
AT_ONCE = 500
"""Rows per statement."""


def mismatches(rows: Query, in_force: InForce, texts: int | None) -> Iterator[str]:
    """Yields each difference of a ledger's rows from its audit log as a sentence. `texts` is how many of the newest
    records of each kind are compared with their digests; None compares all, ends of jobs included."""
    aliases = dict(map(tuple, rows("SELECT name, manifest FROM aliases")))
    for name in sorted({*aliases, *in_force.aliases}):
        found, said = aliases.get(name), in_force.aliases.get(name)
        if found != said:
            yield f"the alias {name} is {_short(found)}, and the log says {_short(said)}"
    for name in KINDS:
        if name == "artifacts" and texts is not None:
            continue  # many, and unlogged ones are never read
        there, bound = {row[0] for row in rows(f"SELECT key FROM {name}")}, in_force.keys(name)  # noqa: S608 - of ours
        yield from (
            f"{name} has {key[:40]!r}, of which the log says nothing" for key in sorted(there.difference(bound))
        )
        yield from (f"{name} lacks {key[:40]!r}" for key in bound if key not in there)
        yield from _changed(rows, in_force, name, [key for key in bound[:texts] if key in there])
    if texts is None:
        yield from _changed(rows, in_force, "jobs", in_force.keys("jobs"))
        for cycle in in_force.keys("steps"):
            if steps_digest(rows, cycle) != in_force.records["steps"][cycle].sha256:
                yield f"the steps of {cycle} are not those of the log"


def _changed(rows: Query, in_force: InForce, table: str, keys: Sequence[str]) -> Iterator[str]:
    for key, bound, payload in texts_of(rows, in_force, table, keys):
        if payload is None or digest_in(table, payload) != bound.sha256:
            yield f"{table} has another {key[:40]!r} than the log"


def texts_of(
    rows: Query, in_force: InForce, table: str, keys: Sequence[str]
) -> Iterator[tuple[str, Bound, str | None]]:
    """Yields each record's key with its digest in the audit log and its text in the ledger, None if missing."""
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        marks = ",".join("?" * len(part))
        found = dict(map(tuple, rows(f"SELECT key, payload FROM {table} WHERE key IN ({marks})", *part)))  # noqa: S608
        for key in part:
            bound = in_force.bound(table, key)
            if bound is not None:
                yield key, bound, found.get(key)


def steps_digest(rows: Query, cycle: str) -> str:
    """Returns a hash chain over the training steps of a cycle in order; empty if there are none."""
    chain = ""
    for (payload,) in rows("SELECT payload FROM steps WHERE cycle = ? ORDER BY sequence", cycle):
        chain = chained(chain, payload)
    return chain


def chained(chain: str, payload: str) -> str:
    return hashlib.sha256(f"{chain}\n{payload}".encode()).hexdigest()


def bound_row(table: str, key: str, sha256: str, group: str, **more: str) -> dict[str, JsonValue]:
    """Builds the part of an audit log entry that puts a ledger record in force."""
    return {"table": table, "key": key, "sha256": sha256, "group": group, **more}


def digest_in(table: str, payload: str) -> str:
    """Returns the SHA-256 of a ledger record's text, without fields that may still change."""
    if table == "jobs":
        value = json.loads(payload)
        payload = canonical({name: value[name] for name in value if name not in NOT_OF_THE_END}).decode()
    elif table in PARTS:
        value = json.loads(payload)
        payload = canonical({name: value[name] for name in PARTS[table]}).decode()
    return hashlib.sha256(payload.encode()).hexdigest()


def _short(digest: str | None) -> str:
    return "nothing" if digest is None else digest[:12]
