"""Trains the stages of a cycle's plan, each from the result of the previous one.

Invariants: a stage's outcome is written to the plan once, before the next stage begins, so a killed training resumes in
its stage; each stage's model is published, recorded and attested; step numbers continue through all stages, so steps
and rollouts never collide. After a collapse or a drop of held-out success no stage follows: the last good model is
evaluated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from appliance.inference.engine import ModelFiles
from appliance.learning.checkpoints import publish, step_folder
from appliance.learning.errors import LearningError
from appliance.learning.folders import read_verified
from appliance.learning.merging import publish_merged, same_weights
from appliance.learning.recipes.stages import Stage
from appliance.learning.signal.grouping import is_masked, of_attempts
from appliance.learning.training.distillation import TeacherScore
from appliance.records.cycles import Checkpoint, TrainingStage
from appliance.records.training import StepRecord
from appliance.system.durable_file import sync_folder
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import CycleSetup, TrainingPart, TrainingResult, training_rules
from appliance.worker.setup.progress import CycleProgress, say_thrown_out
from appliance.worker.sft.stage import SftRun
from appliance.worker.sft.teacher import Teacher
from appliance.worker.sft.traces import (
    RecordedTrace,
    TraceTally,
    VerifiedTrace,
    kept_file,
    read_kept,
    read_traces,
    verified,
)
from appliance.worker.training.known_levels import say_exhausted
from appliance.worker.training.rl_loop import RlLoop
from curriculum.contract.task import Task
from curriculum.proposing.kind import is_generated
from curriculum.seeds import derive
from curriculum.separation.rules import Door
from runtime.errors import InfrastructureError

TRACES = "traces"
"""Folder, in the data folder, of conversations for training, by SHA-256."""
ENDS_TRAINING = ("collapse", "watch")


class RecordModel(Protocol):
    """Records a published model and returns its record."""

    def __call__(
        self,
        digest: str,
        parent: str | None,
        stage: TrainingStage,
        step: int,
        metrics: dict[str, float],
        *,
        recipe: str,
    ) -> Checkpoint: ...


def published(made: TrainingResult, method: str, base: ModelFiles, folder: Path, models: Path) -> str | None:
    """Publishes the model that was trained from `base`, the files of `folder`. Returns its digest, or None if the
    weights are unchanged."""
    if method != "full":
        return publish_merged(made.folder, base, models)
    return None if same_weights(made.folder, folder) else publish(made.folder, models)


class StagedTraining:
    """All training stages of one cycle. `train` may be called again after any interruption."""

    def __init__(
        self,
        stages: Sequence[Stage],
        setup: CycleSetup,
        context: WorkContext,
        progress: CycleProgress,
        record: RecordModel,
    ) -> None:
        self._stages = stages
        self._setup = setup
        self._context = context
        self._progress = progress
        self._record = record
        self._cycle = context.data / "cycles" / setup.cycle

    def train(self, start: Checkpoint) -> Checkpoint:
        """Runs all training stages from the starting model and returns the last stage's model."""
        model, first, moments = start, 0, None
        for number, stage in enumerate(self._stages, 1):
            ended = self._progress.cycle.plan.get(f"stage_{number}")
            if ended is None:
                ended = self._take(number, stage, model, first, moments)
            known = self._context.ledger.checkpoint(str(ended["checkpoint"]))
            if known is None:
                raise LookupError(f"checkpoint {ended['checkpoint']} of {self._setup.cycle} is not recorded")
            model, first = known, int(ended["next_step"])
            moments = step_folder(self._folder(number) / "checkpoints", int(ended["step"]))
            if ended["ended"] in ENDS_TRAINING and number < len(self._stages):
                self._progress.say("stage", f"the stages after {stage.name} are skipped: {ended['reason']}")
                break
        return model

    def _take(
        self, number: int, stage: Stage, model: Checkpoint, first: int, moments: Path | None
    ) -> dict[str, str | int]:
        """Runs one training stage; records its model and returns its outcome for the cycle's plan."""
        self._progress.say("stage", f"stage {number} of {len(self._stages)}, {stage.name}: begins at step {first}")
        files = read_verified(self._context.data / model.folder, expect=model.manifest)
        setup = replace(self._setup, recipe=stage.recipe)
        traces = ""
        if stage.kind == "sft":
            made, traces = self._sft(number, stage, setup, files)
            made = replace(made, next_step=first)
        else:
            with self._teacher(stage, files) as teacher:
                part = TrainingPart(
                    name=self._name(number),
                    first_step=first,
                    advance_at=stage.advance_at,
                    moments=moments if stage.optimizer == "keep" else None,
                    unsolved=self._unsolved(first) if stage.tasks == "unsolved" else (),
                    teacher=teacher,
                )
                made = RlLoop(setup, files, self._context, self._progress, part).run()
        method, models = stage.recipe.training.method, self._context.data / "models"
        digest = published(made, method, files, self._context.data / model.folder, models) or model.manifest
        last = number == len(self._stages) or made.ended in ENDS_TRAINING
        kind: TrainingStage = "training" if last else "stage"
        known = self._record(digest, model.manifest, kind, made.step, made.metrics, recipe=stage.digest())
        ended: dict[str, str | int] = {
            "checkpoint": known.manifest,
            "step": made.step,
            "next_step": made.next_step,
            "ended": made.ended,
            "reason": made.reason,
            "traces": traces,
        }
        self._progress.plan(**{f"stage_{number}": ended})
        text = f"stage {number} of {len(self._stages)}, {stage.name}: ended after its {made.ended}"
        self._progress.say("stage", f"{text}: {made.reason}" if made.reason else text)
        return ended

    def _unsolved(self, before: int) -> list[Task]:
        """Returns tasks of this cycle's earlier steps that some attempt failed."""
        ledger, cycle = self._context.ledger, self._setup.cycle
        records = (ledger.step(cycle, step) for step in ledger.recorded_steps(cycle) if step < before)
        found = unsolved(record for record in records if record is not None)
        self._progress.say(
            "stage", f"{len(found)} tasks of earlier stages are not always solved", tasks=float(len(found))
        )
        return found

    @contextmanager
    def _teacher(self, stage: Stage, student: ModelFiles) -> Iterator[TeacherScore | None]:
        """Yields the function by which this stage's teacher scores tokens, in an engine of its own; None without a
        teacher."""
        if stage.kind != "distil":
            yield None
            return
        known = self._context.ledger.checkpoint(stage.scored_by)
        if known is None:
            raise LearningError(f"unknown teacher {stage.scored_by}", hint="run `assay model ls` to list models")
        files = read_verified(self._context.data / known.folder, expect=known.manifest)
        if files["tokenizer.json"] != student["tokenizer.json"]:
            raise UnlikeTeacherError(
                f"the teacher {known.manifest[:12]} has a different tokenizer than the trained model",
                hint="choose a teacher of the same family: probabilities are comparable only for equal tokens",
            )
        engine = self._context.another_engine()
        try:
            engine.push(files, known.manifest)
            yield engine.score
        finally:
            engine.close()

    def _sft(self, number: int, stage: Stage, setup: CycleSetup, files: ModelFiles) -> tuple[TrainingResult, str]:
        """Runs an SFT stage; returns its result and the SHA-256 of its conversations, empty for demonstrations."""
        lessons: Callable[[], Sequence[VerifiedTrace]] | None = None
        path = self._folder(number) / "traces.jsonl"
        digest = ""
        if stage.data != "demonstrations":
            if not path.exists():
                kept_file(path, self._traces(number, stage, setup))
            kept = read_kept(path)
            digest = kept_file(self._context.data / TRACES / "verified.jsonl", kept)
            (self._context.data / TRACES / "verified.jsonl").rename(self._context.data / TRACES / digest)
            sync_folder(self._context.data / TRACES)
            lessons = lambda: kept  # noqa: E731 - a sequence that is there already
        run = SftRun(setup, self._context, self._progress, name=self._name(number), source=files, lessons=lessons)
        return run.run(), digest

    def _traces(self, number: int, stage: Stage, setup: CycleSetup) -> tuple[VerifiedTrace, ...]:
        """Returns the verified conversations of the SFT stage's source. Raises LearningError if none passed."""
        context = self._context
        caller = f"{setup.cycle}.{self._name(number)}"
        recorded: Sequence[RecordedTrace]
        unheard, why = 0, ""
        if stage.data == "file":
            content = (context.data / TRACES / stage.file).read_bytes()
            if hashlib.sha256(content).hexdigest() != stage.file:
                raise ChangedTracesError(
                    f"the conversations of stage {stage.name} changed after they were stored",
                    hint="cancel this training and start it again: `assay train` sends the file again",
                )
            recorded = read_traces(content, f"sha256:{stage.file}")
        else:
            rules = training_rules(context.policy, context.ledger, setup.cycle, setup.tasksets)
            exhausted = partial(say_exhausted, self._progress, setup.catalog)
            stream = setup.training_tasks(rules, exhausted=exhausted)
            tasks = stream.tasks(derive("teacher", number) % (1 << 31), stage.teacher.tasks)
            agent = stage.recipe.agent
            with Teacher(
                stage.teacher,
                context.sessions,
                context.policy,
                max_calls=agent.max_calls,
                max_result_chars=agent.max_result_chars,
            ) as teacher:
                tried = teacher.traces(tasks, caller=caller)
            if tried.down:
                raise InfrastructureError(
                    f"{tried.lost} conversations with the teacher were lost: {tried.failure}",
                    hint="restart the teacher; the stage is repeated",
                )
            recorded, unheard = tried.traces, tried.lost
            why = f" ({tried.failure})" if tried.failure else ""
        tally = verified(
            recorded,
            context.sessions,
            context.checker,
            context.policy,
            apart=setup.kept_of_recent,
            max_result_chars=stage.recipe.agent.max_result_chars,
            caller=caller,
        )
        say_thrown_out(self._progress, Door.CONVERSATIONS, tally.asked)
        say_thrown_out(self._progress, Door.TOOL_RESULTS, tally.within)
        copies = len(tally.asked) + len(tally.within)
        kept = first_of_each(tally) if stage.data == "teacher" else tally.kept
        asked, lost = len(recorded) + unheard, tally.lost + unheard
        self._progress.say(
            "traces",
            f"{len(kept)} of {asked} conversations are used for training: {tally.failed} failed their check, "
            f"{copies} contain held-out questions, {lost} were lost{why}",
            kept=float(len(kept)),
            failed=float(tally.failed),
            copies=float(copies),
            lost=float(lost),
        )
        if not kept and lost:
            raise InfrastructureError(
                f"none of {asked} conversations passed its check, and {lost} were lost{why}",
                hint="run `assay doctor`; the stage is repeated",
            )
        if not kept:
            raise NothingVerifiedError(
                f"none of {asked} conversations passed its check",
                hint="check the conversations: only passing ones are used",
            )
        return kept

    def _name(self, number: int) -> str:
        return f"stage-{number}"

    def _folder(self, number: int) -> Path:
        return self._cycle / self._name(number)


