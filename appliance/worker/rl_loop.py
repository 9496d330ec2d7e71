"""Runs the training phase: sample, verify, choose, record, learn; step after step, from wherever the last start got to.

What always holds. A step's rollouts are in the ledger before the step is learned from, and a recorded step is never
sampled again: after a kill, training goes back to the newest whole checkpoint and learns the recorded steps once more,
which gives the same weights. Sampling always uses the weights of its step. Sealed questions never occur.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from appliance.agent.judging import judge, require_sound
from appliance.agent.loop import Agent, calls_outside_sandbox
from appliance.agent.usage import figures
from appliance.inference.engine import ModelFiles
from appliance.inference.folder import open_model
from appliance.inference.weights import push_model
from appliance.learning.checkpoints import prune, step_folder
from appliance.learning.comparison import errors_in_correct
from appliance.learning.early_stopping import Advice, EarlyStopping
from appliance.learning.grouping import is_masked, make_groups, reward_of
from appliance.learning.recipe import TrainingRecipe
from appliance.learning.roc import carry_signal
from appliance.learning.trainer import Trainer
from appliance.records.rollouts import Purpose
from appliance.records.training import Group, Judged, StepRecord
from appliance.rendering.formats import load_renderer
from appliance.worker.context import WorkContext
from appliance.worker.evaluate import assignments, item_of, success, validate
from appliance.worker.progress import CycleProgress
from appliance.worker.setup import CycleSetup, TrainingResult, training_rules
from curriculum.contract.task import Task
from curriculum.seeds import derive

KEEP = 2
"""Whole checkpoints that stay beside the watch's best: the newest may turn out broken."""


