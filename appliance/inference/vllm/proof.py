"""Proves that an engine computes what the trainer computes, before its samples count; an invalid answer is an engine
fault.

Invariants: expected values come from the trainer's own forward pass, in float32. An engine that answers as before
although the trainer changed is detected, even if the change is below the rounding tolerance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import ConfigDict, Field, ValidationError

from appliance.inference.vllm.process import EngineFault
from common.bounded_models import FirstErrorModel, first_fault

PROMPTS = 8
LENGTH = 72
"""Maximum tokens per prompt: more than two KV blocks of the engine."""
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.5, "float16": 0.1, "fp8": 6.0}
"""Maximum difference of a log-probability, by the engine's data type. For FP8 2.5 times what rounding the layers
of SmolLM2 changes with these random tokens, 2.4; other weights are found by their digest."""
CHANGED = 1e-5
"""Change of the trainer's log-probabilities above which an engine's must differ in at least one bit."""


@dataclass(frozen=True)
class Reference:
    """The trainer's log-probabilities for fixed prompts."""

    prompts: tuple[tuple[int, ...], ...]
    scores: torch.Tensor
    """Log-probabilities of each prompt's tokens except the first `[P, L - 1]`."""
    best: torch.Tensor
    """Log-probability of the likeliest token after each prompt `[P]`."""
    dtype: str
    """Data type of the trainer's layers."""

    @property
    def finite(self) -> bool:
        return bool(self.scores.isfinite().all() and self.best.isfinite().all())


@torch.no_grad()
def reference(model: Any, slots: int) -> Reference:
    """Computes the trainer's log-probabilities of fixed prompts, which depend only on the vocabulary's size."""
    vocabulary = model.get_input_embeddings().weight.shape[0]
    length = min(LENGTH, slots - 1)
    # A fixed sequence (a linear congruence) that covers much of any vocabulary.
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
    """Compares an engine's log-probabilities of fixed prompts with the trainer's; returns the largest difference, and
    the engine's scores as a tensor. Raises EngineFault. `before` has the trainer's and this engine's values for other
    weights: the previous ones, and those below an adapter."""
    if [len(row) for row in scores] != [len(row) for row in now.scores]:
        raise EngineFault("the engine scored other tokens than requested")
    given = torch.tensor(scores)
    for other, seen in before:
        same = other.prompts == now.prompts and torch.equal(seen, given)
        if same and bool((other.scores - now.scores).abs().max() > CHANGED):
            raise EngineFault("the trainer changed, but the engine's answers are bit-identical to before")
    worst = _worst(given - now.scores)
    if not worst <= tolerance:
        raise EngineFault(
            f"the engine's log-probabilities differ from the trainer's by {worst:.2e}; {tolerance:.0e} is allowed"
        )
    return worst, given


def compare_sampled(now: Reference, drawn: Sequence[float], tolerance: float) -> float:
    """Compares log-probabilities of tokens that an engine sampled greedily after cached prompts with the trainer's;
    returns the largest difference. Raises EngineFault."""
    worst = _worst(torch.tensor(drawn) - now.best)
    if not worst <= tolerance:
        raise EngineFault(
            f"samples after a cached prompt differ from the trainer's log-probabilities by {worst:.2e}; "
            f"{tolerance:.0e} is allowed: the cache has another model's keys"
        )
    return worst


def _worst(difference: torch.Tensor) -> float:
    return difference.abs().max().item()


LogProbability = Annotated[float, Field(lt=1e-3, allow_inf_nan=False)]


class _Answer(FirstErrorModel):
    model_config = ConfigDict(strict=True, defer_build=True)


class _RowReport(_Answer):
    number: int
    ids: list[int]
    logprobs: list[LogProbability]
    ended: str
    cached: int
    versions: list[list[str | int]]


class _Reports(_Answer):
    reports: list[_RowReport]


class _Scores(_Answer):
    scores: list[list[LogProbability]]


ANSWERS: dict[str, type[_Answer]] = {"step": _Reports, "probe": _Reports, "drain": _Reports, "score": _Scores}
"""Schema by request kind; other answers are compared field by field by their callers."""


def require_answer(kind: str, answer: dict[str, Any]) -> None:
    """Raises EngineFault unless the engine process's answer is valid for this kind of request."""
    if kind not in ANSWERS:
        return
    try:
        ANSWERS[kind].model_validate(answer)
    except ValidationError as error:
        raise EngineFault(f"invalid answer of the engine to {kind}: {first_fault(error)}") from error
