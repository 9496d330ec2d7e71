"""Shards training of one model over processes: weights, gradients and moments.

Invariants: all ranks make the same calls in the same order, and have equal weights, figures and step count after each.
With one rank nothing here has an effect, and torch.distributed is not loaded. Saved state is complete, so any number of
ranks can resume from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    number: int = 0
    """Rank of this process, from 0; rank 0 writes files."""
    world: int = 1
    """Number of ranks."""

    @property
    def alone(self) -> bool:
        return self.world == 1

    def share(self, passes: Sequence[T]) -> list[tuple[T, bool]]:
        """Returns this rank's forward passes of a minibatch, and whether each counts. All ranks get equally many,
        because they compute the model together: a rank with too few repeats one that does not count."""
        most = -(-len(passes) // self.world)
        own = [(one, True) for one in passes[self.number :: self.world]]
        return own + [(passes[0], False)] * (most - len(own))

    def summed(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Sums each figure over all ranks."""
        return self._reduced(figures, "SUM")

    def largest(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Returns the maximum of each figure over all ranks."""
        return self._reduced(figures, "MAX")

    def _reduced(self, figures: Mapping[str, float], how: str) -> dict[str, float]:
        if self.alone:
            return dict(figures)
        from torch import distributed

        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        values = torch.tensor(list(figures.values()), dtype=torch.float64, device=device)
        distributed.all_reduce(values, getattr(distributed.ReduceOp, how))
        return dict(zip(figures, values.tolist(), strict=True))


ALONE = Ranks()
