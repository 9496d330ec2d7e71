"""One training step after another: from recorded rollouts and groups to new weights.

What always holds. A step is a pure function of (weights, optimizer state, records of the step, seed, step): on one
machine's CPU with one number of threads, replaying the recorded steps from a checkpoint gives the same bits as training
that was never interrupted. Steps are taken in order, each once. Rollouts are trained on as they were sampled. A step
whose groups carry no signal changes nothing but the step count.

Settings beside the recipe are those of 2508.20722 where it gives them; AdamW's betas (.9, .95) and no weight decay are
those that were measured on the embedded policy model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from appliance.learning.batches import Sample, collate, micro_batches, samples
from appliance.learning.determinism import seeded
from appliance.learning.errors import LearningError
from appliance.learning.objective import Grpo, Objective
from appliance.learning.recipe import TrainingRecipe
from appliance.learning.scoring import score
from appliance.learning.state import Progress, load_state, recipe_digest, save_state
from appliance.records import Group, Judged

BETAS = (0.9, 0.95)


@dataclass
class _Sums:
    """Over the tokens of a step; still on the model's device."""

    tokens: int = 0
    loss: float = 0.0
    ratio: float = 0.0
    clipped: float = 0.0
    entropy: float = 0.0


class Trainer:
    """Trains `model` in place. Not thread-safe."""

    def __init__(
        self,
        model: nn.Module,
        recipe: TrainingRecipe,
        seed: int,
        *,
        companions: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`companions` is the model folder whose tokenizer and configuration go into each checkpoint."""
        self.model = model
        self.recipe = recipe
        self.step = 0
        """Steps done; the next one to train."""
        self._seed = seed
        self._companions = companions
        self._clock = clock
        self._objective: Objective = Grpo(recipe.clip_low, recipe.clip_high)
        self._device = next(model.parameters()).device
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, betas=BETAS, weight_decay=0.0)

    def train_step(self, step: int, judged: Sequence[Judged], groups: Sequence[Group]) -> dict[str, float]:
        """Trains on what `groups` kept of `judged` and returns figures about it:

        `loss`, `entropy` (nats a token), `ratio` (mean), `clip_fraction`, `gradient_norm` (before clipping, mean of the
        minibatches), `mismatch_kl` (nats a token, between sampler and trainer before the first update), `tokens`
        (trained on), `rollouts` (trained on), `groups` (kept), `learning_rate`, `seconds`.

        Raises LearningError when the step is out of order, the rollouts were not sampled at the recipe's temperature,
        or the gradient is not finite; the weights are then as they were before the minibatch.
        """
        started = self._clock()
        if step != self.step:
            raise LearningError(
                f"step {step} does not follow {self.step - 1}", hint="replay the recorded steps in order"
            )
        self._refuse_other_temperatures(judged)
        chosen = samples(judged, groups)
        rate = self._set_learning_rate(step)
        norms: list[float] = []
        sums, mismatch = _Sums(), 0.0
        self.model.train()
        with seeded(self._device, "training", self._seed, step):
            for minibatch in self._minibatches(chosen, step):
                first = not norms
                norm, kl = self._update(minibatch, sums)
                mismatch = kl if first else mismatch
                norms.append(norm)
        self.model.eval()
        self.step += 1
        tokens = max(1, sums.tokens)
        return {
            "loss": sums.loss / tokens,
            "entropy": sums.entropy / tokens,
            "ratio": sums.ratio / tokens,
            "clip_fraction": sums.clipped / tokens,
            "gradient_norm": math.fsum(norms) / max(1, len(norms)),
            "mismatch_kl": mismatch,
            "tokens": float(sums.tokens),
            "rollouts": float(len(chosen)),
            "groups": float(sum(bool(group.kept) for group in groups)),
            "learning_rate": rate,
            "seconds": self._clock() - started,
        }

    def save(self, folder: Path, notes: Mapping[str, Any] | None = None) -> str:
        """Writes a checkpoint (`notes` are the caller's, JSON) and returns its digest. Raises CheckpointError."""
        return save_state(folder, self.model, self._optimizer, self._progress(notes or {}), self._companions)

    def restore(self, folder: Path) -> dict[str, Any]:
        """Goes back to a checkpoint and returns the caller's notes. Raises CheckpointError; nothing is changed then."""
        progress = load_state(folder, self.model, self._optimizer, self._progress({}))
        self.step = progress.step
        return progress.notes

    def _progress(self, notes: Mapping[str, Any]) -> Progress:
        recipe = recipe_digest(self.recipe)
        return Progress(kind="training", step=self.step, seed=self._seed, recipe=recipe, notes=dict(notes))

    def _refuse_other_temperatures(self, judged: Sequence[Judged]) -> None:
        others = {one.rollout.temperature for one in judged} - {self.recipe.temperature}
        if others:
            raise LearningError(
                f"rollouts were sampled at temperature {min(others)}, the recipe trains at {self.recipe.temperature}",
                hint="sample training rollouts at the recipe's temperature: their log-probabilities depend on it",
            )

    def _set_learning_rate(self, step: int) -> float:
        rate = self.recipe.learning_rate * min(1.0, (step + 1) / max(1, self.recipe.warmup_steps))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _minibatches(self, chosen: Sequence[Sample], step: int) -> list[list[Sample]]:
        """A shuffled split into as many updates as the recipe asks for; none when there is nothing to train on."""
        shuffled = Random(f"{self._seed}/{step}/minibatches").sample(chosen, len(chosen))
        size = math.ceil(len(shuffled) / self.recipe.minibatches)
        return [shuffled[start : start + size] for start in range(0, len(shuffled), size or 1)]

    def _update(self, minibatch: Sequence[Sample], sums: _Sums) -> tuple[float, float]:
        """One optimizer step; returns the gradient's norm and the mismatch in nats a token."""
        total = sum(one.trained_tokens for one in minibatch)
        mismatch = 0.0
        self._optimizer.zero_grad(set_to_none=True)
        for micro in micro_batches(minibatch, self.recipe.micro_batch):
            batch = collate(micro).to(self._device)
            mask, sampled = batch.mask[:, 1:], batch.logprobs[:, 1:]
            scores = score(self.model, batch.ids, batch.mask, self.recipe.temperature)
            result = self._objective(scores.logprobs, sampled, batch.advantages[:, None].expand_as(mask), mask)
            (result.loss / total).backward()  # type: ignore[no-untyped-call]
            mismatch += mismatch_kl(scores.logprobs.detach()[mask], sampled[mask]).item()
            sums.loss += result.loss.item()
            sums.ratio += result.ratio.item()
            sums.clipped += result.clipped.item()
            sums.entropy += scores.entropy.item()
        sums.tokens += total
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.gradient_norm))
        if not math.isfinite(norm):
            self._optimizer.zero_grad(set_to_none=True)
            raise LearningError(
                f"the gradient of step {self.step} is {norm}",
                hint="go back to the last checkpoint and lower training.learning_rate",
            )
        self._optimizer.step()
        return norm, mismatch / total


def mismatch_kl(trainer: Tensor, sampler: Tensor) -> Tensor:
    """Sum over tokens of an estimate of KL(sampler || trainer), from the log-probabilities of sampled tokens [N].

    r - 1 - log r with r = p_trainer / p_sampler: without bias and never negative (Schulman 2020, "k3").
    """
    difference = trainer - sampler
    return (torch.expm1(difference) - difference).sum()
