"""The first policy model: a seedling made from nothing, and a warm start that teaches it format and tool use.

The warm start ends on validation success or with its recipe. It can be interrupted anywhere: its checkpoints carry
everything but the demonstrations, which are acted out again from the same seed.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from appliance.agent.dialect import SEEDLING, Codec
from appliance.learning.checkpoints import newest_valid, prune, step_folder, sweep
from appliance.learning.recipe import Recipe
from appliance.learning.warm_start import WarmStart, encode
from appliance.records import Purpose
from appliance.seedling.model import load_model, new_seedling, save_model_folder
from appliance.seedling.tokenizer import train_tokenizer
from appliance.worker.allowed import allowed
from appliance.worker.demonstrate import Scene, perform
from appliance.worker.equipment import Equipment
from appliance.worker.exam import examine, success
from appliance.worker.progress import Progress
from appliance.worker.seeds import derive
from curriculum.demonstrations import demonstration
from curriculum.sealed import SealedSet, TaskStream
from curriculum.task import Split

TOKENIZER_SCENES = 3000
"""Demonstrations that the tokenizer's merges are learned from."""
KEEP = 2


@dataclass(frozen=True)
class Warmed:
    folder: Path
    """The checkpoint that becomes the first policy model."""
    step: int
    success: float
    """Sampled, on validation tasks."""


class Warming:
    """The warm start of one cycle. `run` may be called anew after any interruption."""

    def __init__(
        self,
        cycle: str,
        seed: int,
        recipe: Recipe,
        sealed: SealedSet,
        equipment: Equipment,
        progress: Progress,
    ) -> None:
        self._cycle = cycle
        self._seed = seed
        self._recipe = recipe
        self._sealed = sealed
        self._equipment = equipment
        self._progress = progress
        self._folder = equipment.data / "cycles" / cycle / "warm_start"
        self._checkpoints = self._folder / "checkpoints"
        held_out = TaskStream(Split.VALIDATION, derive("warm start", seed), sealed.questions)
        self._held_out = held_out.tasks(0, recipe.warm_start.validation_items)

    def run(self) -> Warmed:
        warm = self._recipe.warm_start
        self._progress.say("warm_start", f"acting out {warm.demonstrations} demonstrations")
        scenes = self._scenes()
        source = self._seedling(scenes)
        codec = Codec.load(source)
        encoded = [
            encode(codec, scene.question, list(zip(scene.calls, scene.results, strict=True)), scene.answer)
            for scene in scenes
        ]
        budget = self._recipe.agent.max_tokens
        learner = WarmStart(load_model(source), encoded, warm, self._seed, max_tokens=budget, companions=source)
        share = self._resume(learner)
        while not learner.done and share < warm.stop_at:
            figures = learner.run_steps(self._until_next_stop(learner.step))
            if learner.step % warm.validate_every == 0 or learner.done:
                share = self._examine(learner, codec)
            learner.save(step_folder(self._checkpoints, learner.step), {"success": share})
            prune(self._checkpoints, KEEP)
            self._progress.save()
            self._progress.say(
                "warm_start",
                f"step {learner.step} of at most {warm.steps}",
                step=float(learner.step),
                steps=float(warm.steps),
                loss=figures["loss"],
                success=share,
            )
        return Warmed(step_folder(self._checkpoints, learner.step), learner.step, share)

    def _scenes(self) -> list[Scene]:
        """The demonstrations of this seed, acted out in sandboxes; the same ones each time."""
        warm = self._recipe.warm_start
        rng = Random(derive("demonstrations", self._seed))
        rules = allowed(self._equipment.policy, self._equipment.ledger, self._cycle)
        made = [
            demonstration(
                rng,
                right_choice=warm.right_choice,
                fail_first=warm.fail_first,
                exclude=self._sealed.questions,
                without=rules.without,
            )
            for _ in range(warm.demonstrations)
        ]
        equipment = self._equipment
        return perform(
            made, equipment.sessions, equipment.policy, self._recipe.agent.max_result_chars, caller=self._cycle
        )

    def _seedling(self, scenes: list[Scene]) -> Path:
        """The untrained model's folder; made once, whole or not at all."""
        folder = self._folder / "seedling"
        if not folder.exists():
            unfinished = self._folder / "seedling.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            tokenizer = train_tokenizer(text for scene in scenes[:TOKENIZER_SCENES] for text in texts(scene))
            save_model_folder(new_seedling(tokenizer, self._seed), tokenizer, SEEDLING, unfinished)
            unfinished.rename(folder)
        return folder

    def _resume(self, learner: WarmStart) -> float:
        """Back to the newest whole checkpoint; returns the validation success known there."""
        sweep(self._checkpoints)
        newest = newest_valid(self._checkpoints)
        for broken in newest.broken:
            self._progress.say("warning", f"passed over {broken.folder.name}: {broken.reason}")
            shutil.rmtree(broken.folder)
        if newest.folder is None:
            return 0.0
        notes = learner.restore(newest.folder)
        self._progress.say("resume", f"goes on from step {newest.step}", step=float(newest.step))
        return float(notes["success"])

    def _until_next_stop(self, step: int) -> int:
        """Steps until the next validation or checkpoint, whichever comes first."""
        warm = self._recipe.warm_start
        return min(
            warm.checkpoint_every - step % warm.checkpoint_every, warm.validate_every - step % warm.validate_every
        )

    def _examine(self, learner: WarmStart, codec: Codec) -> float:
        self._equipment.engine.load_state(learner.model, f"{self._cycle}@warm{learner.step}")
        judged = examine(
            self._held_out,
            self._equipment,
            self._equipment.agent(codec),
            cycle=self._cycle,
            label="warm_start",
            purpose=Purpose.VALIDATION,
            step=learner.step,
            temperature=self._recipe.training.temperature,
            seed=derive("warm start", self._seed, learner.step),
        )
        return success(judged)


def texts(scene: Scene) -> list[str]:
    """What the tokenizer learns its merges from."""
    return [scene.question, *scene.calls, *scene.results, f"\\boxed{{{scene.answer}}}"]
