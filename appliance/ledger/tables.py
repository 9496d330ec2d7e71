"""Defines the tables, one for each kind of record: the columns that are asked for, and the whole record as JSON.

`sequence` orders by arrival, which is what "newest" means; `key` is what makes a record itself, and is unique. The
payload is the truth; the other columns repeat a part of it so that SQLite can look for it.
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
"""`step_sequence`: the training step that it was committed with."""
_RAREST = (ROLLOUTS.c.cycle, ROLLOUTS.c.family, ROLLOUTS.c.outcome, ROLLOUTS.c.purpose)
"""Columns of which one value is in few rollouts come first: one family of many, but nearly all are for training."""
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
"""The newest line of the audit log: one row, or none."""
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
"""Who is at which work: `cycle ID` or `job ID`. `attempt` is the fencing token; without a deadline nobody is at it.
`deaths` counts how often in a row the infrastructure died at it without progress."""


def looked_for(asked: Collection[Column[Any]]) -> Column[Any] | None:
    """The one of these columns of rollouts whose index a page is looked for in; None where none has one.

    SQLite has no figures about a ledger, so it takes any index that has one of the columns: of those for training that
    broke it looked through all that are for training."""
    return next((column for column in _RAREST if any(column is one for one in asked)), None)


def unindexed(column: Column[Any]) -> ColumnElement[Any]:
    """The same value, for which SQLite takes no index (sqlite.org/optoverview.html, section 2)."""
    return UnaryExpression(column, operator=custom_op("+"))
