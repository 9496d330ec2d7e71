"""Random batches of log-probabilities for losses, the same on every machine and with every version of torch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.recipes.recipe import MismatchRecipe
from appliance.learning.signal.corrections import corrected_losses

MOST = 16
"""Tokens that a conversation may have."""

NOISES = (1e-4, 0.05, 0.5, 1.5)
"""How far trainer and sampler are apart, in nats: inside of every clip, at its edge, far out."""

VARIANTS = {name: (name, MismatchRecipe()) for name in ("grpo", "dapo", "dr_grpo", "gspo", "cispo")} | {
    "dapo, truncated": ("dapo", MismatchRecipe(rule="truncate", anchor="trainer")),
    "grpo, masked": ("grpo", MismatchRecipe(rule="mask", anchor="trainer")),
}
"""What both sides have: an objective with a correction of mismatch."""


@dataclass(frozen=True)
class LossCase:
    """All are fp64 and [B, T] but `rows`; the mask is off here and there, and never in a whole row."""

    logprobs: Tensor
    sampled: Tensor
    mask: Tensor
    rows: Tensor
    """[B]: an advantage for each row."""
    weights: Tensor
    """What the gradient is weighed with, to have one number of it."""


def loss_cases(count: int) -> Iterator[LossCase]:
    for number in range(count):
        rng = random.Random(f"loss {number}")
        rows, width, noise = rng.randint(1, 6), rng.randint(1, 12), NOISES[number % len(NOISES)]
        shape = (rows, width)

        def table(values: list[float], shape: tuple[int, int] = shape) -> Tensor:
            return torch.tensor(values, dtype=torch.float64).reshape(shape)

        size = rows * width
        logprobs = [-rng.expovariate(0.5) for _ in range(size)]
        mask = [rng.random() < 0.7 for _ in range(size)]
        for row in range(rows):
            mask[row * width + rng.randrange(width)] = True
        yield LossCase(
            table(logprobs),
            table([min(0.0, one + rng.gauss(0, noise)) for one in logprobs]),
            torch.tensor(mask).reshape(shape),
            torch.tensor([rng.gauss(0, 1) for _ in range(rows)], dtype=torch.float64),
            table([rng.gauss(0, 1) for _ in range(size)]),
        )


def ours(variant: str, case: LossCase) -> tuple[float, float]:
    """Loss of a minibatch, and its gradient weighed with the case's weights."""
    name, recipe = VARIANTS[variant]
    objective = OBJECTIVES[name]
    logprobs = case.logprobs.clone().requires_grad_()
    each = case.rows[:, None].expand_as(case.mask)
    made = corrected_losses(objective, logprobs, case.sampled, each, case.mask, objective.clip, recipe)
    loss = made.tokens.losses.sum() / objective.denominator(int(case.mask.sum()), len(case.mask), MOST)
    (gradient,) = torch.autograd.grad(loss, logprobs)
    return loss.item(), (gradient * case.weights).sum().item()
