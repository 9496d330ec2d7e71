"""Rollouts say which weights drew which tokens.

No row is rewritten: one of before is read as drawn by the one version that it names (`appliance.records.rollouts`). The
revision keeps an earlier version of the program from opening what it could not read.
"""

from __future__ import annotations

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Changes no table."""
