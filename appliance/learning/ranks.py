"""Lets several processes train one model together: each holds a part of every weight, its gradient and its moments.

What always holds: all ranks take the same calls in the same order, and have the same weights, figures and step count
after each. With one rank nothing here does anything, and nothing of torch's distributed package is loaded. What is
saved is whole, so that any number of ranks can go on from it.
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
    """This process among them, from 0; the first writes what is kept."""
    world: int = 1
    """How many there are."""

    @property
    def alone(self) -> bool:
        return self.world == 1

    def share(self, passes: Sequence[T]) -> list[tuple[T, bool]]:
        """Picks this rank's passes of a minibatch, and whether each counts. All ranks get equally many, because the
        model is computed by all of them at once: who has too few computes one more that counts nothing."""
        most = -(-len(passes) // self.world)
        own = [(one, True) for one in passes[self.number :: self.world]]
        return own + [(passes[0], False)] * (most - len(own))

    def summed(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Adds up each figure over all ranks."""
        return self._reduced(figures, "SUM")

    def largest(self, figures: Mapping[str, float]) -> dict[str, float]:
        """Takes the largest of each figure over all ranks."""
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
