"""Common base of records, messages and settings."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ConfigDict

from common.bounded_models import FirstErrorModel


class FrozenModel(FirstErrorModel):
    """Immutable pydantic model that is validated on creation and forbids unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


@dataclass(frozen=True)
class UnitName:
    """Unit of a user-set number whose name does not end in one."""

    name: str
