"""Tables of the ledger as SQLModel classes: the queried columns, and the whole record as JSON.

Invariants: `sequence` orders rows by arrival, which is what "newest" means; `key` identifies a record and is unique;
`payload` is the source of truth, and the other columns repeat parts of it so that SQLite can search for them. Queries
use the tables (`CYCLES`, ...) with SQLAlchemy's expression language, so no session and no unit of work stands between a
statement and its transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from sqlalchemy import Column, Index, Table
from sqlalchemy.sql.expression import ColumnElement, UnaryExpression
from sqlalchemy.sql.operators import custom_op
from sqlmodel import Field, SQLModel


class _RecordRow(SQLModel):
    """One record: its place in the order of arrival, and the record as JSON."""

    sequence: int | None = Field(default=None, primary_key=True)
    payload: str


class _KeyedRow(_RecordRow):
    """One record with an identity of its own."""

    key: str = Field(unique=True)


class CycleRow(_KeyedRow, table=True):
    """A cycle (one night's training) with its plan and state."""

    __tablename__ = "cycles"


class StepRow(_RecordRow, table=True):
    """A training step without its rollouts, which have rows of their own; `metrics` is JSON."""

    __tablename__ = "steps"
    __table_args__ = (Index("steps_by_cycle", "cycle", "step", unique=True),)

    cycle: str
    step: int
    metrics: str


class RolloutRow(_KeyedRow, table=True):
    """An attempt: messages, tool calls, tokens with log-probabilities, verdict. `step_sequence` is the row of `steps`
    that it was committed with."""

    __tablename__ = "rollouts"
    __table_args__ = (
        Index("rollouts_by_cycle", "cycle", "purpose", "step"),
        Index("rollouts_newest_by_cycle", "cycle", "sequence", "family", "outcome", "purpose", "step"),
        Index("rollouts_newest_by_family", "family", "sequence", "outcome", "purpose", "step"),
        Index("rollouts_newest_by_outcome", "outcome", "sequence", "family", "purpose", "step"),
        Index("rollouts_newest_by_purpose", "purpose", "sequence", "family", "outcome", "step"),
    )

    cycle: str
    purpose: str
    step: int
    step_sequence: int | None = Field(default=None, foreign_key="steps.sequence", index=True)
    family: str = Field(sa_column_kwargs={"server_default": ""})
    outcome: str = Field(sa_column_kwargs={"server_default": ""})


class SealedSetRow(_KeyedRow, table=True):
    """The questions and checks of an evaluation, keyed by the digest that is also in the audit log."""

    __tablename__ = "sealed_sets"


class CheckpointRow(_KeyedRow, table=True):
    """A model's weights, keyed by the digest of their manifest: where they lie, their cycle and parent."""

    __tablename__ = "checkpoints"

    cycle: str = Field(index=True)


class _CandidateRow(_KeyedRow):
    """A record about a candidate, which is named by the digest of its weights."""

    candidate: str = Field(index=True)


class ComparisonRow(_CandidateRow, table=True):
    """Two models on one sealed set, item by item."""

    __tablename__ = "evaluations"


class DecisionRow(_CandidateRow, table=True):
    """The outcome of each gate for a candidate, and the decision that follows."""

    __tablename__ = "decisions"


class ApprovalRow(_CandidateRow, table=True):
    """A person's signed approval or rejection of a candidate, keyed by its digest."""

    __tablename__ = "approvals"


class AliasRow(SQLModel, table=True):
    """The checkpoint that a name (`champion`, `previous`, ...) refers to now."""

    __tablename__ = "aliases"

    name: str = Field(primary_key=True)
    manifest: str | None = Field(default=None, foreign_key="checkpoints.key")


class AliasMoveRow(_RecordRow, table=True):
    """One change of aliases: the names, the reason, the time."""

    __tablename__ = "alias_moves"


class CanaryRow(_KeyedRow, table=True):
    """The canary of a promoted model beside the previous one."""

    __tablename__ = "canaries"


class JobRow(_KeyedRow, table=True):
    """A question with its check, and its state."""

    __tablename__ = "jobs"

    state: str = Field(index=True)


class ArtifactRow(_KeyedRow, table=True):
    """A verified answer and the folder of its bundle."""

    __tablename__ = "artifacts"


class EventRow(_RecordRow, table=True):
    """An event in words and figures, for the screen and `/v1/events`."""

    __tablename__ = "events"


class NightRow(_KeyedRow, table=True):
    """A night of the schedule, keyed by its local date or the minute of a cron line: whether it ran, and why not."""

    __tablename__ = "nights"


class ScheduleRow(_KeyedRow, table=True):
    """The state of the schedule: one row."""

    __tablename__ = "schedule"


class AuditHeadRow(SQLModel, table=True):
    """The newest line of the audit log: one row, or none."""

    __tablename__ = "audit_head"

    only: int = Field(primary_key=True)
    line: str


class LeaseRow(SQLModel, table=True):
    """The lease of a piece of work, `cycle ID` or `job ID`. `attempt` is the fencing token; without a deadline nobody
    holds the lease. `deaths` counts infrastructure failures in a row without progress."""

    __tablename__ = "leases"

    work: str = Field(primary_key=True)
    attempt: int
    owner: str
    boot: str
    deadline: float | None = None
    deaths: int


METADATA = SQLModel.metadata


def _table(row: type[SQLModel]) -> Table:
    """Returns the table of a row class, with the docstring of the class as its comment."""
    table = cast(Table, row.__table__)  # type: ignore[attr-defined]
    table.comment = " ".join((row.__doc__ or "").split())
    return table


CYCLES = _table(CycleRow)
STEPS = _table(StepRow)
ROLLOUTS = _table(RolloutRow)
SEALED_SETS = _table(SealedSetRow)
CHECKPOINTS = _table(CheckpointRow)
EVALUATIONS = _table(ComparisonRow)
DECISIONS = _table(DecisionRow)
APPROVALS = _table(ApprovalRow)
ALIASES = _table(AliasRow)
ALIAS_MOVES = _table(AliasMoveRow)
CANARIES = _table(CanaryRow)
JOBS = _table(JobRow)
ARTIFACTS = _table(ArtifactRow)
EVENTS = _table(EventRow)
NIGHTS = _table(NightRow)
SCHEDULE = _table(ScheduleRow)
AUDIT_HEAD = _table(AuditHeadRow)
LEASES = _table(LeaseRow)
_RAREST = (ROLLOUTS.c.cycle, ROLLOUTS.c.family, ROLLOUTS.c.outcome, ROLLOUTS.c.purpose)
"""Columns in the order of their selectivity: a value of the first ones occurs in few rollouts."""


def looked_for(asked: Collection[Column[Any]]) -> Column[Any] | None:
    """Returns the column of rollouts whose index serves a filtered page; None if no column has one.

    SQLite has no statistics about a ledger, so it would take any index with one of the columns, such as that of
    `purpose`, which nearly all rows share."""
    return next((column for column in _RAREST if any(column is one for one in asked)), None)


def unindexed(column: Column[Any]) -> ColumnElement[Any]:
    """Returns an expression with the column's value that no index serves (sqlite.org/optoverview.html, section 2)."""
    return UnaryExpression(column, operator=custom_op("+"))
