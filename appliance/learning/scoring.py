"""Scores given tokens under a causal language model: the one place where the model runs for training.

Sequences are padded on the right and attention is causal, so no real token ever sees padding and no attention mask is
needed. Logits are taken to float32 before the softmax (the mismatch with the sampler grows otherwise).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Scores:
    logprobs: Tensor
    """[B, T-1]: of token t + 1 at position t; exactly 0, without gradient, where the mask is off."""
    entropy: Tensor
    """Scalar: sum over the masked tokens of the entropy of the distribution they were scored under, in nats."""


def score(model: nn.Module, ids: Tensor, mask: Tensor, temperature: float = 1.0) -> Scores:
    """Scores the masked tokens of `ids` [B, T] (integers) under `mask` [B, T] (bool) at `temperature`.

    The first token of a sequence has no predecessor and is never scored. Only masked tokens are put through the
    softmax: two thirds of a conversation are prompt, results and padding.
    """
    wanted = mask[:, 1:]
    logits = model(input_ids=ids[:, :-1], use_cache=False).logits[wanted].float() / temperature
    all_logprobs = torch.log_softmax(logits, dim=-1)
    chosen = all_logprobs.gather(1, ids[:, 1:][wanted][:, None]).squeeze(1)
    with torch.no_grad():
        entropy = -(all_logprobs.exp() * all_logprobs).sum()
    scattered = torch.zeros(wanted.shape, dtype=chosen.dtype, device=chosen.device)
    return Scores(scattered.masked_scatter(wanted, chosen), entropy)
