"""What all specs share: frozen, strict, plain data."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecData(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
