"""Draws one token for each row by inverting the cumulative distribution.

Each request brings its own stream of uniform numbers, one for each position, made from its seed. So what a row draws
depends on its logits and its seed, never on which other rows are in the batch or on how they are scheduled. One uniform
number a row also costs far less than noise for each entry of the vocabulary.
"""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

BELOW_ONE = 1 - 2.0**-22
"""Keeps `uniform * total` below the total in single precision: an entry of probability 0 is never drawn."""


def uniforms(seed: int, count: int) -> Tensor:
    """Returns `count` numbers in [0, 1), of 24 bits each, that depend on the seed alone; seeds have 64 bits."""
    words = torch.frombuffer(bytearray(Random(seed % (1 << 64)).randbytes(4 * count)), dtype=torch.int32)
    return (words.bitwise_and(0xFFFFFF) * 2.0**-24).clamp_(max=BELOW_ONE)


def draw(logits: Tensor, uniform: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Draws one id for each row and its log-probability, both `[B]`, of logits `[B, V]`, uniform and temperature `[B]`.

    Temperature 0 is greedy, with the log-probability of the untempered distribution.
    """
    greedy = temperature == 0
    peak, best = logits.max(-1, keepdim=True)
    logits = logits - peak
    if not bool((temperature == 1).all()):
        # Behind the peak, for a quotient by the smallest temperature may be infinite: minus infinity is a probability.
        logits /= torch.where(greedy, 1.0, temperature)[:, None]
    mass = logits.exp().cumsum(-1)
    total = mass[:, -1:]
    ids = torch.searchsorted(mass, uniform[:, None] * total, right=True).clamp_(max=logits.shape[-1] - 1)
    if bool(greedy.any()):
        ids = torch.where(greedy[:, None], best, ids)
    logprobs = logits.gather(1, ids) - total.log()
    return ids.squeeze(1), logprobs.squeeze(1)
