"""Proves that an engine computes what the trainer computes, before a sample of it counts.

What always holds: the figures to be met come from the trainer's own forward pass, in float32. An engine that answers
as before although the trainer changed is found out, also where the change is smaller than rounding is allowed to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from appliance.inference.vllm.process import EngineFault

PROMPTS = 8
LENGTH = 72
"""Tokens of a prompt, at most: more than two blocks of the engine's cache."""
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.5, "float16": 0.1}
"""Most difference of a log-probability, by the numbers that the engine computes in."""
CHANGED = 1e-5
"""A trainer whose log-probabilities moved by more has changed; an engine's then move, too, if only by a bit."""


@dataclass(frozen=True)
class Reference:
    """What the trainer computes for fixed prompts."""

    prompts: tuple[tuple[int, ...], ...]
    scores: torch.Tensor
    """Of each prompt's tokens but its first `[P, L - 1]`."""
    best: torch.Tensor
    """Of the likeliest token behind each prompt `[P]`."""
    dtype: str
    """What the trainer's layers compute in."""

    @property
    def finite(self) -> bool:
        return bool(self.scores.isfinite().all() and self.best.isfinite().all())


@torch.no_grad()
def reference(model: Any, slots: int) -> Reference:
    """Runs a transformers model on the prompts, which are the same for all models with this vocabulary."""
    vocabulary = model.get_input_embeddings().weight.shape[0]
    length = min(LENGTH, slots - 1)
    # A fixed sequence (a linear congruence) that visits much of any vocabulary.
    drawn = [(1103515245 * (at + 7) ** 2 + 12345 * at) % 2147483647 % vocabulary for at in range(PROMPTS * length)]
    prompts = torch.tensor(drawn).view(PROMPTS, length)
    place = next(model.parameters()).device
    training = model.training
    model.eval()
    try:
        logprobs = model(input_ids=prompts.to(place)).logits.float().log_softmax(-1).cpu()
    finally:
        model.train(training)
    scores = logprobs[:, :-1].gather(2, prompts[:, 1:, None]).squeeze(2)
    dtype = str(model.get_input_embeddings().weight.dtype).removeprefix("torch.")
    return Reference(tuple(map(tuple, prompts.tolist())), scores, logprobs[:, -1].max(-1).values, dtype)


def compare_scores(
    now: Reference,
    scores: Sequence[Sequence[float]],
    before: Sequence[tuple[Reference, torch.Tensor]],
    tolerance: float,
) -> tuple[float, torch.Tensor]:
    """Returns the largest difference and what the engine gave. Raises EngineFault.

    `before` holds the trainer's and this engine's figures of other weights: those before these, those below an
    adapter."""
    if [len(row) for row in scores] != [len(row) for row in now.scores]:
        raise EngineFault("the engine scored other tokens than requested")
    given = torch.tensor(scores)
    for other, seen in before:
        same = other.prompts == now.prompts and torch.equal(seen, given)
        if same and bool((other.scores - now.scores).abs().max() > CHANGED):
            raise EngineFault("the trainer changed, and the engine answers as before, to the bit")
    worst = _worst(given - now.scores)
    if not worst <= tolerance:
        raise EngineFault(
            f"a log-probability of the engine is {worst:.2e} away from the trainer's; {tolerance:.0e} is allowed"
        )
    return worst, given


def compare_sampled(now: Reference, drawn: Sequence[float], tolerance: float) -> float:
    """Compares the log-probabilities of greedily sampled tokens, whose prompts lay in the cache. Raises EngineFault."""
    worst = _worst(torch.tensor(drawn) - now.best)
    if not worst <= tolerance:
        raise EngineFault(
            f"what was sampled behind a cached prompt is {worst:.2e} away from the trainer's log-probability; "
            f"{tolerance:.0e} is allowed: the cache holds another model's keys"
        )
    return worst


def _worst(difference: torch.Tensor) -> float:
    return difference.abs().max().item()
