"""Takes training steps, from recorded rollouts and groups to new weights.

Invariants: a step is a pure function of (weights, optimizer state, the step's records, seed, step): on one machine's
CPU with one thread count, replay from a checkpoint is bit-equal to uninterrupted training. Steps run in order, each
once. Rollouts are trained on as sampled. A step whose groups carry no signal only advances the step count. A pass that
runs out of memory is halved (`updates`).

Settings outside the recipe follow 2508.20722 where it gives them; AdamW's betas (.9, .95) and no weight decay were
measured on the embedded policy model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from random import Random
from typing import Any

import torch
from torch import Tensor, nn

from appliance.inference.adapters import whole
from appliance.inference.torch.routing import routers_of
from appliance.learning.batches import Sample, collate, collate_routes, micro_batches, samples
from appliance.learning.errors import LearningError
from appliance.learning.objectives.registry import OBJECTIVES
from appliance.learning.packing import token_batches
from appliance.learning.ranks import ALONE, Ranks
from appliance.learning.recipes.recipe import WITHOUT_ROUTES, TrainingRecipe
from appliance.learning.scoring import read_tokens
from appliance.learning.signal.corrections import corrected_losses, mismatch_kl
from appliance.learning.signal.planning import Plans, credited, find_plans, planning_tokens
from appliance.learning.training.distillation import NO_PROMPTS, TeacherScore, behind_prompts, distilled, self_taught
from appliance.learning.training.updates import UpdatingLearner
from appliance.records.training import Group, Judged

MEANS = ("loss", "entropy", "ratio", "clip_fraction", "corrected_fraction", "masked_fraction")
"""Step figures that are means over its trained tokens."""
MISMATCH = ("mismatch_kl", "ratio_low", "ratio_high")
"""Step figures of the mismatch between sampler and trainer before the first update."""


class Trainer(UpdatingLearner):
    kind = "training"
    rows, named, rate = "rollouts", "step", "training.learning_rate"

    def __init__(
        self,
        model: nn.Module,
        recipe: TrainingRecipe,
        seed: int,
        *,
        max_tokens: int,
        companions: Mapping[str, bytes] | None = None,
        first_step: int = 0,
        teacher: TeacherScore | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        """Prepares RL training of the model. `max_tokens` limits a conversation, `first_step` is the number of the
        first step, from which the warm-up counts. With a `teacher`, its scores replace the groups' advantages. The rest
        is as in `UpdatingLearner`."""
        self._routers = routers_of(model)
        config: Any = model.config
        self._positions: float = getattr(config, "max_position_embeddings", None) or math.inf
        self._bound = recipe.needs_routes(config.to_dict(), (name for name, _ in model.named_parameters()))
        if self._bound and self._routers is None:
            raise LearningError(f"{type(model).__name__}: choices of experts cannot be replayed", hint=WITHOUT_ROUTES)
        super().__init__(model, recipe, recipe, seed, companions, ranks)
        self.step = self._first = first_step
        self._teacher = teacher
        self.recipe = recipe
        self._max_tokens = max_tokens

    def train_step(
        self,
        step: int,
        judged: Sequence[Judged],
        groups: Sequence[Group],
        prompts: Mapping[str, Sequence[int]] = NO_PROMPTS,
    ) -> dict[str, float]:
        """Trains on the rollouts of `judged` that `groups` kept. The model itself scores rollouts behind their
        `prompts` (`lesson_prompts`), by rollout id. Returns figures:

        `loss`, `entropy` (nats per token), `ratio` (mean), `clip_fraction`, `gradient_norm` (before clipping, mean of
        the minibatches), `mismatch_kl` (nats per token, between sampler and trainer before the first update),
        `ratio_low` and `ratio_high` (extremes of p_trainer / p_sampler there), `corrected_fraction` and
        `masked_fraction` (of the tokens, by the recipe's `mismatch`), `semantic_entropy` (nats, of the step's plans),
        `planning_fraction` (of the tokens, if they get more credit), `reverse_kl` (nats per token, from a teacher),
        `taught_fraction` (of the tokens, scored behind `prompts`), `pass_tokens` (maximum per pass, once one was
        halved), `tokens` (trained on), `rollouts` (trained on), `groups` (kept), `learning_rate`, `seconds`.

        Raises LearningError if the step is out of order or rollouts have another temperature than the recipe's, and
        NotFiniteError if the gradient is not finite; the weights are then as before the minibatch.
        """
        started = time.monotonic()
        if step != self.step:
            raise LearningError(
                f"step {step} does not follow {self.step - 1}", hint="replay the recorded steps in order"
            )
        self._refuse_other_temperatures(judged)
        plans = self._plans(step, judged, groups)
        chosen, taught = samples(judged, groups), {}
        if self._teacher is not None:
            chosen, divergence = distilled(chosen, self._teacher, self.recipe.temperature)
            taught = {"reverse_kl": divergence}
        elif self.recipe.self_distillation.shown != "nothing":
            lessons = [one for one in behind_prompts(chosen, judged, prompts) if len(one.ids) <= self._positions]
            told = self._in_memory(self._own_scores, lessons) if lessons else {}
            chosen, taught = self_taught(chosen, told, groups, self.recipe.self_distillation.share)
            self._require_finite_value("score of its own tokens", taught["reverse_kl"])
        elif self.recipe.planning.credit:
            chosen = [credited(one, plans.grams, self.recipe.planning.alpha) for one in chosen]
        rate = self._set_learning_rate(step)
        objectives = {one.rollout.id: self.recipe.objective_of(one.family) for one in judged}
        norms: list[float] = []
        sums, mismatch = dict.fromkeys((*MEANS, "tokens"), 0.0), dict.fromkeys(MISMATCH, 0.0)
        self.model.train()
        with self._seeded("training"):
            for minibatch in self._minibatches(chosen, step):
                norm, found = self._in_memory(partial(self._update, sums, objectives), minibatch)
                mismatch = mismatch if norms else found
                norms.append(norm)
        self.model.eval()
        self.step += 1
        return {
            **{name: sums[name] / max(1.0, sums["tokens"]) for name in MEANS},
            "gradient_norm": math.fsum(norms) / max(1, len(norms)),
            **mismatch,
            "semantic_entropy": plans.entropy,
            **self._planned(chosen, plans),
            **taught,
            **self._limited(),
            "tokens": sums["tokens"],
            "rollouts": float(len({one.rollout for one in chosen})),
            "groups": float(sum(bool(group.kept) for group in groups)),
            "learning_rate": rate,
            "seconds": time.monotonic() - started,
        }

    @torch.no_grad()
    def _own_scores(self, lessons: Sequence[Sample]) -> dict[str, list[float]]:
        """Returns log-probabilities of each lesson's masked tokens under the current weights, by rollout."""
        places = {one.rollout: [f"{one.rollout}/{place}" for place in range(one.trained_tokens)] for one in lessons}
        found = dict.fromkeys((name for names in places.values() for name in names), 0.0)
        for micro, counts in self._ranks.share(self._passes(lessons)):
            batch = collate(micro).to(self._device)
            mask = batch.mask[:, 1:]
            scores = self._score(batch.ids, batch.mask, self.recipe.temperature).logprobs
            for one, row, own in zip(micro, scores, mask, strict=True):
                if counts:
                    found |= zip(places[one.rollout], row[own].tolist(), strict=True)
        found = self._ranks.summed(found)
        return {rollout: [found[name] for name in names] for rollout, names in places.items()}

    def _refuse_other_temperatures(self, judged: Sequence[Judged]) -> None:
        others = {one.rollout.temperature for one in judged} - {self.recipe.temperature}
        if others:
            raise LearningError(
                f"rollouts were sampled at temperature {min(others)}, the recipe trains at {self.recipe.temperature}",
                hint="sample training rollouts at the recipe's temperature: their log-probabilities depend on it",
            )

    def _set_learning_rate(self, step: int) -> float:
        rate = self.recipe.learning_rate * min(1.0, (step - self._first + 1) / max(1, self.recipe.warmup_steps))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _minibatches(self, chosen: Sequence[Sample], step: int) -> list[list[Sample]]:
        """Splits training samples at random into the recipe's number of minibatches, one per update; empty without
        samples."""
        shuffled = Random(f"{self._seed}/{step}/minibatches").sample(chosen, len(chosen))
        size = math.ceil(len(shuffled) / self.recipe.minibatches)
        return [shuffled[start : start + size] for start in range(0, len(shuffled), size or 1)]

    def _plans(self, step: int, judged: Sequence[Judged], groups: Sequence[Group]) -> Plans:
        """Returns the strategic n-grams of a step's compared solutions: without lost, rejected or proposer rollouts,
        whose group has a task name of its own."""
        compared = {(group.task, name) for group in groups for name in group.rollouts}
        ordered = sorted(judged, key=lambda each: each.rollout.id)
        sound = [one for one in ordered if (one.rollout.task, one.rollout.id) in compared]
        right, wrong = ([one.rollout for one in sound if one.verdict.passed is passed] for passed in (True, False))
        weight = self.model.get_input_embeddings().weight  # type: ignore[operator]
        rng = Random(f"{self._seed}/{step}/plans")
        return find_plans(right, wrong, lambda ids: whole(weight)[ids.to(weight.device)], rng)

    def _planned(self, chosen: Sequence[Sample], plans: Plans) -> dict[str, float]:
        if self._teacher is not None or not self.recipe.planning.credit:
            return {}
        planned = sum(sum(planning_tokens(one, plans.grams)) for one in chosen)
        return {"planning_fraction": planned / max(1, sum(one.trained_tokens for one in chosen))}

    def _passes(self, minibatch: Sequence[Sample]) -> list[list[Sample]]:
        size = self._pass_size(minibatch)
        if not self.recipe.packing:
            return micro_batches(minibatch, size)
        return token_batches(sorted(minibatch, key=lambda one: one.rollout), size)

    def _replaying(self, micro: Sequence[Sample], wanted: Tensor) -> AbstractContextManager[None]:
        """Context in which a mixture chooses the experts that its sampler chose. Raises LearningError if a sample lacks
        them although the recipe corrects no mismatch."""
        bare = next((one.rollout for one in micro if not one.routes), "")
        if self._bound and bare:
            raise LearningError(f"rollout {bare} lacks its sampler's choices of experts", hint=WITHOUT_ROUTES)
        if self._routers is None or not any(one.routes for one in micro):
            return nullcontext()
        routes = collate_routes(micro, self._routers).to(self._device)
        return self._routers.replaying(routes[read_tokens(wanted)] if self.recipe.packing else routes.flatten(0, 1))

    def _update(
        self, sums: dict[str, float], objectives: Mapping[str, str], minibatch: Sequence[Sample]
    ) -> tuple[float, dict[str, float]]:
        """Takes one optimizer step on a minibatch and adds its token figures to `sums`; `objectives` are those of its
        rollouts. Returns the gradient norm and the mismatch figures before the step."""
        tokens = sum(one.trained_tokens for one in minibatch)
        parts: dict[str, list[Sample]] = {}
        for one in minibatch:
            parts.setdefault(objectives[one.rollout], []).append(one)
        denominators = {name: self._denominator(name, part, tokens) for name, part in parts.items()}
        found = dict.fromkeys((*MEANS, "kl"), 0.0)
        ends = {"low": -math.inf, "high": -math.inf}
        self._optimizer.zero_grad(set_to_none=True)
        for micro, counts in self._shared([one for part in parts.values() for one in self._passes(part)]):
            name = objectives[micro[0].rollout]
            objective, clip = OBJECTIVES[name], self.recipe.clip_of(name)
            batch = collate(micro).to(self._device)
            mask, sampled, advantages = batch.mask[:, 1:], batch.logprobs[:, 1:], batch.advantages[:, 1:]
            with self._replaying(micro, mask):
                scores = self._score(batch.ids, batch.mask, self.recipe.temperature)
                made = corrected_losses(
                    objective, scores.logprobs, sampled, advantages, mask, clip, self.recipe.mismatch
                )
                losses = made.tokens.losses * batch.shares if objective.by_answer else made.tokens.losses
                loss = losses.sum() / denominators[name]
                (loss if counts else loss * 0.0).backward()  # type: ignore[no-untyped-call]
            if not counts:
                continue
            found["kl"] += mismatch_kl(scores.logprobs.detach()[mask], sampled[mask]).item()
            ends["low"] = max(ends["low"], -made.ratios[mask].min().item())
            ends["high"] = max(ends["high"], made.ratios.max().item())
            found["loss"] += loss.item() * tokens
            found["ratio"] += made.tokens.ratios.sum().item()
            found["clip_fraction"] += made.tokens.clipped.sum().item()
            found["corrected_fraction"] += made.correction.corrected.sum().item()
            found["masked_fraction"] += made.correction.masked.sum().item()
            found["entropy"] += scores.entropy.item()
        found, ends = self._ranks.summed(found), self._ranks.largest(ends)
        norm = self._take_step(self.recipe.gradient_norm)
        for name in MEANS:
            sums[name] += found[name]
        sums["tokens"] += tokens
        return norm, dict(zip(MISMATCH, (found["kl"] / tokens, -ends["low"], ends["high"]), strict=True))

    def _denominator(self, objective: str, part: Sequence[Sample], tokens: int) -> float:
        """Returns the divisor of the summed losses of a minibatch's samples with this objective. It weighs them by
        their share of the minibatch's `tokens`."""
        own = sum(one.trained_tokens for one in part)
        answers = math.fsum(one.share for one in part)
        return OBJECTIVES[objective].denominator(own, answers, self._max_tokens) * (tokens / own)
