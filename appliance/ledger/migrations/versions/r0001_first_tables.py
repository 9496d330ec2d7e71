"""First tables. There are no downgrades: a backup precedes every migration."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _stored("cycles", _key())
    _stored(
        "steps",
        sa.Column("cycle", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("metrics", sa.String(), nullable=False),
    )
    op.create_index("steps_by_cycle", "steps", ["cycle", "step"], unique=True)
    _stored(
        "rollouts",
        _key(),
        sa.Column("cycle", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("step_sequence", sa.Integer(), sa.ForeignKey("steps.sequence"), nullable=True),
    )
    op.create_index("rollouts_by_cycle", "rollouts", ["cycle", "purpose", "step"])
    op.create_index("ix_rollouts_step_sequence", "rollouts", ["step_sequence"])
    _stored("sealed_sets", _key())
    _stored("checkpoints", _key(), sa.Column("cycle", sa.String(), nullable=False))
    op.create_index("ix_checkpoints_cycle", "checkpoints", ["cycle"])
    for name in ("evaluations", "decisions", "approvals"):
        _stored(name, _key(), sa.Column("candidate", sa.String(), nullable=False))
        op.create_index(f"ix_{name}_candidate", name, ["candidate"])
    op.create_table(
        "aliases",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("manifest", sa.String(), sa.ForeignKey("checkpoints.key"), nullable=True),
    )
    _stored("alias_moves")
    _stored("jobs", _key(), sa.Column("state", sa.String(), nullable=False))
    op.create_index("ix_jobs_state", "jobs", ["state"])
    _stored("artifacts", _key())
    _stored("events")


def _key() -> sa.Column[str]:
    return sa.Column("key", sa.String(), nullable=False, unique=True)


def _stored(name: str, *columns: sa.Column[object] | sa.Column[str] | sa.Column[int] | sa.Column[int | None]) -> None:
    op.create_table(
        name,
        sa.Column("sequence", sa.Integer(), primary_key=True),
        sa.Column("payload", sa.String(), nullable=False),
        *columns,
    )
