"""Is what records, messages and settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Is checked when it is made, never changes, and knows no fields but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
