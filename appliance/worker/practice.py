"""The training phase: sample, verify, choose, record, learn; step after step, from wherever the last start got to.

What always holds. A step's rollouts are in the ledger before the step is learned from, and a recorded step is never
sampled again: after a kill, training goes back to the newest whole checkpoint and learns the recorded steps once more,
which gives the same weights. Sampling always uses the weights of its step. Sealed questions never occur.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedModel

from appliance.agent.accounts import figures
from appliance.agent.dialect import Codec
from appliance.agent.judging import judge, require_sound
from appliance.agent.loop import Agent, Assignment, calls_outside_sandbox
from appliance.isolation import tier_of
from appliance.learning.checkpoints import newest_valid, prune, step_folder, sweep
from appliance.learning.grouping import is_masked, make_groups
from appliance.learning.recipe import Recipe
from appliance.learning.trainer import Trainer
from appliance.learning.watch import Advice, Watch
from appliance.records import Group, Judged, Purpose, StepRecord
from appliance.worker.allowed import allowed
from appliance.worker.equipment import Equipment
from appliance.worker.exam import examine, rollout_id, success, tool_error_rate
from appliance.worker.progress import Progress
from appliance.worker.seeds import derive
from curriculum.sealed import SealedSet, TaskStream
from curriculum.task import Split, Task

KEEP = 2
"""Whole checkpoints that stay beside the watch's best: the newest may turn out broken."""


@dataclass(frozen=True)
class Practised:
    """What training ended with."""

    folder: Path
    """The checkpoint that becomes the candidate."""
    step: int
    metrics: dict[str, float]


