"""Training loop: sample, verify, select, record, learn; resumes from any interruption.

Invariants: a step's rollouts are recorded before training on them, and a recorded step is never sampled again. After a
kill, training restores the newest valid checkpoint and relearns the recorded steps, which gives equal weights; first it
pushes the weights and has them verified. Sampling uses weights at most `max_staleness` steps old (`step_sampling`).
Sealed questions never occur. A collapse ends training at the last good checkpoint.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from torch import nn

from appliance.agent.loop import Agent, calls_outside_sandbox
from appliance.agent.usage import figures
from appliance.curriculum.level_states import key_of_step
from appliance.evaluation.measured import seen_in, weights_key
from appliance.inference.adapters import push_model, require_proof
from appliance.inference.engine import ModelFiles, NoProbabilitiesError
from appliance.learning.checkpoints import prune, step_folder
from appliance.learning.errors import LearningError, NotFiniteError
from appliance.learning.limits.early_stopping import FIGURES, LENGTH, REWARD, Advice, CollapseWatch, EarlyStopping
from appliance.learning.recipes.recipe import Recipe, TrainingRecipe
from appliance.learning.signal.comparison import errors_in_correct
from appliance.learning.signal.grouping import is_masked, make_groups, of_attempts, reward_of
from appliance.learning.signal.self_distillation import lesson_prompts
from appliance.learning.training.distillation import every_rollout
from appliance.learning.training.ranked_trainer import RankedTrainer
from appliance.learning.training.trainer import Trainer
from appliance.learning.training.updates import halving, open_for
from appliance.records.rollouts import Purpose
from appliance.records.training import Group, Judged, StepRecord
from appliance.rendering.formats import load_renderer
from appliance.worker.evaluation.evaluate import item_of, success_figures, validate
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup, TrainingPart, TrainingResult, training_rules
from appliance.worker.setup.progress import CycleProgress, apart, say_thrown_out
from appliance.worker.training.failure_figures import (
    CHECKPOINT,
    PUSH,
    WATCH,
    StepSeconds,
    branch_figures,
    failure_figures,
)
from appliance.worker.training.known_levels import in_words, known_at, say_exhausted
from appliance.worker.training.partial_rollouts import PartialRollouts
from appliance.worker.training.proposer import Proposer, of_solvers
from appliance.worker.training.rollout_limits import RolloutLimits
from appliance.worker.training.screening import GroupCounts, in_first_block
from appliance.worker.training.step_sampling import LookAhead, SamplingTook, StepSample, seen_of, staleness
from curriculum.contract.task import Task
from curriculum.difficulty import Difficulty
from curriculum.proposing.labels import ProvenTask
from curriculum.seeds import derive
from curriculum.separation.rules import Door, Match

KEEP = 2
"""Valid checkpoints kept beside the best one: the newest may be damaged."""
NIGHTS = 50
"""Newest cycles searched for difficulty estimates."""


class RlLoop:
    """Trains one model by RL for one cycle. `run` may be called again after any interruption."""

    def __init__(
        self,
        setup: CycleSetup,
        files: ModelFiles,
        context: WorkContext,
        progress: CycleProgress,
        part: TrainingPart = TrainingPart(),  # noqa: B008 - frozen
    ) -> None:
        """Prepares the RL training of one model; `files` are the starting model's."""
        self._part = part
        self._setup = setup
        self._cycle = setup.cycle
        self._seed = setup.seed
        self._training = training = setup.recipe.training
        self._model = model = open_for(files, training)
        self._context = context
        self._progress = progress
        renderer = load_renderer(files)
        self._probe = renderer.question("1 + 1?")
        self._agent: Agent = context.agent(renderer, setup.recipe.agent)
        self._trainer = trainer_of(model, setup.recipe, setup.seed, files, context, part)
        if not training.max_staleness:  # else it learns in another thread
            self._trainer.on_pass = lambda done, passes: progress.still(f"learned from {done} of {passes} passes")
        if part.moments is not None:
            self._trainer.take_moments(part.moments)
        self._stopping = EarlyStopping(drop=training.watch_drop, items=training.watch_items)
        self._collapse = CollapseWatch()
        self._difficulty = Difficulty() if training.difficulty == "adaptive" else None
        self._first_block = training.screening if part.teacher is None else 0
        self._screened = GroupCounts() if self._first_block else None
        self._limits = RolloutLimits(setup.recipe, progress)
        rules = training_rules(context.policy, context.ledger, setup.cycle, setup.tasksets)
        self._thrown_out: dict[str, Match] = {}
        exhausted = partial(say_exhausted, progress, setup.catalog)
        self._stream = setup.training_tasks(rules, part.unsolved, self._throw_out, exhausted)
        self._held_out = setup.watched
        proposes = bool(setup.recipe.proposer.proposals) and part.teacher is None
        self._proposer = Proposer(setup, context, self._agent, self._held_out) if proposes else None
        self._checkpoints = part.folder(context.data / "cycles" / setup.cycle) / "checkpoints"
        kept = part.folder(context.data / "cycles" / setup.cycle) / "rollouts.json"
        self._kept = self._agent.keeper = PartialRollouts(kept, context.clock, progress.kept, training.max_staleness)
        self._ahead = (
            LookAhead(self._agent, self._new_sample, context.clock, self._tokens) if training.max_staleness else None
        )
        self._seconds = StepSeconds(context.clock, lambda: context.engine.figures()["engine_seconds"])
        self._pushed: int | None = None
        """Step whose weights the engines have, while rollouts continue under them."""
        self._free_since = context.clock()
        """Time when the learner finished its last step."""
        self._counted: dict[str, float] = {}
        """Previous step's `_counts`, while rollouts continue between steps."""
        self._waited = self._learned = 0.0
        """Learner seconds, waiting and learning, since this process began."""

    def run(self) -> TrainingResult:
        """Runs the RL training from the newest checkpoint to the end."""
        self._free_since = self._context.clock()
        try:
            return self._run()
        finally:
            if self._ahead is not None:
                self._ahead.close()

    def _run(self) -> TrainingResult:
        first = self._part.first_step
        notes = self._progress.resume(self._checkpoints, self._trainer.restore)
        if notes:
            self._stopping = EarlyStopping.model_validate(notes["watch"])
            self._collapse = CollapseWatch.model_validate(notes.get("collapse", {}))
            if self._difficulty is not None:
                self._difficulty = Difficulty.model_validate(notes.get("difficulty", {}))
            if self._screened is not None:
                self._screened = GroupCounts.model_validate(notes.get("screened", {}))
            self._limits.restore(notes)
        elif self._difficulty is not None:
            self._difficulty = self._begun_with(first)
        if self._proposer is not None:
            self._proposer.restore(self._trainer.step)
        recorded = set(self._context.ledger.recorded_steps(self._cycle))
        self._seconds.begin()
        while True:
            step = self._trainer.step
            collapse = self._collapse.advice(self._stopping.best_step)
            if collapse.action != "continue":
                return self._stopped(collapse, "collapse")
            try:
                if notes:
                    notes = {}
                    self._push(step)  # first of all, so that the weights are verified
                if (ended := self._look(step)) is not None:
                    return ended
                if step in recorded:
                    record = self._context.ledger.step(self._cycle, step)
                    assert record is not None
                    self._forget_kept(step)
                    tasks = [Task.model_validate(task) for task in record.tasks]
                    self._observe(tasks, record.judged)
                    self._learn(record, tasks, {"replayed": 1.0, **self._seconds.figures()})
                else:
                    self._step(step)
            except NoProbabilitiesError as error:
                if step == first:
                    raise  # the untrained model itself is unusable
                self._collapse = self._collapse.diverged(step, str(error))

    def _look(self, step: int) -> TrainingResult | None:
        """Validates the model and writes a checkpoint where due; returns the result if training ends at this step."""
        training = self._training
        taken = step - self._part.first_step
        if taken % training.watch_every and taken != training.steps:
            if taken % training.checkpoint_every == 0:
                self._save(step)
            return None
        advice = self._validate(step)
        self._save(step)
        if advice.action != "continue":
            return self._stopped(advice, "watch")
        if taken and self._stopping.last_success >= (self._part.advance_at or math.inf):
            return self._result(step, "success", f"held-out success reached {self._stopping.last_success:.3f}")
        return self._result(step) if taken >= training.steps else None

    def _step(self, step: int) -> None:
        clock = self._context.clock
        if self._ahead is None or not self._counted:
            self._counted = self._counts()
        self._push(step)
        pushed, tokens = clock(), self._tokens()
        proposals = self._proposer.propose(step) if self._proposer is not None else []
        sample = self._sample(step, [one.made for one in proposals if isinstance(one.made, ProvenTask)])
        judged = sample.judged
        sampled = clock()
        verified = sample.verifying_seconds
        took = SamplingTook(sampled - pushed - verified, verified, self._tokens() - tokens)
        if self._ahead is not None:  # its rollouts were also sampled while earlier steps were learned
            took = self._ahead.take_took()
        before, self._counted = self._counted, self._counts()
        old = staleness(judged, self._cycle, step)
        if max(old, default=0) > self._training.max_staleness:
            raise LearningError(
                f"step {step} was sampled with weights that are {max(old)} steps old",
                hint="restart the worker; nothing of that step was recorded",
            )
        waited = self._waited + sampled - self._free_since
        fit, met = apart(judged, {task.id: task for task in sample.tasks}, self._setup.kept_of_recent)
        say_thrown_out(self._progress, Door.PROPOSER, [one.copied for one in proposals if one.copied is not None])
        say_thrown_out(self._progress, Door.TOOL_RESULTS, met)
        say_thrown_out(self._progress, Door.STREAM, list(self._thrown_out.values()))
        self._thrown_out.clear()
        groups = self._groups(fit)
        attempts = of_attempts(in_first_block(judged, self._first_block))
        calls = sum(len(one.rollout.own_calls) for one in judged)
        metrics = {
            **success_figures(attempts),
            "reward": mean_reward(attempts, self._training),
            "rollouts": float(len(judged)),
            "tool_errors_in_correct": errors_in_correct(map(item_of, attempts)),
            "tool_errors_in_correct_trained_on": errors_in_correct(map(item_of, trained_on(judged, groups))),
            "groups_with_signal": float(sum(bool(group.kept) for group in groups)),
            "tokens": float(sum(one.rollout.sampled_tokens for one in judged)),
            "length": mean_length(judged),
            "tool_calls": float(calls),
            "tool_calls_outside_sandbox": float(calls_outside_sandbox(one.rollout for one in judged)),
            "tool_seconds": sum(call.seconds for one in judged for call in one.rollout.own_calls),
            **figures([one.rollout for one in judged]),
            **branch_figures(judged, groups),
            **failure_figures(sample.tasks, judged),
            **took.figures(),
            **self._seconds.figures(),
            **self._limits.figures(step, sample.tasks, judged),
            "staleness_mean": sum(old) / max(1, len(old)),
            "staleness_max": float(max(old, default=0)),
            "learner_wait_share": waited / max(1e-9, waited + self._learned),
            **{name: count - before[name] for name, count in self._counted.items()},
        }
        tasks = [*sample.tasks]
        if self._proposer is not None:
            settled = self._proposer.settle(step, proposals, judged)
            tasks += settled.prompts
            judged, groups = [*judged, *settled.judged], (*groups, *settled.groups)
            metrics |= settled.metrics
        record = StepRecord(
            cycle=self._cycle,
            step=step,
            tasks=tuple(task.record() for task in tasks),
            judged=tuple(judged),
            groups=groups,
            metrics=metrics,
        )
        self._context.ledger.commit_step(record)
        self._forget_kept(step)
        self._observe(tasks, record.judged)
        metrics["ledger_seconds"] = clock() - sampled
        self._learn(record, tasks, metrics)

    def _sample(self, step: int, proposed: Sequence[ProvenTask]) -> StepSample:
        """Samples and judges the rollouts of the step's tasks; look-ahead samples later steps beside it."""
        if self._ahead is not None:
            last = min(step + self._training.max_staleness, self._part.first_step + self._training.steps - 1)
            self._ahead.begin(range(step, last + 1))
            return self._ahead.take(step)
        sample = self._new_sample(step, proposed)
        while asked := sample.next_round():
            sample.judge(self._agent.roll(asked, branching=sample.branching), self._agent.last_failure)
        return sample

    def _new_sample(self, step: int, proposed: Sequence[ProvenTask] = ()) -> StepSample:
        alone, known = self._part.teacher is None, self._difficulty
        return StepSample(
            step,
            self._setup,
            self._context,
            self._stream,
            refilled=alone,
            known=known,
            groups=self._screened,
            proposed=proposed,
            max_calls=self._limits.max_calls,
            max_completion=self._limits.max_completion(step),
        )

    def _forget_kept(self, step: int) -> None:
        """Drops saved rollouts of a recorded step, and reports their outcome."""
        if said := self._kept.committed(step):
            self._progress.say("resumed", said)

    def _tokens(self) -> int:
        return self._context.engine.tokens_sampled

    def _counts(self) -> dict[str, float]:
        """Returns cumulative counters of the engines, and the number of rollouts moved to another host."""
        return {"rollouts_moved": float(self._agent.moved), **self._context.engine.figures()}

    def _throw_out(self, match: Match) -> None:
        self._thrown_out[str(match)] = match  # a step's stream is read once a round

    def _begun_with(self, step: int) -> Difficulty:
        """Returns the difficulty estimates of levels before the first step; decided once per cycle."""
        plan = self._progress.cycle.plan
        cycles = self._context.ledger.cycles(limit=NIGHTS)
        names = [one.id for one in cycles]
        before = cycles[names.index(self._cycle) + 1 :] if self._cycle in names else cycles
        known = known_at(step, plan, (one.plan for one in before))
        if key_of_step(step) not in plan:
            known = self._measured(known)
            self._progress.plan(**{key_of_step(step): known.model_dump(mode="json")})
            self._progress.say("difficulty", f"begins with {in_words(known)}")
        return known

    def _measured(self, known: Difficulty) -> Difficulty:
        """Adds what `assay curriculum measure` found of the model that the cycle starts from."""
        data, start = self._context.data, self._progress.cycle.plan.get("start")
        folder = data / "models" / start if start is not None else None
        seen = seen_in(data, weights_key(folder)) if folder is not None and folder.is_dir() else []
        return known.after(seen) if seen else known

    def _observe(self, tasks: Iterable[Task], judged: Sequence[Judged]) -> None:
        """Updates difficulty estimates, rollout limits and remembered proposals from a recorded step."""
        asked = tuple(tasks)
        if self._proposer is not None:
            self._proposer.observe(asked, judged)
        seen = seen_of(asked, in_first_block(judged, self._first_block))
        if self._screened is not None:
            self._screened = self._screened.after(seen_of(asked, judged))
        if self._difficulty is not None:
            self._difficulty = self._difficulty.after(seen)
        self._limits.observe(self._trainer.step, seen, asked, judged)

    def _push(self, step: int) -> None:
        """Pushes the trainer's current weights to the engines, mid-rollout if some are running."""
        engine, version = self._context.engine, f"{self._cycle}@{step}"
        with self._seconds.of(PUSH):
            if self._ahead is None:
                push_model(engine, self._model, version)
            elif self._pushed != step:  # a worker always pushes first, even if the engines are current
                self._pushed = step
                self._model.zero_grad(set_to_none=True)
                model = copy.deepcopy(self._model)  # the learner changes its own copy while this one samples
                require_proof(engine.push_in_flight(model, version), model, version)

    def _groups(self, judged: Sequence[Judged]) -> tuple[Group, ...]:
        if self._part.teacher is not None:
            return every_rollout(judged, self._training)
        return make_groups(judged, self._training, self._seed)

    def _learn(self, record: StepRecord, tasks: Sequence[Task], metrics: dict[str, float]) -> None:
        started, step, judged, groups = self._context.clock(), record.step, record.judged, record.groups
        self._waited += started - self._free_since
        lessons = self._training.self_distillation.shown
        prompts = lesson_prompts(tasks, judged, groups, lessons, self._agent.renderer)
        work = partial(self._trainer.train_step, step, judged, groups, prompts)
        if self._ahead is None:
            self._context.engine.sleep()
        try:
            learned = work() if self._ahead is None else self._ahead.during(work)
            self._trainer.require_finite(self._probe)
        except NotFiniteError as error:
            self._collapse = self._collapse.diverged(step, str(error))
            return
        finally:
            self._free_since = self._context.clock()
            self._learned += self._free_since - started
        learned["seconds"] = self._free_since - started  # a learner in another process measures only its own time
        if said := halving(learned, self._training):
            self._progress.say_once("warning", said)
        solved = of_attempts(of_solvers(in_first_block(judged, self._first_block)))
        shown = {REWARD: mean_reward(solved, self._training), LENGTH: mean_length(solved)}
        if learned["tokens"]:
            shown |= {name: learned[name] for name in FIGURES if name in learned}
        self._collapse = self._collapse.observe(step, shown, self._training.collapse)
        waited = self._seconds.end()
        figures = {**metrics, **{f"learning_{name}": value for name, value in learned.items()}}
        if "replayed" not in metrics:  # else nothing was sampled
            figures |= waited
        taken, steps = step - self._part.first_step + 1, self._training.steps
        self._progress.say("step", f"step {taken} of {steps}", **figures, step=float(step), steps=float(steps))

    def _validate(self, step: int) -> Advice:
        """Measures success on held-out tasks and returns the early-stopping advice."""
        if step <= self._stopping.last_step:
            return self._stopping.advice(self._stopping.reason or f"step {step} was observed before")
        training = self._training
        self._push(step)
        with self._seconds.of(WATCH):
            share = validate(
                self._held_out,
                self._setup,
                self._context,
                self._agent,
                label=self._part.label(Purpose.VALIDATION.value),
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
        if folder.exists():
            return
        with self._seconds.of(CHECKPOINT):
            watch, collapse = self._stopping.model_dump(mode="json"), self._collapse.model_dump(mode="json")
            known = {} if self._difficulty is None else {"difficulty": self._difficulty.model_dump(mode="json")}
            screened = {} if self._screened is None else {"screened": self._screened.model_dump(mode="json")}
            notes = {"watch": watch, "collapse": collapse, **known, **screened, **self._limits.notes()}
            self._trainer.save(folder, notes)
            spare = step_folder(self._checkpoints, self._stopping.best_step)
            prune(self._checkpoints, KEEP, spare=(spare,))
            self._progress.save()

    def _stopped(self, advice: Advice, why: Literal["watch", "collapse"]) -> TrainingResult:
        text = f"training stops: {advice.reason}; back to step {advice.step}"
        self._progress.say(why, text, step=float(advice.step))
        return self._result(advice.step, why, advice.reason)

    def _result(
        self, step: int, ended: Literal["steps", "success", "watch", "collapse"] = "steps", reason: str = ""
    ) -> TrainingResult:
        key = key_of_step(self._trainer.step)
        if self._difficulty is not None and key not in self._progress.cycle.plan:
            self._progress.plan(**{key: self._difficulty.model_dump(mode="json")})
            self._progress.say("difficulty", f"ends with {in_words(self._difficulty)}")
        metrics = {"held_out_success": self._stopping.success_at(step)}
        folder = step_folder(self._checkpoints, step)
        return TrainingResult(folder, step, metrics, ended, reason, next_step=self._trainer.step)


def mean_length(judged: Sequence[Judged]) -> float:
    """Mean tokens sampled per rollout, without infrastructure errors."""
    lengths = [one.rollout.sampled_tokens for one in judged if not is_masked(one)]
    return sum(lengths) / max(1, len(lengths))


def mean_reward(judged: Sequence[Judged], recipe: TrainingRecipe) -> float:
    """Mean reward per rollout, without infrastructure errors; 0 if none are left."""
    rewards = [reward_of(one, recipe) for one in judged if not is_masked(one)]
    return sum(rewards) / max(1, len(rewards))


def trainer_of(
    model: nn.Module, recipe: Recipe, seed: int, files: ModelFiles, context: WorkContext, part: TrainingPart
) -> Trainer | RankedTrainer:
    """Creates the RL trainer of a model, in this process or in `context.ranks`. `files` are the model's. Raises
    LearningError if the recipe cannot train this model."""
    training, most = recipe.training, recipe.agent.max_tokens
    beside: dict[str, Any] = {"companions": files, "first_step": part.first_step, "teacher": part.teacher}
    if context.ranks is None:
        return Trainer(model, training, seed, max_tokens=most, **beside)
    context.make_room()
    return RankedTrainer(context.ranks, model, training, seed, max_tokens=most, **beside)


def trained_on(judged: Sequence[Judged], groups: Sequence[Group]) -> list[Judged]:
    """Returns the rollouts that the groups train on."""
    names = {group.rollouts[index] for group in groups for index in group.kept}
    return [one for one in judged if one.rollout.id in names]
