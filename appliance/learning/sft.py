r"""The warm start is supervised learning on generated demonstrations, which teaches format and tool use only.

    <|user|>...<|end|><|assistant|>  <|tool|>code<|end|>  <|result|>...<|end|><|assistant|>  \boxed{6}<|end|>
    not trained on                   trained on           not trained on                     trained on

A state machine that is driven a few steps at a time. Which demonstrations a step sees is a pure function of (seed,
step), so a restored warm start goes on exactly as it would have. Whether it has learned enough is the caller's question
(success on validation tasks); how it is taught is here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

import torch
from torch import Tensor, nn

from appliance.inference.decoder import padded
from appliance.inference.shards import whole
from appliance.learning.errors import LearningError, NotFiniteError
from appliance.learning.ranks import ALONE, Ranks
from appliance.learning.recipe import SFT_PASS_TOKENS, WarmStartRecipe
from appliance.learning.scoring import Scorer, Scores
from appliance.learning.sharding import scored, split
from appliance.learning.state import Learner
from appliance.learning.trainer import require_finite
from appliance.rendering.renderer import Ids, Renderer

BETAS = (0.9, 0.98)
WEIGHT_DECAY = 0.01
GRADIENT_NORM = 1.0
FINAL_RATE = 0.1
"""The learning rate falls linearly to this share of its height."""
CHUNK_BATCHES = 16
"""Batches drawn together and sorted by length: less padding, and still a mixture from step to step."""


@dataclass(frozen=True)
class Encoded:
    """Is one demonstration in tokens; both tuples are of equal length."""

    ids: tuple[int, ...]
    mask: tuple[bool, ...]
    """True for what the policy model has to write itself."""


def encode(renderer: Renderer, prompt: Ids, calls: Sequence[tuple[str, str]], last: str) -> Encoded:
    """Writes a conversation in which each call (code, output as shown) is made; `last` is the last turn's text.

    Raises LearningError where the format cannot write it as one sequence that only grows."""
    ids, mask = prompt, [False] * len(prompt)
    for code, shown in calls:
        turn = renderer.call(code)
        forced = renderer.follow(ids, turn, shown)
        if forced is None:
            raise LearningError(
                "the model's format writes earlier turns anew, and a demonstration is one sequence of tokens",
                hint="take a model whose format keeps what was said",
            )
        ids += turn + forced
        mask += [True] * len(turn) + [False] * len(forced)
    turn = renderer.answer(last)
    return Encoded(ids + turn, (*mask, *[True] * len(turn)))


class SftTrainer(Learner):
    kind = "warm_start"

    def __init__(
        self,
        model: nn.Module,
        demonstrations: Sequence[Encoded],
        recipe: WarmStartRecipe,
        seed: int,
        *,
        max_tokens: int,
        companions: Mapping[str, bytes] | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """Demonstrations longer than `max_tokens` are left out, and counted in `dropped`; of several `ranks` each keeps
        its part of the model. The rest as in `Learner`.

        Raises LearningError when nothing is left to learn from.
        """
        scorer = Scorer(model)
        self._score: Callable[..., Scores] = scorer if ranks.alone else partial(scored, split(model, scorer))
        optimizer = torch.optim.AdamW(
            model.parameters(), lr=recipe.learning_rate, betas=BETAS, weight_decay=WEIGHT_DECAY
        )
        super().__init__(model, recipe, seed, optimizer, companions, ranks)
        self.recipe = recipe
        self._data = [one for one in demonstrations if len(one.ids) <= max_tokens and any(one.mask)]
        self.dropped = len(demonstrations) - len(self._data)
        if not self._data:
            raise LearningError(
                f"none of {len(demonstrations)} demonstrations fits into {max_tokens} tokens",
                hint="raise agent.max_tokens, or make more demonstrations",
            )
        self._chunk: tuple[int, list[list[Encoded]]] = (-1, [])

    @property
    def done(self) -> bool:
        """Says whether the recipe's steps are used up."""
        return self.step >= self.recipe.steps

    def run_steps(self, count: int) -> dict[str, float]:
        """Takes up to `count` more steps, fewer at the end of the recipe, and returns figures about them:

        `steps` taken, `loss` (nats a trained token, mean of the steps), `tokens` (padding included), `seconds`.
        Raises NotFiniteError when the loss or the gradient is not finite; the weights are then as they were before it.
        """
        started = time.monotonic()
        losses: list[float] = []
        tokens = 0
        self.model.train()
        while len(losses) < count and not self.done:
            ids, mask = _collate(self._batch(self.step))
            losses.append(self._update(ids.to(self._device), mask.to(self._device)))
            tokens += ids.numel()
            self.step += 1
        self.model.eval()
        return {
            "steps": float(len(losses)),
            "loss": math.fsum(losses) / max(1, len(losses)),
            "tokens": float(tokens),
            "seconds": time.monotonic() - started,
        }

    def require_finite(self, ids: Sequence[int]) -> None:
        """Looks at the weights as `Trainer.require_finite`."""
        require_finite(self.model, self._score, ids, self.step)

    def _rate(self, step: int) -> float:
        rise = min(1.0, (step + 1) / max(1, self.recipe.warmup_steps))
        fall = 1.0 - (1.0 - FINAL_RATE) * step / self.recipe.steps
        return self.recipe.learning_rate * rise * fall

    def _batch(self, step: int) -> list[Encoded]:
        """Draws the demonstrations of one step, of similar length."""
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

    def _update(self, ids: Tensor, mask: Tensor) -> float:
        tokens = mask[:, 1:].sum()
        self._optimizer.zero_grad(set_to_none=True)
        found = 0.0
        with self._seeded("warm start"):
            for rows, counts in self._ranks.share(_parts(len(ids), ids.shape[1], self._ranks.world)):
                loss = -self._score(ids[rows], mask[rows] & counts, 1.0).logprobs.sum() / tokens
                loss.backward()  # type: ignore[no-untyped-call]
                found += loss.item()
        whole_loss = self._ranks.summed({"loss": found})["loss"]
        norm = float(whole(nn.utils.clip_grad_norm_(self.model.parameters(), GRADIENT_NORM)))
        for name, value in (("loss", whole_loss), ("gradient", norm)):
            if not math.isfinite(value):
                self._optimizer.zero_grad(set_to_none=True)
                raise NotFiniteError(
                    f"the {name} of warm-start step {self.step} is {value}",
                    hint="go back to the last checkpoint and lower warm_start.learning_rate",
                )
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate(self.step)
        self._optimizer.step()
        return whole_loss


def _parts(rows: int, width: int, ranks: int) -> list[slice]:
    """Cuts a batch into as many parts as there are ranks, fewer where it has fewer rows; into more of them where these
    would have more tokens than a pass may."""
    each = min(-(-rows // ranks), max(1, SFT_PASS_TOKENS // width))
    return [slice(start, start + each) for start in range(0, rows, each)]


def _collate(chosen: Sequence[Encoded]) -> tuple[Tensor, Tensor]:
    """Makes ids [B, T] int64 and mask [B, T] bool, padded on the right."""
    return padded([one.ids for one in chosen]), padded([one.mask for one in chosen], False)
