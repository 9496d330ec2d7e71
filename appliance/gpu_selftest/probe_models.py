"""Models with random weights and rollouts of random tokens for GPU probes.

Invariants: equal sizes give equal models and rollouts.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from appliance.learning.recipes.recipe import TrainingRecipe
from appliance.learning.signal.grouping import make_groups
from appliance.learning.training.trainer import Trainer
from appliance.records.rollouts import Message, Purpose, Role, Rollout, RolloutEnd, WeightSpan
from appliance.records.training import Judged
from verifiers.contract.verdict import Outcome, Verdict

PLAIN = {"rollouts_per_task": 4, "keep": 4, "selector": "uniform", "packing": True}
"""Recipe that learns from every rollout."""


@dataclass(frozen=True)
class ProbeSize:
    """Size of a GPU probe's model and batch."""

    hidden: int
    layers: int
    vocabulary: int
    rollouts: int
    tokens: int


SMALL = ProbeSize(hidden=64, layers=2, vocabulary=256, rollouts=8, tokens=48)
HALF_BILLION = ProbeSize(hidden=1024, layers=28, vocabulary=151_936, rollouts=32, tokens=2048)
"""Shape of Qwen3-0.6B."""
MIDDLING = ProbeSize(hidden=512, layers=8, vocabulary=32_000, rollouts=16, tokens=512)
"""Model whose activations take some 5 GB: more than its weights, and less than a GPU has."""


def random_model(size: ProbeSize, device: torch.device) -> Any:
    """Creates a Qwen3 model with random weights, in float32 and evaluation mode."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=3 * size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=max(2, size.hidden // 64),
        num_key_value_heads=max(1, size.hidden // 128),
        head_dim=32 if size.hidden < 256 else 128,
        max_position_embeddings=4 * size.tokens,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Qwen3ForCausalLM(config).to(device).eval()


def make_trainer(device: torch.device, size: ProbeSize, recipe: TrainingRecipe) -> Trainer:
    """Creates a trainer of a random model on that device."""
    return Trainer(random_model(size, device), recipe, 1, max_tokens=size.tokens)


def learn_step(trainer: Trainer, judged: Sequence[Judged]) -> None:
    """Takes the trainer's next step on these rollouts."""
    trainer.train_step(trainer.step, judged, make_groups(judged, trainer.recipe, 0))


def drawn_batch(size: ProbeSize, step: int = 0) -> Sequence[Judged]:
    """Returns judged rollouts of random tokens, the second half of each sampled, every other one right."""
    random = Random(step)
    ids = [tuple(random.randrange(1, size.vocabulary) for _ in range(size.tokens)) for _ in range(size.rollouts)]
    cut = size.tokens // 2
    guessed = (-5.0,) * (size.tokens - cut)
    return [drawn_rollout(step, number, one[:cut], one[cut:], guessed) for number, one in enumerate(ids)]


def drawn_rollout(
    step: int, number: int, prompt: tuple[int, ...], drawn: tuple[int, ...], logprobs: tuple[float, ...]
) -> Judged:
    """Returns a judged rollout of these tokens, four per task; every other one is right."""
    span = WeightSpan(version="w", start=0, end=len(drawn))
    nodes = (
        Message(parent=None, role=Role.USER, ids=prompt, sampled=False),
        Message(parent=0, role=Role.ASSISTANT, ids=drawn, sampled=True, logprobs=logprobs, weights=(span,)),
    )
    task, sample, right = f"t{number // 4}", number % 4, number % 2 == 0
    rollout = Rollout(
        id=f"probe/{step}/{task}/{sample}",
        cycle="probe",
        step=step,
        task=task,
        sample=sample,
        purpose=Purpose.TRAIN,
        temperature=1.0,
        nodes=nodes,
        ended=RolloutEnd.ANSWERED,
        answer="6",
        answers=1,
        seconds=0.0,
    )
    verdict = Verdict(
        outcome=Outcome.PASS if right else Outcome.FAIL,
        score=float(right),
        reason="drawn",
        verifier="none",
        version="1",
        seconds=0.0,
    )
    return Judged(rollout=rollout, verdict=verdict, family="none")


def freed() -> None:
    """Frees unused memory of this process and its GPUs."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def furthest(first: Trainer, second: Trainer) -> float:
    """Returns the largest difference of a weight."""
    pairs = zip(first.model.parameters(), second.model.parameters(), strict=True)
    return max(float((one - other).detach().abs().max()) for one, other in pairs)
