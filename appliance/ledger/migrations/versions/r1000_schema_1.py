"""The tables of schema 1. There is no downgrade: a copy is made before every migration."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1000"
down_revision = None


def upgrade() -> None:
    _stored("cycles", _key())
    _stored("steps", _text("cycle"), _number("step"), _text("metrics"))
    op.create_index("steps_by_cycle", "steps", ["cycle", "step"], unique=True)
    _stored(
        "rollouts",
        _key(),
        _text("cycle"),
        _text("purpose"),
        _number("step"),
        sa.Column("step_sequence", sa.Integer(), sa.ForeignKey("steps.sequence"), nullable=True),
        _text("family", server_default=""),
        _text("outcome", server_default=""),
    )
    op.create_index("rollouts_by_cycle", "rollouts", ["cycle", "purpose", "step"])
    op.create_index("ix_rollouts_step_sequence", "rollouts", ["step_sequence"])
    for name, first in (("cycle", "cycle"), ("family", "family"), ("outcome", "outcome"), ("purpose", "purpose")):
        rest = [column for column in ("family", "outcome", "purpose", "step") if column != first]
        op.create_index(f"rollouts_newest_by_{name}", "rollouts", [first, "sequence", *rest])
    _stored("checkpoints", _key(), _text("cycle"))
    op.create_index("ix_checkpoints_cycle", "checkpoints", ["cycle"])
    for name in ("evaluations", "decisions", "approvals"):
        _stored(name, _key(), _text("candidate"))
        op.create_index(f"ix_{name}_candidate", name, ["candidate"])
    op.create_table(
        "aliases",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("manifest", sa.String(), sa.ForeignKey("checkpoints.key"), nullable=True),
    )
    _stored("jobs", _key(), _text("state"))
    op.create_index("ix_jobs_state", "jobs", ["state"])
    for name in ("sealed_sets", "canaries", "artifacts", "nights", "schedule"):
        _stored(name, _key())
    for name in ("alias_moves", "events"):
        _stored(name)
    op.create_table("audit_head", sa.Column("only", sa.Integer(), primary_key=True), _text("line"))
    op.create_table(
        "leases",
        sa.Column("work", sa.String(), primary_key=True),
        _number("attempt"),
        _text("owner"),
        _text("boot"),
        sa.Column("deadline", sa.Float(), nullable=True),
        _number("deaths"),
    )


def _text(name: str, **more: Any) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=False, **more)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _key() -> sa.Column[str]:
    return _text("key", unique=True)


def _stored(name: str, *columns: sa.Column[Any]) -> None:
    """Creates a table of records: the order of arrival, the record as JSON, and the given columns."""
    op.create_table(name, sa.Column("sequence", sa.Integer(), primary_key=True), _text("payload"), *columns)
