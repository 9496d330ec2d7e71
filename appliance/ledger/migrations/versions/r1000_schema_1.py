"""Creates the tables of schema 1. There is no downgrade: a copy is made before every migration.

The statements are plain SQL: compiling them from table objects takes most of the time of a first start.
"""

from __future__ import annotations

from alembic import op

revision = "1000"
down_revision = None


def upgrade() -> None:
    _stored("cycles", KEY)
    _stored("steps", "cycle VARCHAR NOT NULL", "step INTEGER NOT NULL", "metrics VARCHAR NOT NULL")
    _index("steps_by_cycle", "steps", "cycle", "step", unique=True)
    _stored(
        "rollouts",
        KEY,
        "cycle VARCHAR NOT NULL",
        "purpose VARCHAR NOT NULL",
        "step INTEGER NOT NULL",
        "step_sequence INTEGER REFERENCES steps (sequence)",
        "family VARCHAR DEFAULT '' NOT NULL",
        "outcome VARCHAR DEFAULT '' NOT NULL",
    )
    _index("rollouts_by_cycle", "rollouts", "cycle", "purpose", "step")
    _index("ix_rollouts_step_sequence", "rollouts", "step_sequence")
    for first in ("cycle", "family", "outcome", "purpose"):
        rest = [column for column in ("family", "outcome", "purpose", "step") if column != first]
        _index(f"rollouts_newest_by_{first}", "rollouts", first, "sequence", *rest)
    _stored("checkpoints", KEY, "cycle VARCHAR NOT NULL")
    _index("ix_checkpoints_cycle", "checkpoints", "cycle")
    for name in ("evaluations", "decisions", "approvals"):
        _stored(name, KEY, "candidate VARCHAR NOT NULL")
        _index(f"ix_{name}_candidate", name, "candidate")
    _table("aliases", "name VARCHAR NOT NULL PRIMARY KEY", 'manifest VARCHAR REFERENCES checkpoints ("key")')
    _stored("jobs", KEY, "state VARCHAR NOT NULL")
    _index("ix_jobs_state", "jobs", "state")
    for name in ("sealed_sets", "canaries", "artifacts", "nights", "schedule"):
        _stored(name, KEY)
    for name in ("alias_moves", "events"):
        _stored(name)
    _table("audit_head", "only INTEGER NOT NULL PRIMARY KEY", "line VARCHAR NOT NULL")
    _table(
        "leases",
        "work VARCHAR NOT NULL PRIMARY KEY",
        "attempt INTEGER NOT NULL",
        "owner VARCHAR NOT NULL",
        "boot VARCHAR NOT NULL",
        "deadline FLOAT",
        "deaths INTEGER NOT NULL",
    )


KEY = '"key" VARCHAR NOT NULL UNIQUE'


def _stored(name: str, *columns: str) -> None:
    """Creates a table of records: the order of arrival, the record as JSON, and the given columns."""
    _table(name, "sequence INTEGER NOT NULL PRIMARY KEY", "payload VARCHAR NOT NULL", *columns)


def _table(name: str, *columns: str) -> None:
    op.get_bind().exec_driver_sql(f"CREATE TABLE {name} ({', '.join(columns)})")


def _index(name: str, table: str, *columns: str, unique: bool = False) -> None:
    kind = "UNIQUE INDEX" if unique else "INDEX"
    op.get_bind().exec_driver_sql(f"CREATE {kind} {name} ON {table} ({', '.join(columns)})")
