"""Nights by date, and the state of the schedule."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for name in ("nights", "schedule"):
        op.create_table(
            name,
            sa.Column("sequence", sa.Integer(), primary_key=True),
            sa.Column("payload", sa.String(), nullable=False),
            sa.Column("key", sa.String(), nullable=False, unique=True),
        )