class Practice:
    """Trains one model for one cycle. `run` may be called anew after any interruption."""

    def __init__(
        self,
        cycle: str,
        seed: int,
        recipe: Recipe,
        model: PreTrainedModel,
        source: Path,
        sealed: SealedSet,
        equipment: Equipment,
        codec: Codec,
        progress: Progress,
    ) -> None:
        self._cycle = cycle
        self._seed = seed
        self._recipe = recipe
        self._model = model
        self._equipment = equipment
        self._progress = progress
        self._agent: Agent = equipment.agent(codec)
        self._trainer = Trainer(model, recipe.training, seed, companions=source)
        self._watch = Watch(drop=recipe.training.watch_drop, items=recipe.training.watch_items)
        rules = allowed(equipment.policy, equipment.ledger, cycle)
        self._stream = TaskStream(Split.TRAIN, seed, sealed.questions | rules.met, rules.shares)
        held_out = TaskStream(Split.VALIDATION, derive("watch", seed), sealed.questions)
        self._held_out = held_out.tasks(0, recipe.training.watch_items)
        self._checkpoints = equipment.data / "cycles" / cycle / "checkpoints"

    def run(self) -> Practised:
        training = self._recipe.training
        self._resume()
        recorded = set(self._equipment.ledger.recorded_steps(self._cycle))
        while True:
            step = self._trainer.step
            if step % training.watch_every == 0 or step == training.steps:
                advice = self._look(step)
                self._save(step)
                if advice.action != "continue":
                    self._progress.say("watch", f"training stops: {advice.reason}", step=float(advice.step))
                    return self._result(advice.step)
                if step >= training.steps:
                    return self._result(step)
            elif step % training.checkpoint_every == 0:
                self._save(step)
            if step in recorded:
                record = self._equipment.ledger.step(self._cycle, step)
                assert record is not None
                self._learn(step, record.judged, record.groups, {"replayed": 1.0})
            else:
                self._step(step)

    def _step(self, step: int) -> None:
        clock = self._equipment.clock
        started = clock()
        self._equipment.engine.load_state(self._model, f"{self._cycle}@{step}")
        tasks, judged, verifying = self._sample(step)
        sampled = clock()
        groups = make_groups(judged, self._recipe.training, self._seed)
        calls = sum(len(one.rollout.calls) for one in judged)
        tokens = sum(len(node.ids) for one in judged for node in one.rollout.nodes if node.sampled)
        metrics = {
            "success": success(judged),
            "tool_errors_in_correct": tool_error_rate(judged),
            "tool_errors_in_correct_trained_on": tool_error_rate(kept(judged, groups)),
            "groups_with_signal": float(sum(bool(group.kept) for group in groups)),
            "tokens": float(tokens),
            "tool_calls": float(calls),
            "tool_calls_outside_sandbox": float(calls_outside_sandbox(one.rollout for one in judged)),
            "tool_seconds": sum(call.seconds for one in judged for call in one.rollout.calls),
            **figures([one.rollout for one in judged]),
            "sampling_seconds": sampled - started - verifying,
            "verifying_seconds": verifying,
        }
        record = StepRecord(
            cycle=self._cycle,
            step=step,
            tasks=tuple({**task.model_dump(mode="json"), "id": task.id} for task in tasks),
            judged=tuple(judged),
            groups=groups,
            metrics=metrics,
        )
        self._equipment.ledger.commit_step(record)
        metrics["ledger_seconds"] = clock() - sampled
        self._learn(step, record.judged, record.groups, metrics)

    def _sample(self, step: int) -> tuple[list[Task], list[Judged], float]:
        """The step's tasks with their judged rollouts, and the seconds spent on verifying.

        Groups that carry no signal stay on record and are made up for with fresh tasks, a few rounds at most.
        """
        training = self._recipe.training
        tasks: list[Task] = []
        judged: list[Judged] = []
        verifying = 0.0
        missing = training.tasks_per_step
        for _ in range(1 + training.refills):
            fresh = self._stream.tasks(step, len(tasks) + missing)[len(tasks) :]
            rollouts = self._agent.roll(self._assignments(step, fresh))
            sampled = self._equipment.clock()
            some = judge(rollouts, {task.id: task for task in fresh}, self._equipment.checker)
            verifying += self._equipment.clock() - sampled
            require_sound(some, self._agent.last_failure)
            tasks += fresh
            judged += some
            missing = len(fresh) - tasks_with_signal(some)
            if missing == 0:
                break
        return tasks, judged, verifying

    def _learn(self, step: int, judged: Sequence[Judged], groups: Sequence[Group], metrics: dict[str, float]) -> None:
        learned = self._trainer.train_step(step, judged, groups)
        figures = {**metrics, **{f"learning_{name}": value for name, value in learned.items()}}
        steps = self._recipe.training.steps
        self._progress.say("step", f"step {step + 1} of {steps}", **figures, step=float(step), steps=float(steps))

    def _assignments(self, step: int, tasks: Sequence[Task]) -> list[Assignment]:
        return [
            Assignment(
                id=rollout_id(self._cycle, Purpose.TRAIN.value, step, task, sample),
                task=task.id,
                prompt=task.prompt,
                cycle=self._cycle,
                step=step,
                sample=sample,
                purpose=Purpose.TRAIN,
                temperature=self._recipe.training.temperature,
                seed=derive("train", self._seed, step, task.id, sample),
                tier=tier_of(self._equipment.policy, Purpose.TRAIN, task.family),
            )
            for task in tasks
            for sample in range(self._recipe.training.rollouts_per_task)
        ]

    def _look(self, step: int) -> Advice:
        """Held-out success, which no training sees: what the watch judges by."""
        if step <= self._watch.last_step:
            return self._watch.advice(f"step {step} was looked at before")
        training = self._recipe.training
        self._equipment.engine.load_state(self._model, f"{self._cycle}@{step}")
        judged = examine(
            self._held_out,
            self._equipment,
            self._agent,
            cycle=self._cycle,
            label=Purpose.VALIDATION.value,
            purpose=Purpose.VALIDATION,
            step=step,
            temperature=training.temperature,
            seed=derive("watch", self._seed, step),
        )
        share = success(judged)
        self._watch, advice = self._watch.look(step, share)
        self._progress.say(
            "watch", f"held-out success {share:.3f}", step=float(step), steps=float(training.steps), success=share
        )
        return advice

    def _save(self, step: int) -> None:
        folder = step_folder(self._checkpoints, step)
        if not folder.exists():
            self._trainer.save(folder, {"watch": self._watch.model_dump(mode="json")})
            spare = step_folder(self._checkpoints, self._watch.best_step)
            prune(self._checkpoints, KEEP, spare=(spare,))
            self._progress.save()

    def _resume(self) -> None:
        """Back to the newest whole checkpoint of this cycle; a fresh start when there is none."""
        sweep(self._checkpoints)
        newest = newest_valid(self._checkpoints)
        for broken in newest.broken:
            self._progress.say("warning", f"passed over {broken.folder.name}: {broken.reason}")
            shutil.rmtree(broken.folder)
        if newest.folder is not None:
            notes = self._trainer.restore(newest.folder)
            self._watch = Watch.model_validate(notes["watch"])
            self._progress.say("resume", f"goes on from step {newest.step}", step=float(newest.step))

    def _result(self, step: int) -> Practised:
        return Practised(step_folder(self._checkpoints, step), step, {"held_out_success": self._watch.best_success})


def tasks_with_signal(judged: Sequence[Judged]) -> int:
    """Tasks that some rollouts passed and others failed; infrastructure failures count for neither."""
    outcomes: dict[str, set[bool]] = {}
    for one in judged:
        if not is_masked(one):
            outcomes.setdefault(one.rollout.task, set()).add(one.verdict.passed)
    return sum(len(found) == 2 for found in outcomes.values())


def kept(judged: Sequence[Judged], groups: Sequence[Group]) -> list[Judged]:
    """The rollouts that the groups train on."""
    names = {group.rollouts[index] for group in groups for index in group.kept}
    return [one for one in judged if one.rollout.id in names]
