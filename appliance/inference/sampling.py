"""Draws one token per row by inverting the cumulative distribution.

Each request has its own stream of uniform numbers, one per position, from its seed. So a row's draws depend on its
logits and seed, never on other rows of the batch or on scheduling. One uniform number per row also costs far less than
noise per vocabulary entry.
"""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

BELOW_ONE = 1 - 2.0**-22
"""Keeps `uniform * total` below the total in single precision: an entry of probability 0 is never drawn."""


def uniforms(seed: int, count: int) -> Tensor:
    """Returns `count` pseudorandom numbers in [0, 1), of 24 bits each, determined by the 64-bit seed."""
    words = torch.frombuffer(bytearray(Random(seed % (1 << 64)).randbytes(4 * count)), dtype=torch.int32)
    return (words.bitwise_and(0xFFFFFF) * 2.0**-24).clamp_(max=BELOW_ONE)


def draw(logits: Tensor, uniform: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Draws one token per row and its log-probability, both `[B]`, from logits `[B, V]`, uniform and temperature `[B]`.
    Temperature 0 is greedy, with the log-probability of the untempered distribution."""
    greedy = temperature == 0
    peak, best = logits.max(-1, keepdim=True)
    logits = logits - peak
    if not bool((temperature == 1).all()):
        # After subtracting the peak: a tiny temperature may give minus infinity, which is a valid log-probability.
        logits /= torch.where(greedy, 1.0, temperature)[:, None]
    mass = logits.exp().cumsum(-1)
    total = mass[:, -1:]
    ids = torch.searchsorted(mass, uniform[:, None] * total, right=True).clamp_(max=logits.shape[-1] - 1)
    if bool(greedy.any()):
        ids = torch.where(greedy[:, None], best, ids)
    logprobs = logits.gather(1, ids) - total.log()
    return ids.squeeze(1), logprobs.squeeze(1)
