"""Leases (owner, fencing token, deadline, infrastructure deaths) and indexes for lists of rollouts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("work", sa.String(), primary_key=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("boot", sa.String(), nullable=False),
        sa.Column("deadline", sa.Float(), nullable=True),
        sa.Column("deaths", sa.Integer(), nullable=False),
    )
    # Columns that lists of rollouts filter by, so that a page is read from an index.
    for name in ("family", "outcome"):
        op.add_column("rollouts", sa.Column(name, sa.String(), nullable=False, server_default=""))
    op.execute(
        "UPDATE rollouts SET family = coalesce(json_extract(payload, '$.family'), ''),"
        " outcome = coalesce(json_extract(payload, '$.verdict.outcome'), '')"
    )
    for name, first in (("cycle", "cycle"), ("family", "family"), ("outcome", "outcome"), ("purpose", "purpose")):
        rest = [column for column in ("family", "outcome", "purpose", "step") if column != first]
        op.create_index(f"rollouts_newest_by_{name}", "rollouts", [first, "sequence", *rest])
