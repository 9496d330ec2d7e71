"""Defines the tables, one for each kind of record: the columns that are asked for, and the whole record as JSON.

`sequence` orders by arrival, which is what "newest" means; `key` is what makes a record itself, and is unique. The
payload is the truth; the other columns repeat a part of it so that SQLite can look for it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, Index, Integer, MetaData, String, Table
from sqlalchemy.schema import SchemaItem

METADATA = MetaData()


def _stored(name: str, *items: SchemaItem) -> Table:
    return Table(name, METADATA, Column("sequence", Integer, primary_key=True), _text("payload"), *items)


def _keyed(name: str, *items: SchemaItem) -> Table:
    return _stored(name, _text("key", unique=True), *items)


def _text(name: str, **more: Any) -> Column[str]:
    return Column(name, String, nullable=False, **more)


CYCLES = _keyed("cycles")
STEPS = _stored(
    "steps",
    _text("cycle"),
    Column("step", Integer, nullable=False),
    _text("metrics"),
    Index("steps_by_cycle", "cycle", "step", unique=True),
)
"""A training step without its rollouts, which have rows of their own."""
ROLLOUTS = _keyed(
    "rollouts",
    _text("cycle"),
    _text("purpose"),
    Column("step", Integer, nullable=False),
    Column("step_sequence", ForeignKey("steps.sequence"), index=True),
    Index("rollouts_by_cycle", "cycle", "purpose", "step"),
)
"""`step_sequence`: the training step that it was committed with."""
SEALED_SETS = _keyed("sealed_sets")
CHECKPOINTS = _keyed("checkpoints", _text("cycle", index=True))
EVALUATIONS = _keyed("evaluations", _text("candidate", index=True))
DECISIONS = _keyed("decisions", _text("candidate", index=True))
APPROVALS = _keyed("approvals", _text("candidate", index=True))
ALIASES = Table(
    "aliases", METADATA, Column("name", String, primary_key=True), Column("manifest", ForeignKey("checkpoints.key"))
)
ALIAS_MOVES = _stored("alias_moves")
CANARIES = _keyed("canaries")
JOBS = _keyed("jobs", _text("state", index=True))
ARTIFACTS = _keyed("artifacts")
EVENTS = _stored("events")
AUDIT_HEAD = Table("audit_head", METADATA, Column("only", Integer, primary_key=True), _text("line"))
"""The newest line of the audit log: one row, or none."""
