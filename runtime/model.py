"""Is what records, messages and settings have in common."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Is checked when it is made, never changes, and knows no fields but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


@dataclass(frozen=True)
class UnitName:
    """Says in what a figure that people set is counted, where its name does not end in that."""

    name: str
