"""Rollouts record which weights drew which tokens.

No row is rewritten: an older rollout counts as drawn by the one version that it names (`appliance.records.rollouts`).
The revision only keeps earlier versions of the program from opening records they cannot read.
"""

from __future__ import annotations

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Changes no table."""
