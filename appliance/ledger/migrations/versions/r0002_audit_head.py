"""Newest line of the audit log, stored apart from the log file."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "audit_head", sa.Column("only", sa.Integer(), primary_key=True), sa.Column("line", sa.String(), nullable=False)
    )
