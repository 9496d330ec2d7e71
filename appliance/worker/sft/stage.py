"""Creates the first policy model: an untrained seedling, and a warm start for format and tool use.

The warm start ends on validation success or after the recipe's steps; a divergent one ends at its best validated
checkpoint, and no checkpoint has non-finite weights. It resumes after any interruption: the checkpoints have all state
but the demonstrations, which are kept beside them as run, since a repeated call may time out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

from appliance.agent.conversation import Conversation
from appliance.curriculum.kept_files import KeptLesson, keep_lessons
from appliance.inference.adapters import push_model
from appliance.inference.engine import ModelFiles, NoProbabilitiesError
from appliance.inference.folder import read_model
from appliance.learning.checkpoints import prune, step_folder
from appliance.learning.errors import LearningError, NotFiniteError
from appliance.learning.training.ranked_trainer import RankedSft
from appliance.learning.training.sft import NEW, Encoded, SftTrainer, encode
from appliance.learning.training.updates import halving, open_for
from appliance.rendering.formats import load_renderer
from appliance.rendering.renderer import Renderer
from appliance.seedling.model import new_seedling, save_model_folder
from appliance.seedling.tokenizer import train_tokenizer
from appliance.worker.evaluation.evaluate import validate
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup, TrainingResult, training_rules
from appliance.worker.setup.progress import CycleProgress, met_in_results, say_thrown_out
from appliance.worker.sft.demonstrations import PlayedDemonstration, keep, kept, play
from appliance.worker.sft.traces import Lesson
from common.counting import counted
from curriculum.demonstrations import demonstrable, demonstration
from curriculum.seeds import derive
from curriculum.separation.rules import Door
from runtime.model import FrozenModel

TOKENIZER_DEMONSTRATIONS = 3000
"""Demonstrations used to learn the tokenizer's merges."""
KEEP = 2
REPORT_EVERY = 10
"""Most training steps between two events: a step of a large model may take a minute."""
DEMONSTRATIONS = "demonstrations.json"


class _Best(FrozenModel):
    """Best validation result of a training with any pass so far; initially the starting model."""

    step: int = 0
    success: float = 0.0


class NothingLearnedError(LearningError):
    """A warm start diverged without a checkpoint to return to; a retry is useless."""

    exit_code = 2


