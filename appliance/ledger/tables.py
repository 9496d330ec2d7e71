"""The tables: one for each kind of record, with the columns that are asked for and the whole record as JSON.

`sequence` orders by arrival, which is what "newest" means; `key` is what makes a record itself, and is unique. The
payload is the truth; the other columns repeat a part of it so that SQLite can look for it.
"""

from __future__ import annotations

from sqlalchemy import Index, Table
from sqlmodel import Field, SQLModel


class _Stored(SQLModel):
    sequence: int | None = Field(default=None, primary_key=True)
    payload: str


class _Keyed(_Stored):
    key: str = Field(unique=True)


class CycleRow(_Keyed, table=True):
    __tablename__ = "cycles"


class StepRow(_Stored, table=True):
    """A training step without its rollouts, which have rows of their own."""

    __tablename__ = "steps"
    __table_args__ = (Index("steps_by_cycle", "cycle", "step", unique=True),)

    cycle: str
    step: int
    metrics: str


class RolloutRow(_Keyed, table=True):
    __tablename__ = "rollouts"
    __table_args__ = (Index("rollouts_by_cycle", "cycle", "purpose", "step"),)

    cycle: str
    purpose: str
    step: int
    step_sequence: int | None = Field(default=None, foreign_key="steps.sequence", index=True)
    """The training step that it was committed with."""


class SealedSetRow(_Keyed, table=True):
    __tablename__ = "sealed_sets"


class CheckpointRow(_Keyed, table=True):
    __tablename__ = "checkpoints"

    cycle: str = Field(index=True)


class EvaluationRow(_Keyed, table=True):
    __tablename__ = "evaluations"

    candidate: str = Field(index=True)


class DecisionRow(_Keyed, table=True):
    __tablename__ = "decisions"

    candidate: str = Field(index=True)


class ApprovalRow(_Keyed, table=True):
    __tablename__ = "approvals"

    candidate: str = Field(index=True)


class AliasRow(SQLModel, table=True):
    __tablename__ = "aliases"

    name: str = Field(primary_key=True)
    manifest: str | None = Field(default=None, foreign_key="checkpoints.key")


class AliasMoveRow(_Stored, table=True):
    __tablename__ = "alias_moves"


class CanaryRow(_Keyed, table=True):
    __tablename__ = "canaries"


class JobRow(_Keyed, table=True):
    __tablename__ = "jobs"

    state: str = Field(index=True)


class ArtifactRow(_Keyed, table=True):
    __tablename__ = "artifacts"


class EventRow(_Stored, table=True):
    __tablename__ = "events"


class AuditHeadRow(SQLModel, table=True):
    """The newest line of the audit log: one row, or none."""

    __tablename__ = "audit_head"

    only: int = Field(default=1, primary_key=True)
    line: str


def _table(row: type[SQLModel]) -> Table:
    return SQLModel.metadata.tables[str(row.__tablename__)]


CYCLES = _table(CycleRow)
STEPS = _table(StepRow)
ROLLOUTS = _table(RolloutRow)
SEALED_SETS = _table(SealedSetRow)
CHECKPOINTS = _table(CheckpointRow)
EVALUATIONS = _table(EvaluationRow)
DECISIONS = _table(DecisionRow)
APPROVALS = _table(ApprovalRow)
ALIASES = _table(AliasRow)
ALIAS_MOVES = _table(AliasMoveRow)
CANARIES = _table(CanaryRow)
JOBS = _table(JobRow)
ARTIFACTS = _table(ArtifactRow)
EVENTS = _table(EventRow)
AUDIT_HEAD = _table(AuditHeadRow)
