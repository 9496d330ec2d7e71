"""Runs one cycle up to its decision: preparation, training with its warm start, and evaluation, each in a process.

A candidate held for insufficient evidence is evaluated on fresh questions instead of training a new one, as often as
the policy allows.

Invariants: each phase writes a ledger record and looks for that record first, so a killed cycle resumes where it
stopped; recorded work is never repeated and unrecorded work never counts. The preparation writes the exam to the plan
before anything is trained: tasksets, sealed set, and the champion, which stays the baseline even if another model is
promoted meanwhile. Training and evaluation draw the same sealed set, or end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from appliance.curriculum.kept_files import NIGHTS, keep_questions, recent_questions, trained_until
from appliance.curriculum.own_tasksets import catalog_in
from appliance.inference.engine import ModelError, ModelFiles
from appliance.learning.checkpoints import model_files, publish
from appliance.learning.errors import CheckpointError, LearningError
from appliance.learning.folders import read_verified
from appliance.learning.recipes.recipe import Recipe
from appliance.learning.recipes.stages import Stage
from appliance.promotion.evidence import CANDIDATE, CHAMPION, meetings
from appliance.records.cycles import SEALED, Checkpoint, Cycle, TrainingStage
from appliance.records.evaluations import BASE_RUN, CANDIDATE_RUN, CHAMPION_RUN, Evaluation, ModelResults
from appliance.records.training import Judged
from appliance.rendering.renderer import RenderingError
from appliance.settings.config_layers import ConfigError
from appliance.system.clock import utc_now
from appliance.worker.evaluation.anchors import (
    OtherTasksets,
    anchored_in,
    answers_of_anchors,
    others_with_anchor,
    rows_of,
    with_anchor,
)
from appliance.worker.evaluation.attest import write_attestation
from appliance.worker.evaluation.evaluate import EvalRun, evaluate
from appliance.worker.evaluation.measurements import CycleMeasurements
from appliance.worker.setup.context import WorkContext, try_out
from appliance.worker.setup.cycle_setup import CycleSetup, TrainingResult, left_out, trained_questions, watched_in
from appliance.worker.setup.progress import CycleProgress
from appliance.worker.sft.stage import SftRun
from appliance.worker.stages import StagedTraining, published
from appliance.worker.training.rl_loop import RlLoop
from curriculum.catalog import Catalog
from curriculum.sealed import SealedSet, sealed_set
from curriculum.seeds import derive
from policies.contract.decision import DecisionOutcome
from policies.gates import evidence, retention
from policies.gates.evidence import asks_again


class ChangedExamError(LearningError):
    """The sealed questions of a cycle cannot be drawn again; a retry is useless."""

    exit_code = 2


class CycleRun:
    """Prepares one cycle, trains for it or evaluates its result: see `appliance.daemon.service.decision`."""

    def __init__(self, cycle: Cycle, context: WorkContext, progress: CycleProgress, model_path: Path | None) -> None:
        self._cycle = cycle
        self._context = context
        self._ledger = context.ledger
        self._progress = progress
        self._model_path = model_path
        self._recipe = Recipe.model_validate(cycle.plan["recipe"])
        self._stages = tuple(map(Stage.model_validate, cycle.plan.get("stages", ())))
        self._models = context.data / "models"

    def prepare(self) -> None:
        """Fixes the cycle's exam in its plan: champion, tasksets, sealed set. Does nothing if it is fixed."""
        plan = self._progress.cycle.plan
        if SEALED in plan:
            return
        with self._progress.phase("prepare"):
            again = plan["again"] if "again" in plan else None if "start" in plan else self._again()
            champion = plan.get("start") or self._ledger.alias(CHAMPION)
            catalog = catalog_in(self._context.data, self._recipe.tasksets)
            usable, without = self._usable(catalog, champion)
            held = self._ledger.checkpoint(again) if again else None
            sealed = self._drawn(held, usable, self._others(catalog, usable, champion))
            more = {} if held is None else {"without what was trained in": held.cycle}
            self._ledger.put_sealed_set(sealed.digest, {**sealed.description, **more})
            start = {"start": champion} if champion else {}
            fixed = {"again": again, "tasksets": usable, "left_out": without, SEALED: sealed.digest, **start}
            for name, reason in without.items():
                self._progress.say("warning", f"taskset {name} is skipped: {reason}")
            self._progress.plan(**fixed)

    def train(self) -> None:
        """Trains the cycle's candidate, and writes it to the cycle's plan."""
        self.prepare()
        with self._progress.phase("prepare"):
            held = self._held()
            setup = self._setup(held)
        champion = self._start(setup)
        with self._progress.phase("training"):
            candidate = held or self._train(champion, setup)
        self._progress.plan(candidate=candidate.manifest)

    def evaluate(self) -> None:
        """Evaluates the candidate in the cycle's plan against the champion, and records the evaluation."""
        with self._progress.phase("evaluation"):
            candidate, champion = (self._planned(which) for which in ("candidate", "start"))
            self._evaluate(candidate, champion, self._setup(self._held()))

    def _planned(self, which: Literal["candidate", "start"]) -> Checkpoint:
        known = self._ledger.checkpoint(self._cycle.plan[which])
        if known is None:
            raise LookupError(f"checkpoint {self._cycle.plan[which]} of {self._cycle.id} is not recorded")
        return known

    def _held(self) -> Checkpoint | None:
        """Returns the earlier candidate, held for lack of evidence, to evaluate again, or None to train a new one."""
        planned = self._progress.cycle.plan["again"]
        return self._ledger.checkpoint(planned) if planned else None

    def _again(self) -> str | None:
        again = None if self._stages else self._worth_asking_again()
        if again is not None:
            self._progress.say("evidence", f"{again[:12]} was held for insufficient evidence and is evaluated again")
        return again

    def _worth_asking_again(self) -> str | None:
        candidate, champion = self._ledger.alias(CANDIDATE), self._ledger.alias(CHAMPION)
        newest = self._ledger.decisions(candidate=candidate, limit=1) if candidate else []
        if not newest or newest[0].champion != champion or newest[0].outcome is not DecisionOutcome.HOLD:
            return None
        if newest[0].policy != self._context.policy.digest:
            return None  # a policy edit never applies to a candidate evaluated before it
        last = self._ledger.evaluation(newest[0].evaluation)
        if last is None:
            return None
        nights = len(meetings(last, self._ledger.evaluations(candidate=candidate, limit=1000)))
        rules = self._context.policy.rules_of(evidence.GATE)
        return candidate if asks_again(newest[0].findings, nights, rules) else None

    def _setup(self, held: Checkpoint | None) -> CycleSetup:
        """Builds this cycle's setup with the planned tasksets and sealed questions. Raises ChangedExamError if these
        cannot be drawn again."""
        cycle, recipe, plan = self._cycle, self._recipe, self._progress.cycle.plan
        catalog, tasksets = catalog_in(self._context.data, recipe.tasksets), tuple(plan["tasksets"])
        beside = self._others(catalog, tasksets, plan.get("start"))
        catalog, sealed = beside.catalog, self._drawn(held, tasksets, beside)
        if sealed.digest != plan[SEALED]:
            raise ChangedExamError(
                f"the sealed questions of {cycle.id} cannot be drawn again: a taskset changed since it began",
                hint="cancel this cycle and start another one",
            )
        others = [one for one in self._ledger.cycles(NIGHTS + 1) if one.id != cycle.id][:NIGHTS]
        earlier = tuple(recent_questions(self._context.data, others, catalog))
        setup = CycleSetup(cycle.id, cycle.seed, recipe, tasksets, sealed, catalog, earlier, beside.not_askable)
        watched = [] if cycle.kind == "evaluation" else watched_in(setup, [one.recipe for one in self._stages])
        keep_questions(self._context.data, cycle.id, [*sealed.tasks, *watched])
        return setup

    def _drawn(self, held: Checkpoint | None, tasksets: tuple[str, ...], beside: OtherTasksets) -> SealedSet:
        """Draws the cycle's sealed questions, also of tasksets with an anchor that training does not use. Excludes
        questions a re-evaluated candidate was trained on, and near-copies of anything that was ever trained on."""
        asked = self._recipe.evaluation.sealed_items
        return sealed_set(
            asked + min(asked, asked * len(beside.names) // len(tasksets)),
            derive("sealed", self._cycle.seed),
            exclude=frozenset() if held is None else trained_questions(self._ledger, held.cycle),
            tasksets=(*tasksets, *beside.names),
            catalog=beside.catalog,
            trained=trained_until(self._ledger, self._context.data, self._cycle.id),
        )

    def _usable(self, catalog: Catalog, champion: str | None) -> tuple[tuple[str, ...], dict[str, str]]:
        """Selects the recipe's tasksets whose answers this machine can check and whose tools the champion can call.
        Returns their names, and the reasons for the others."""
        named, certified = self._recipe.tasksets, self._progress.cycle.plan.get("certified", {})
        without = left_out(named, certified, self._folder_of(champion), catalog)
        return tuple(name for name in catalog.tasksets if name in named and name not in without), without

    def _others(self, catalog: Catalog, tasksets: Sequence[str], champion: str | None) -> OtherTasksets:
        """Returns the tasksets with an anchor that training does not use; the same until the cycle ends."""
        guarded = self._context.policy.gates.get(retention.GATE) is not None
        known = with_anchor(self._ledger, self._cycle.id) if guarded else ()
        names, certified = (
            [name for name in known if name not in tasksets],
            self._progress.cycle.plan.get("certified", {}),
        )
        return others_with_anchor(names, catalog, self._context.data, certified, self._folder_of(champion))

    def _folder_of(self, champion: str | None) -> Path | None:
        """Returns the folder of the model whose format decides what can be asked; None for the seedling's."""
        known = self._ledger.checkpoint(champion) if champion else None
        return self._context.data / known.folder if known is not None else self._model_path

    def _start(self, setup: CycleSetup) -> Checkpoint:
        """Returns the champion that training starts from: from the plan, the one in service, or a first model."""
        known = self._champion() or self._first(setup)
        if self._progress.cycle.plan.get("start") != known.manifest:
            self._progress.plan(start=known.manifest)
        return known

    def _champion(self) -> Checkpoint | None:
        planned = self._progress.cycle.plan.get("start")
        return self._ledger.checkpoint(planned) if planned else None

    def _first(self, setup: CycleSetup) -> Checkpoint:
        """Publishes the first model when none is in service: the owner's model, or a warm-started seedling."""
        with self._progress.phase("warm_start"):
            if self._model_path is None:
                made = SftRun(setup, self._context, self._progress).run()
                digest = publish(made.folder, self._models)
                return self._recorded(digest, None, "warm_start", made.step, made.metrics, sealed=setup.sealed)
            self._try_out(self._model_path)
            digest = publish(self._model_path, self._models)
            own = self._recorded(digest, None, "imported", 0, {}, sealed=setup.sealed)
            if not self._recipe.warm_start.own_model:
                return own
            made = SftRun(setup, self._context, self._progress, source=self._files(own)).run()
            taught = self._published(made, own)
            if taught is None:
                self._progress.say("warning", "the warm start learned nothing: the model stays as it was")
                return own
            return self._recorded(taught, digest, "warm_start", made.step, made.metrics, sealed=setup.sealed)

    def _published(self, made: TrainingResult, start: Checkpoint) -> str | None:
        """Publishes what was trained from `start`; returns its digest, or None if the weights are unchanged."""
        folder = self._context.data / start.folder
        return published(made, self._recipe.training.method, self._files(start), folder, self._models)

    def _try_out(self, folder: Path) -> None:
        """Scores one question with the owner's model before anything is recorded. Raises ConfigError for an unusable
        model, where a retry is useless until somebody fixes the setting. Machine failures propagate unchanged."""
        engine = self._context.engine
        try:
            try_out(engine, {name: path.read_bytes() for name, path in model_files(folder).items()})
        except (CheckpointError, ModelError, RenderingError) as error:
            raise ConfigError(f"model.path is {folder}: {error}", hint=error.hint) from error

    def _train(self, champion: Checkpoint, setup: CycleSetup) -> Checkpoint:
        trained = [known for known in self._ledger.checkpoints(cycle=self._cycle.id) if known.stage == "training"]
        if trained and not self._stages:
            self._present(trained[0])
            return trained[0]
        if self._stages:
            recorded = partial(self._recorded, sealed=setup.sealed)
            run = StagedTraining(self._stages, setup, self._context, self._progress, recorded)
            candidate = run.train(champion)
        else:
            made = RlLoop(setup, self._files(champion), self._context, self._progress).run()
            digest = self._published(made, champion)
            if digest is None:
                candidate = champion
            else:
                candidate = self._recorded(
                    digest, champion.manifest, "training", made.step, made.metrics, sealed=setup.sealed
                )
        if candidate.manifest == champion.manifest:
            # The weights are the champion's, to the bit.
            kept = "nothing learned was kept: the weights are the starting model's"
            alike = "nothing was learned: no group had both right and wrong rollouts"
            self._progress.say("warning", kept if self._learned() else alike)
            return champion
        self._present(candidate)
        return candidate

    def _learned(self) -> bool:
        """True if any training step of the cycle kept a group of rollouts, or if no step was recorded."""
        steps = self._ledger.recorded_steps(self._cycle.id)
        records = (self._ledger.step(self._cycle.id, step) for step in steps)
        return not steps or any(group.kept for record in records if record is not None for group in record.groups)

    def _files(self, model: Checkpoint) -> ModelFiles:
        """Reads a published model's files and verifies them against its record. Callers drop the bytes soon: they are
        as large as the model."""
        return read_verified(self._context.data / model.folder, expect=model.manifest)

    def _present(self, candidate: Checkpoint) -> None:
        if self._ledger.alias(CANDIDATE) != candidate.manifest:
            self._ledger.set_aliases({CANDIDATE: candidate.manifest}, f"trained by {self._cycle.id}", utc_now())

    def _recorded(
        self,
        digest: str,
        parent: str | None,
        stage: TrainingStage,
        step: int,
        metrics: dict[str, float],
        *,
        sealed: SealedSet,
        recipe: str = "",
    ) -> Checkpoint:
        """Records a published model and its signed attestation in the ledger; equal weights already recorded keep their
        record."""
        known = self._ledger.checkpoint(digest)
        if known is not None:
            return known
        made = Checkpoint(
            manifest=digest,
            parent=parent,
            cycle=self._cycle.id,
            stage=stage,
            step=step,
            recipe=recipe or self._recipe.digest(),
            metrics=metrics,
            folder=f"models/{digest}",
            created=utc_now(),
        )
        policy = self._context.policy.digest
        write_attestation(self._context.data, self._ledger, self._cycle, made, policy=policy, sealed=sealed.digest)
        self._ledger.put_checkpoint(made)
        return made

    def _evaluate(self, candidate: Checkpoint, champion: Checkpoint, setup: CycleSetup) -> None:
        """Evaluates each model sampled and greedy, takes the policy's other measurements, and stores the evaluation in
        the ledger. Does nothing if it is stored already. A champion that is its own candidate is evaluated once."""
        name = f"{self._cycle.id}.evaluation"
        if self._ledger.evaluation(name) is not None:
            return
        sampled = self._recipe.evaluation.temperature
        runs = [(CHAMPION_RUN, champion, sampled), (2, champion, 0.0)]
        if candidate.manifest != champion.manifest:
            runs += [(CANDIDATE_RUN, candidate, sampled), (3, candidate, 0.0)]
        found: dict[int, tuple[ModelResults, list[Judged]]] = {}
        for place, (number, model, temperature) in enumerate(runs, 1):
            run = EvalRun(self._cycle.id, model, temperature, number, derive("exam", self._cycle.seed))
            found[number] = evaluate(run, setup.sealed.tasks, self._context)
            items = found[number][0].items
            who = "champion" if model is champion else "candidate"
            right = f"{sum(item.passed is True for item in items)} of {len(items)} right"
            said = f"{who}, {'sampled' if temperature else 'greedy'}: {right}"
            self._progress.say("evaluation", said, step=float(place), steps=float(len(runs)))
            self._progress.save()
        base = self._of_base(champion, setup)
        (theirs, their_rollouts), (ours, our_rollouts) = found[0], found.get(1, found[0])
        asked = frozenset(task.taskset for task in setup.sealed.tasks)
        anchored = anchored_in(self._ledger, champion.manifest, asked.union(with_anchor(self._ledger, self._cycle.id)))
        anchors: tuple[ModelResults, ...] = ()
        if candidate.manifest != champion.manifest:
            there, say = frozenset({candidate.manifest, champion.manifest}), partial(self._progress.say, "anchor")
            anchors = answers_of_anchors(anchored, there, setup, self._context, say)
            self._progress.save()
        measurements = CycleMeasurements(setup, self._context, lambda text: self._progress.say("selftest", text))
        measured = measurements.measure(candidate, champion, our_rollouts, their_rollouts)
        self._progress.save()
        evaluation = Evaluation(
            id=name,
            cycle=self._cycle.id,
            sealed_set=setup.sealed.digest,
            champion=theirs,
            candidate=ours,
            champion_greedy=found[2][0],
            candidate_greedy=found.get(3, found[2])[0],
            base=base,
            anchors=anchors,
            anchored=anchored,
            rows=rows_of(setup),
            not_askable={**setup.not_askable},
            measurements=measured,
            created=utc_now(),
            policy=self._context.policy.digest,
        )
        self._ledger.put_evaluation(evaluation)

    def _of_base(self, champion: Checkpoint, setup: CycleSetup) -> ModelResults | None:
        """Evaluates the model that the champion's warm start began from, sampled, while no model is in service; None
        if it began from none."""
        first = champion.stage == "warm_start" and self._ledger.alias(CHAMPION) is None
        base = self._ledger.checkpoint(champion.parent) if first and champion.parent is not None else None
        if base is None:
            return None
        run = EvalRun(
            self._cycle.id, base, self._recipe.evaluation.temperature, BASE_RUN, derive("exam", self._cycle.seed)
        )
        results = evaluate(run, setup.sealed.tasks, self._context)[0]
        right = f"{sum(item.passed is True for item in results.items)} of {len(results.items)} right"
        self._progress.say("evaluation", f"before the warm start, sampled: {right}")
        self._progress.save()
        return results
