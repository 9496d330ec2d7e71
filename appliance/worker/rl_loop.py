"""Runs the training phase: sample, verify, choose, record, learn; step after step, from wherever the last start got to.

What always holds. A step's rollouts are in the ledger before the step is learned from, and a recorded step is never
sampled again: after a kill, training goes back to the newest whole checkpoint and learns the recorded steps once more,
which gives the same weights. Sampling uses the weights of its step, or such as are older by at most `max_staleness`
steps (`step_sampling`). Sealed questions never occur.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial

import torch

from appliance.agent.loop import Agent, calls_outside_sandbox
from appliance.agent.usage import figures
from appliance.inference.engine import ModelFiles
from appliance.inference.folder import open_model
from appliance.inference.weights import push_model, require_proof
from appliance.learning.checkpoints import prune, step_folder
from appliance.learning.comparison import errors_in_correct
from appliance.learning.early_stopping import Advice, EarlyStopping
from appliance.learning.errors import LearningError
from appliance.learning.grouping import make_groups
from appliance.learning.trainer import Trainer
from appliance.records.rollouts import Purpose
from appliance.records.training import Group, Judged, StepRecord
from appliance.rendering.formats import load_renderer
from appliance.worker.context import WorkContext
from appliance.worker.evaluate import item_of, success, validate
from appliance.worker.progress import CycleProgress
from appliance.worker.setup import CycleSetup, TrainingResult, training_rules
from appliance.worker.step_sampling import LookAhead, StepSample, staleness
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
        self._ahead = LookAhead(self._agent, self._new_sample) if training.max_staleness else None
        self._pushed: int | None = None
        """The step whose weights the engines have, where rollouts go on under them."""
        self._free_since = context.clock()
        """When the learner had its last step behind it."""
        self._waited = self._learned = 0.0
        """Seconds of the learner, since this began."""

    def run(self) -> TrainingResult:
        self._free_since = self._context.clock()
        try:
            return self._run()
        finally:
            if self._ahead is not None:
                self._ahead.close()

    def _run(self) -> TrainingResult:
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
        before = self._context.engine.figures()
        self._push(step)
        sample = self._sample(step)
        judged, verifying = sample.judged, sample.verifying_seconds
        sampled = clock()
        old = staleness(judged, self._cycle, step)
        if max(old, default=0) > self._training.max_staleness:
            raise LearningError(
                f"step {step} was sampled with weights that are {max(old)} steps old",
                hint="start the worker again; nothing of that step was counted",
            )
        waited = self._waited + sampled - self._free_since
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
            "staleness_mean": sum(old) / max(1, len(old)),
            "staleness_max": float(max(old, default=0)),
            "learner_wait_share": waited / max(1e-9, waited + self._learned),
            **{name: count - before[name] for name, count in self._context.engine.figures().items()},
        }
        record = StepRecord(
            cycle=self._cycle,
            step=step,
            tasks=tuple(task.record() for task in sample.tasks),
            judged=tuple(judged),
            groups=groups,
            metrics=metrics,
        )
        self._context.ledger.commit_step(record)
        metrics["ledger_seconds"] = clock() - sampled
        self._learn(step, record.judged, record.groups, metrics)

    def _sample(self, step: int) -> StepSample:
        """The step's tasks with their judged rollouts; of the steps that come next, some are sampled beside it."""
        if self._ahead is not None:
            last = min(step + self._training.max_staleness, self._training.steps - 1)
            self._ahead.begin(range(step, last + 1))
            return self._ahead.take(step)
        sample = self._new_sample(step)
        while asked := sample.next_round():
            sample.judge(self._agent.roll(asked), self._agent.last_failure)
        return sample

    def _new_sample(self, step: int) -> StepSample:
        return StepSample(step, self._setup, self._context, self._stream)

    def _push(self, step: int) -> None:
        """Gives the engines the weights as they are, in the middle of rollouts where some are under way."""
        engine, version = self._context.engine, f"{self._cycle}@{step}"
        if self._ahead is None:
            push_model(engine, self._model, version)
        elif self._pushed != step:  # the first thing that a worker does is a push, whatever the engines have
            self._pushed = step
            self._model.zero_grad(set_to_none=True)
            model = copy.deepcopy(self._model)  # the learner goes on with its own while this one samples
            require_proof(engine.push_in_flight(model, version), model, version)

    def _learn(self, step: int, judged: Sequence[Judged], groups: Sequence[Group], metrics: dict[str, float]) -> None:
        started = self._context.clock()
        self._waited += started - self._free_since
        work = partial(self._trainer.train_step, step, judged, groups)
        learned = work() if self._ahead is None else self._ahead.during(work)
        self._free_since = self._context.clock()
        self._learned += self._free_since - started
        figures = {**metrics, **{f"learning_{name}": value for name, value in learned.items()}}
        steps = self._training.steps
        self._progress.say("step", f"step {step + 1} of {steps}", **figures, step=float(step), steps=float(steps))

    def _validate(self, step: int) -> Advice:
        """Measures held-out success, which no training sees, and asks the watch whether to go on."""
        if step <= self._stopping.last_step:
            return self._stopping.advice(f"step {step} was observed before")
        training = self._training
        self._push(step)
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


def trained_on(judged: Sequence[Judged], groups: Sequence[Group]) -> list[Judged]:
    """The rollouts that the groups train on."""
    names = {group.rollouts[index] for group in groups for index in group.kept}
    return [one for one in judged if one.rollout.id in names]
