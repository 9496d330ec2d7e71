r"""Warm start: supervised learning on generated demonstrations, which teaches only format and tool use.

  <|user|>...<|end|><|assistant|>  <|tool|>code<|end|>  <|result|>...<|end|><|assistant|>  \boxed{6}<|end|>
  not trained on                   trained on           not trained on                     trained on

A state machine driven a few steps at a time. A step's demonstrations are a pure function of (seed, step), so a restored
warm start continues identically. The caller decides when it has learned enough (success on validation tasks). Trained
weights and passes are as in training: `updates`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from torch import nn

from appliance.inference.torch.decoder import padded
from appliance.learning.errors import LearningError
from appliance.learning.packing import Tokens, token_batches
from appliance.learning.ranks import ALONE, Ranks
from appliance.learning.recipes.recipe import SFT_PASS_TOKENS, TrainingRecipe, WarmStartRecipe
from appliance.learning.training.updates import UpdatingLearner
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import Ids, Renderer

BETAS = (0.9, 0.98)
WEIGHT_DECAY = 0.01
GRADIENT_NORM = 1.0
FINAL_RATE = 0.1
"""Final learning rate, reached linearly, as a share of the peak."""
FULL = TrainingRecipe()
"""All weights, in float32, in padded passes."""
NEW = TrainingRecipe(optimizer="muon")
"""The same for an untrained model, which learns in a third of AdamW's steps."""
CHUNK_BATCHES = 16
"""Batches drawn together and sorted by length: less padding, still mixed from step to step."""


@dataclass(frozen=True)
class Encoded:
    """One demonstration as tokens; both tuples have equal length."""

    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    """True for tokens that the policy model must write itself."""


def encode(renderer: Renderer, prompt: Ids, calls: Sequence[tuple[str, str]], last: str) -> Encoded:
    """Encodes a demonstration, a conversation with its calls (code, output as shown), as tokens; `last` is the last
    turn's text. Raises LearningError if the format cannot write it as one append-only sequence."""
    ids, mask = prompt, [False] * len(prompt)
    for code, shown in calls:
        turn = renderer.call(code)
        forced = renderer.follow(ids, turn, (TextMessage(shown, "tool"),))
        if forced is None:
            raise LearningError(
                "the model's format rewrites earlier turns, but a demonstration is one sequence of tokens",
                hint="use a model whose format keeps earlier turns",
            )
        ids += turn + forced
        mask += [True] * len(turn) + [False] * len(forced)
    turn = renderer.answer(last)
    return Encoded(ids + turn, (*mask, *[True] * len(turn)))


class SftTrainer(UpdatingLearner):
    kind = "warm_start"
    rows, named, rate = "demonstrations", "warm-start step", "warm_start.learning_rate"

    def __init__(
        self,
        model: nn.Module,
        demonstrations: Sequence[Encoded],
        recipe: WarmStartRecipe,
        seed: int,
        *,
        max_tokens: int,
        way: TrainingRecipe = FULL,
        companions: Mapping[str, bytes] | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """Prepares supervised fine-tuning of the model on demonstrations. Those longer than `max_tokens` are dropped,
        and counted in `dropped`. The rest is as in `UpdatingLearner`; `way` decides the trained weights and passes.
        Raises LearningError if no demonstration is left."""
        super().__init__(model, recipe, way, seed, companions, ranks, betas=BETAS, weight_decay=WEIGHT_DECAY)
        self.recipe = recipe
        self._data = [one for one in demonstrations if len(one.ids) <= max_tokens and any(one.mask)]
        self.dropped = len(demonstrations) - len(self._data)
        if not self._data:
            raise LearningError(
                f"none of {len(demonstrations)} demonstrations fits into {max_tokens} tokens",
                hint="raise agent.max_tokens, or generate more demonstrations",
            )
        self._chunk: tuple[int, list[list[Encoded]]] = (-1, [])

    @property
    def done(self) -> bool:
        """True once the recipe's training steps are done."""
        return self.step >= self.recipe.steps

    def run_steps(self, count: int) -> dict[str, float]:
        """Takes up to `count` more supervised fine-tuning steps, fewer at the end of the recipe, and returns figures:
        `steps` taken, `loss` (nats per trained token, mean of the steps), `tokens` (with padding), `pass_tokens`
        (maximum per pass, once one was halved), `seconds`. Raises NotFiniteError if loss or gradient is not finite; the
        weights are then unchanged."""
        started = time.monotonic()
        losses: list[float] = []
        tokens = 0
        self.model.train()
        while len(losses) < count and not self.done:
            batch = self._batch(self.step)
            losses.append(self._in_memory(self._update, batch))
            tokens += len(batch) * max(len(one.ids) for one in batch)
            self.step += 1
        self.model.eval()
        return {
            "steps": float(len(losses)),
            "loss": math.fsum(losses) / max(1, len(losses)),
            "tokens": float(tokens),
            **self._limited(),
            "seconds": time.monotonic() - started,
        }

    def _rate(self, step: int) -> float:
        rise = min(1.0, (step + 1) / max(1, self.recipe.warmup_steps))
        fall = 1.0 - (1.0 - FINAL_RATE) * step / self.recipe.steps
        return self.recipe.learning_rate * rise * fall

    def _batch(self, step: int) -> list[Encoded]:
        """Returns the demonstrations to train on in one step, of similar length."""
        size = min(len(self._data), self.recipe.batch * CHUNK_BATCHES)
        per_chunk = math.ceil(size / self.recipe.batch)
        number = step // per_chunk
        if self._chunk[0] != number:
            rng = Random(f"{self._seed}/warm start/{number}")
            drawn = sorted(rng.sample(self._data, size), key=lambda one: len(one.ids))
            batches = [drawn[start : start + self.recipe.batch] for start in range(0, size, self.recipe.batch)]
            rng.shuffle(batches)
            self._chunk = (number, batches)
        return self._chunk[1][step % per_chunk]

    def _whole_pass(self, batch: Sequence[Tokens]) -> int:
        """Returns the size of a full forward pass over this batch; padded ones are also limited to `SFT_PASS_TOKENS`,
        in tokens."""
        most = super()._whole_pass(batch)
        padded_most = max(1, SFT_PASS_TOKENS // max(len(one.ids) for one in batch))
        return most if self._way.packing else min(most, padded_most)

    def _passes(self, batch: Sequence[Encoded]) -> Sequence[Sequence[Encoded]]:
        """Splits a batch of demonstrations into forward passes: if padded, one per rank, or fewer for a small batch."""
        if self._way.packing:
            return token_batches(batch, self._pass_size(batch))
        each = min(-(-len(batch) // self._ranks.world), self._pass_size(batch))
        return [batch[start : start + each] for start in range(0, len(batch), each)]

    def _update(self, batch: Sequence[Encoded]) -> float:
        tokens = sum(sum(one.mask[1:]) for one in batch)
        self._optimizer.zero_grad(set_to_none=True)
        found = 0.0
        with self._seeded("warm start"):
            for part, counts in self._shared(self._passes(batch)):
                ids = padded([one.ids for one in part]).to(self._device)
                mask = padded([one.mask for one in part], False).to(self._device)
                loss = -self._score(ids, mask, 1.0).logprobs.sum() / tokens
                (loss if counts else loss * 0.0).backward()  # type: ignore[no-untyped-call]
                found += loss.item() if counts else 0.0
        whole_loss = self._ranks.summed({"loss": found})["loss"]
        self._require_finite_value("loss", whole_loss)
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate(self.step)
        self._take_step(GRADIENT_NORM)
        return whole_loss
