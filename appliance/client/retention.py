"""Messages of `assay prune`."""

from __future__ import annotations

from pydantic import Field

from runtime.model import FrozenModel


class Prune(FrozenModel):
    nights: int = Field(ge=1, le=100_000)
    """Number of newest ended cycles that keep everything."""
    dry_run: bool = False


class Pruned(FrozenModel):
    cycles: tuple[str, ...]
    """Cycles whose training rollouts lost their tokens, or would."""
    rollouts: int
    bytes: int
    """Ledger space freed for new records, or that would be."""
    dry_run: bool