class NothingVerifiedError(LearningError):
    """No conversation passed its check; a retry is useless."""

    exit_code = 2


class ChangedTracesError(LearningError):
    """Conversations differ from the digest in the stage; a retry is useless."""

    exit_code = 2


class UnlikeTeacherError(LearningError):
    """Teacher and student use different tokenizers; a retry is useless."""

    exit_code = 2


def unsolved(records: Iterable[StepRecord]) -> list[Task]:
    """Returns the generated tasks that some attempt failed when last asked, each once. Skips unjudged tasks, proposed
    tasks (no stream repeats them), infrastructure errors and branches."""
    found: dict[str, Task] = {}
    for record in records:
        passed: dict[str, bool] = {}
        for one in of_attempts(record.judged):
            if not is_masked(one):
                passed[one.rollout.task] = passed.get(one.rollout.task, True) and one.verdict.passed
        tasks = {one["id"]: Task.model_validate(one) for one in record.tasks}
        for name, solved in passed.items():
            if solved:
                found.pop(name, None)
            elif name in tasks and is_generated(tasks[name]):
                found[name] = tasks[name]
    return list(found.values())


def first_of_each(tally: TraceTally) -> tuple[VerifiedTrace, ...]:
    """Keeps one passing conversation per task, the first, so that easy tasks do not dominate."""
    found: dict[str, VerifiedTrace] = {}
    for one in tally.kept:
        found.setdefault(one.task.id, one)
    return tuple(found.values())
