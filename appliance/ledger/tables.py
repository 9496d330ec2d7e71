"""Tables, one per kind of record: the queried columns, and the whole record as JSON.

`sequence` orders by arrival, which is what "newest" means; `key` identifies a record and is unique. The payload is
authoritative; the other columns repeat parts of it for SQLite's searches.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, MetaData, String, Table
from sqlalchemy.schema import SchemaItem
from sqlalchemy.sql.expression import ColumnElement, UnaryExpression
from sqlalchemy.sql.operators import custom_op

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
    _text("family", server_default=""),
    _text("outcome", server_default=""),
    Index("rollouts_by_cycle", "cycle", "purpose", "step"),
    Index("rollouts_newest_by_cycle", "cycle", "sequence", "family", "outcome", "purpose", "step"),
    Index("rollouts_newest_by_family", "family", "sequence", "outcome", "purpose", "step"),
    Index("rollouts_newest_by_outcome", "outcome", "sequence", "family", "purpose", "step"),
    Index("rollouts_newest_by_purpose", "purpose", "sequence", "family", "outcome", "step"),
)
"""Rollouts; `step_sequence` is the training step that a rollout was committed with."""
_RAREST = (ROLLOUTS.c.cycle, ROLLOUTS.c.family, ROLLOUTS.c.outcome, ROLLOUTS.c.purpose)
"""Columns by selectivity, best first: a taskset is one of many, but nearly all rollouts are for training."""
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
NIGHTS = _keyed("nights")
SCHEDULE = _keyed("schedule")
AUDIT_HEAD = Table("audit_head", METADATA, Column("only", Integer, primary_key=True), _text("line"))
"""Newest line of the audit log: one row, or none."""
LEASES = Table(
    "leases",
    METADATA,
    Column("work", String, primary_key=True),
    Column("attempt", Integer, nullable=False),
    _text("owner"),
    _text("boot"),
    Column("deadline", Float),
    Column("deaths", Integer, nullable=False),
)
"""Leases by work, `cycle ID` or `job ID`. `attempt` is the fencing token; without a deadline the work is free. `deaths`
counts consecutive infrastructure deaths without progress."""


def looked_for(asked: Collection[Column[Any]]) -> Column[Any] | None:
    """Returns the column of rollouts whose index should find a page; None if none of them has one.

    SQLite has no statistics of a ledger and takes any matching index: for infrastructure errors in training it scanned
    all training rollouts.
    """
    return next((column for column in _RAREST if any(column is one for one in asked)), None)


def unindexed(column: Column[Any]) -> ColumnElement[Any]:
    """Returns an equal expression for which SQLite uses no index (sqlite.org/optoverview.html, section 2)."""
    return UnaryExpression(column, operator=custom_op("+"))