class SftRun:
    """Warm start of one cycle, or an SFT stage. `run` may be called again after any interruption."""

    def __init__(
        self,
        setup: CycleSetup,
        context: WorkContext,
        progress: CycleProgress,
        *,
        name: str = "warm_start",
        source: ModelFiles | None = None,
        lessons: Callable[[], Sequence[Lesson]] | None = None,
    ) -> None:
        """Prepares supervised fine-tuning: a cycle's warm start, or a stage. `source` is the starting model's files, by
        default an untrained seedling. `lessons` returns the training conversations, equal on each call; by default
        generated demonstrations."""
        self._setup = setup
        self._context = context
        self._progress = progress
        self._name = name
        self._source = source
        self._lessons = lessons
        self._folder = context.data / "cycles" / setup.cycle / name
        self._checkpoints = self._folder / "checkpoints"
        self._held_out = setup.warm_start_watched

    def run(self) -> TrainingResult:
        recipe = self._setup.recipe
        warm = recipe.warm_start
        lessons = self._lessons() if self._lessons is not None else self._demonstrations()
        source = self._source or read_model(self._seedling(lessons))
        renderer = load_renderer(source)
        encoded = [
            encode(
                renderer,
                Conversation.begin(renderer, one.task).ids,
                list(zip(one.calls, one.results, strict=True)),
                one.last,
            )
            for one in lessons
        ]
        learner = self._learner(source, encoded)
        learner.on_pass = lambda done, passes: self._progress.still(
            f"step {learner.step + 1}: {done} of {passes} passes"
        )
        notes = self._progress.resume(self._checkpoints, learner.restore)
        longer = sum(len(one.ids) > recipe.agent.max_tokens for one in encoded)
        if not notes and self._source is not None:
            learner.save(
                step_folder(self._checkpoints, 0), {"success": 0.0}
            )  # the fallback if nothing better is validated
        if not notes and longer:
            text = f"{longer} of {len(encoded)} conversations have more than {recipe.agent.max_tokens} tokens"
            self._progress.say("warning", f"{self._name}: {text}, and are not learned from", dropped=float(longer))
        best, probe = _Best.model_validate(notes.get("best", {})), renderer.question("1 + 1?")
        share = float(notes.get("success", 0.0))
        try:
            if notes:
                self._push(learner)
                self._context.engine.sleep()
            while not learner.done and share < warm.stop_at:
                figures = self._steps(learner)
                if self._source is not None and (said := halving(figures, recipe.training)):
                    self._progress.say_once("warning", said)
                learner.require_finite(probe)
                if learner.step % warm.validate_every == 0 or learner.done:
                    share = self._validate(learner, renderer)
                    if share and share >= best.success:
                        best = _Best(step=learner.step, success=share)
                kept = {"success": share, "best": best.model_dump()}
                learner.save(step_folder(self._checkpoints, learner.step), kept)
                prune(self._checkpoints, KEEP, spare=(step_folder(self._checkpoints, best.step),))
                self._progress.save()
                self._progress.say(
                    "warm_start",
                    f"step {learner.step} of at most {warm.steps}",
                    self._name,
                    step=float(learner.step),
                    steps=float(warm.steps),
                    loss=figures["loss"],
                    success=share,
                )
        except (NotFiniteError, NoProbabilitiesError) as error:
            return self._collapsed(best, str(error))
        folder = step_folder(self._checkpoints, learner.step)
        ended: Literal["steps", "success"] = "steps" if learner.done else "success"
        return TrainingResult(folder, learner.step, {"validation_success": share}, ended)

    def _collapsed(self, best: _Best, reason: str) -> TrainingResult:
        """Ends a collapsed training with the best validated checkpoint, or the starting model. Raises
        NothingLearnedError without either."""
        if not best.step and self._source is None:
            raise NothingLearnedError(
                f"the warm start learned nothing before it collapsed: {reason}",
                hint="lower recipe.warm_start.learning_rate and start again",
            )
        text = f"training stops: a collapse, {reason}; back to step {best.step}"
        self._progress.say("collapse", text, step=float(best.step))
        folder, metrics = step_folder(self._checkpoints, best.step), {"validation_success": best.success}
        return TrainingResult(folder, best.step, metrics, "collapse", f"a collapse, {reason}")

    def _learner(self, source: ModelFiles, encoded: Sequence[Encoded]) -> SftTrainer | RankedSft:
        """Creates the trainer for supervised fine-tuning, in this process or in `context.ranks`. A seedling is always
        trained in full."""
        recipe, ranks, seed = self._setup.recipe, self._context.ranks, self._setup.seed
        way = NEW if self._source is None else recipe.training
        model, warm = open_for(source, way), recipe.warm_start
        beside: dict[str, Any] = {"max_tokens": recipe.agent.max_tokens, "way": way, "companions": source}
        if ranks is None:
            return SftTrainer(model, encoded, warm, seed, **beside)
        self._context.make_room()
        return RankedSft(ranks, model, encoded, warm, seed, **beside)

    def _push(self, learner: SftTrainer | RankedSft) -> None:
        push_model(self._context.engine, learner.model, f"{self._setup.cycle}@{self._name}.{learner.step}")

    def _demonstrations(self) -> list[PlayedDemonstration]:
        """Returns this seed's demonstrations, with their calls run once. Drops tasksets that the current policy gives
        no share. Raises LearningError if none is left or their file is damaged."""
        file = self._folder / DEMONSTRATIONS
        try:
            there = kept(file)
        except ValueError as error:
            raise LearningError(
                f"{file} is damaged",
                hint="remove the file: its demonstrations are run again, and some results may differ",
            ) from error
        tasksets = self._demonstrated()
        if not there:
            keep(there := self._play(tasksets), file)
        lessons = (KeptLesson(one.task, one.results) for one in there)
        keep_lessons(self._context.data, self._setup.cycle, self._name, lessons)
        left = [one for one in there if one.task.taskset in tasksets]
        if not left:
            raise LearningError(
                f"no demonstration of {self._name} may be learned from",
                hint="the policy's [data] gives their tasksets no share, or all of them are kept apart: see the events",
            )
        if len(left) < len(there):
            said = f"leaves out {counted(len(there) - len(left), 'demonstration')} from tasksets"
            self._progress.say_once("warning", f"{said} without a share in the policy")
        return left

    def _demonstrated(self) -> list[str]:
        setup, context = self._setup, self._context
        rules = training_rules(context.policy, context.ledger, setup.cycle, setup.tasksets)
        return demonstrable([name for name in setup.tasksets if name in rules.shares], setup.catalog)

    def _play(self, tasksets: Sequence[str]) -> list[PlayedDemonstration]:
        setup, context = self._setup, self._context
        warm = setup.recipe.warm_start
        self._progress.say("warm_start", f"runs the calls of {warm.demonstrations} demonstrations")
        rng = Random(derive("demonstrations", setup.seed))
        made = [
            demonstration(
                rng,
                right_choice=warm.right_choice,
                fail_first=warm.fail_first,
                exclude=setup.sealed.questions,
                tasksets=tasksets,
                catalog=setup.catalog,
                kept=setup.kept,
            )
            for _ in range(warm.demonstrations)
        ]
        limit = setup.recipe.agent.max_result_chars
        played = play(made, context.sessions, context.policy, limit, caller=setup.cycle)
        met = {place: met_in_results(one.results, one.task, setup.kept_of_recent) for place, one in enumerate(played)}
        say_thrown_out(self._progress, Door.TOOL_RESULTS, [match for match in met.values() if match is not None])
        return [one for place, one in enumerate(played) if met[place] is None]

    def _seedling(self, played: Sequence[Lesson]) -> Path:
        """Returns the folder of the untrained seedling model, created once, atomically."""
        folder = self._folder / "seedling"
        if not folder.exists():
            unfinished = self._folder / "seedling.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            tokenizer = train_tokenizer(text for one in played[:TOKENIZER_DEMONSTRATIONS] for text in texts(one))
            save_model_folder(new_seedling(tokenizer, self._setup.seed), tokenizer, unfinished)
            unfinished.rename(folder)
        return folder

    def _steps(self, learner: SftTrainer | RankedSft) -> dict[str, float]:
        """Trains until the next validation or checkpoint, whichever comes first, and reports a few times on the way.
        Returns the figures of the last steps."""
        warm, step = self._setup.recipe.warm_start, learner.step
        left = min(
            warm.checkpoint_every - step % warm.checkpoint_every, warm.validate_every - step % warm.validate_every
        )
        while True:
            figures = learner.run_steps(min(left, REPORT_EVERY))
            left -= learner.step - step
            step = learner.step
            if left <= 0 or learner.done:
                return figures
            self._progress.say(
                "warm_start",
                f"step {step} of at most {warm.steps}",
                self._name,
                step=float(step),
                steps=float(warm.steps),
                loss=figures["loss"],
            )

    def _validate(self, learner: SftTrainer | RankedSft, renderer: Renderer) -> float:
        setup, context, step = self._setup, self._context, learner.step
        self._push(learner)
        seed = derive("warm start", setup.seed, step)
        agent = context.agent(renderer, setup.recipe.agent)
        share = validate(self._held_out, setup, context, agent, label=self._name, step=step, seed=seed)
        context.engine.sleep()
        return share


def texts(one: Lesson) -> list[str]:
    """Lists the texts of a training conversation, from which the tokenizer learns its merges."""
    return [one.task.question, *one.calls, *one.results, one.last]
