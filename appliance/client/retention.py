"""What `assay prune` asks of the daemon, and is told."""

from __future__ import annotations

from pydantic import Field

from runtime.model import FrozenModel


class Prune(FrozenModel):
    nights: int = Field(ge=1, le=100_000)
    """So many of the newest cycles that have ended keep everything."""
    dry_run: bool = False


class Pruned(FrozenModel):
    cycles: tuple[str, ...]
    """Whose training rollouts have no tokens any more, or would have none."""
    rollouts: int
    bytes: int
    """Of the ledger, that are free for what is written next, or would be."""
    dry_run: bool
