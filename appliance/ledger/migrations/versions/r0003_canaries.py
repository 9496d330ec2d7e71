"""Canaries: promoted models beside the champion."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "canaries",
        sa.Column("sequence", sa.Integer(), primary_key=True),
        sa.Column("payload", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False, unique=True),
    )