class RlLoop:
    """Trains one model for one cycle. `run` may be called anew after any interruption."""

    def __init__(self, setup: CycleSetup, files: ModelFiles, context: WorkContext, progress: CycleProgress) -> None:
        """`files` are those of the model to begin with."""
        self._setup = setup
        self._cycle = setup.cycle
        self._seed = setup.seed
        self._training = training = setup.recipe.training
        frozen_half = training.method == "lora" and training.precision == "bfloat16"
        self._model = model = open_model(files, dtype=torch.bfloat16 if frozen_half else torch.float32)
        self._context = context
        self._progress = progress
        self._agent: Agent = context.agent(load_renderer(files))
        self._trainer = Trainer(model, training, setup.seed, max_tokens=setup.recipe.agent.max_tokens, companions=files)
        self._stopping = EarlyStopping(drop=training.watch_drop, items=training.watch_items)
        rules = training_rules(context.policy, context.ledger, setup.cycle, setup.tasksets)
        self._stream = setup.training_tasks(rules)
        self._held_out = setup.held_out(derive("watch", setup.seed), training.watch_items)
        self._checkpoints = context.data / "cycles" / setup.cycle / "checkpoints"

    def run(self) -> TrainingResult:
        training = self._training
        notes = self._progress.resume(self._checkpoints, self._trainer.restore)
        if notes:
            self._stopping = EarlyStopping.model_validate(notes["watch"])
        recorded = set(self._context.ledger.recorded_steps(self._cycle))
        while True:
            step = self._trainer.step
            if step % training.watch_every == 0 or step == training.steps:
                advice = self._validate(step)
                self._save(step)
                if advice.action != "continue":
                    self._progress.say("watch", f"training stops: {advice.reason}", step=float(advice.step))
                    return self._result(advice.step)
                if step >= training.steps:
                    return self._result(step)
            elif step % training.checkpoint_every == 0:
                self._save(step)
            if step in recorded:
                record = self._context.ledger.step(self._cycle, step)
                assert record is not None
                self._learn(step, record.judged, record.groups, {"replayed": 1.0})
            else:
                self._step(step)

    def _step(self, step: int) -> None:
        clock = self._context.clock
        started = clock()
        push_model(self._context.engine, self._model, f"{self._cycle}@{step}")
        tasks, judged, verifying = self._sample(step)
        sampled = clock()
        groups = make_groups(judged, self._training, self._seed)
        calls = sum(len(one.rollout.calls) for one in judged)
        metrics = {
            "success": success(judged),
            "tool_errors_in_correct": errors_in_correct(map(item_of, judged)),
            "tool_errors_in_correct_trained_on": errors_in_correct(map(item_of, trained_on(judged, groups))),
            "groups_with_signal": float(sum(bool(group.kept) for group in groups)),
            "tokens": float(sum(one.rollout.sampled_tokens for one in judged)),
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
            tasks=tuple(task.record() for task in tasks),
            judged=tuple(judged),
            groups=groups,
            metrics=metrics,
        )
        self._context.ledger.commit_step(record)
        metrics["ledger_seconds"] = clock() - sampled
        self._learn(step, record.judged, record.groups, metrics)

    def _sample(self, step: int) -> tuple[list[Task], list[Judged], float]:
        """The step's tasks with their judged rollouts, and the seconds spent on verifying.

        Groups that carry no signal stay on record and are made up for with fresh tasks, a few rounds at most.
        """
        training = self._training
        tasks: list[Task] = []
        judged: list[Judged] = []
        verifying = 0.0
        missing = training.tasks_per_step
        for _ in range(1 + training.refills):
            fresh = self._stream.tasks(step, len(tasks) + missing)[len(tasks) :]
            asked = assignments(
                fresh,
                self._context.policy,
                f"{self._cycle}.{Purpose.TRAIN.value}.{step}",
                cycle=self._cycle,
                step=step,
                purpose=Purpose.TRAIN,
                temperature=training.temperature,
                seed=lambda task, sample: derive("train", self._seed, step, task.id, sample),
                samples=training.rollouts_per_task,
            )
            rollouts = self._agent.roll(asked)
            sampled = self._context.clock()
            some = judge(rollouts, {task.id: task for task in fresh}, self._context.checker)
            verifying += self._context.clock() - sampled
            require_sound(some, self._agent.last_failure)
            tasks += fresh
            judged += some
            missing = len(fresh) - tasks_with_signal(some, training)
            if missing == 0:
                break
        return tasks, judged, verifying

    def _learn(self, step: int, judged: Sequence[Judged], groups: Sequence[Group], metrics: dict[str, float]) -> None:
        self._context.engine.sleep()
        learned = self._trainer.train_step(step, judged, groups)
        figures = {**metrics, **{f"learning_{name}": value for name, value in learned.items()}}
        steps = self._training.steps
        self._progress.say("step", f"step {step + 1} of {steps}", **figures, step=float(step), steps=float(steps))

    def _validate(self, step: int) -> Advice:
        """Measures held-out success, which no training sees, and asks the watch whether to go on."""
        if step <= self._stopping.last_step:
            return self._stopping.advice(f"step {step} was observed before")
        training = self._training
        push_model(self._context.engine, self._model, f"{self._cycle}@{step}")
        share = validate(
            self._held_out,
            self._setup,
            self._context,
            self._agent,
            label=Purpose.VALIDATION.value,
            step=step,
            seed=derive("watch", self._seed, step),
        )
        self._stopping, advice = self._stopping.observe(step, share)
        self._progress.say(
            "watch", f"held-out success {share:.3f}", step=float(step), steps=float(training.steps), success=share
        )
        return advice

    def _save(self, step: int) -> None:
        folder = step_folder(self._checkpoints, step)
        if not folder.exists():
            self._trainer.save(folder, {"watch": self._stopping.model_dump(mode="json")})
            spare = step_folder(self._checkpoints, self._stopping.best_step)
            prune(self._checkpoints, KEEP, spare=(spare,))
            self._progress.save()

    def _result(self, step: int) -> TrainingResult:
        return TrainingResult(
            step_folder(self._checkpoints, step), step, {"held_out_success": self._stopping.best_success}
        )


def tasks_with_signal(judged: Sequence[Judged], recipe: TrainingRecipe) -> int:
    """Counts the tasks whose rollouts earned different rewards; infrastructure failures earn none."""
    rewards: dict[str, list[float]] = {}
    for one in judged:
        if not is_masked(one):
            rewards.setdefault(one.rollout.task, []).append(reward_of(one, recipe))
    return sum(carry_signal(found) for found in rewards.values())


def trained_on(judged: Sequence[Judged], groups: Sequence[Group]) -> list[Judged]:
    """The rollouts that the groups train on."""
    names = {group.rollouts[index] for group in groups for index in group.kept}
    return [one for one in judged if one.rollout.id in names]
