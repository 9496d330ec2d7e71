"""One cycle, phase after phase: prepare, warm start, training, evaluation, decision.

What always holds. Each phase leaves a record in the ledger and begins by looking for it, so a cycle that was killed
anywhere goes on where it was: nothing that is on record is done again, nothing that is not on record has happened. The
champion that a cycle starts from is written into its plan before training begins and stays what it is compared with,
whatever is put into service meanwhile.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from appliance.agent.dialect import Codec
from appliance.learning.checkpoints import publish
from appliance.learning.recipe import Recipe
from appliance.learning.state import recipe_digest
from appliance.promotion import CANDIDATE, CHAMPION, decision_on
from appliance.records import Checkpoint, Cycle, Evaluation, ModelResults
from appliance.seedling.model import load_model
from appliance.worker.equipment import Equipment
from appliance.worker.exam import Sitting, sit
from appliance.worker.practice import Practice
from appliance.worker.progress import Progress, utc_now
from appliance.worker.seeds import derive
from appliance.worker.warm import Warming
from curriculum.sealed import SealedSet, sealed_set
from policies.decision import Decision


class Night:
    """Runs one cycle to its decision."""

    def __init__(self, cycle: Cycle, equipment: Equipment, progress: Progress, model_path: Path | None) -> None:
        self._cycle = cycle
        self._equipment = equipment
        self._ledger = equipment.ledger
        self._progress = progress
        self._model_path = model_path
        self._recipe = Recipe.model_validate(cycle.plan["recipe"])
        self._models = equipment.data / "models"

    def run(self) -> Decision:
        with self._progress.phase("prepare"):
            sealed = sealed_set(self._recipe.evaluation.sealed_items, derive("sealed", self._cycle.seed))
            self._ledger.put_sealed_set(sealed.digest, sealed.description)
        champion = self._start(sealed)
        with self._progress.phase("training"):
            candidate = self._train(champion, sealed)
        with self._progress.phase("evaluation"):
            evaluation = self._evaluate(candidate, champion, sealed)
        with self._progress.phase("decision"):
            decision = self._decide(evaluation)
        # The models are published and the rollouts on record: what only a resumed training would need may go.
        shutil.rmtree(self._equipment.data / "cycles" / self._cycle.id, ignore_errors=True)
        self._progress.done()
        return decision

    @property
    def _decision_id(self) -> str:
        return f"{self._cycle.id}.decision"

    def _start(self, sealed: SealedSet) -> Checkpoint:
        """The champion that this night starts from: that of the plan, that in service, or a first one."""
        planned = self._progress.cycle.plan.get("start") or self._ledger.alias(CHAMPION)
        known = self._ledger.checkpoint(planned) if planned else None
        if known is None:
            known = self._first(sealed)
        if self._progress.cycle.plan.get("start") != known.manifest:
            self._progress.plan(start=known.manifest)
        return known

    def _first(self, sealed: SealedSet) -> Checkpoint:
        """Nothing is in service yet: the owner's model, or a warm-started seedling, becomes the first champion."""
        with self._progress.phase("warm_start"):
            if self._model_path is not None:
                digest = publish(self._model_path, self._models)
                first = self._checkpoint(digest, None, "imported", 0, {})
            else:
                warming = Warming(
                    self._cycle.id, self._cycle.seed, self._recipe, sealed, self._equipment, self._progress
                )
                warmed = warming.run()
                digest = publish(warmed.folder, self._models)
                figures = {"validation_success": warmed.success}
                first = self._checkpoint(digest, None, "warm_start", warmed.step, figures)
            first = self._recorded(first)
            self._ledger.set_aliases({CHAMPION: digest}, "the first policy model: there was none before", utc_now())
        return first

    def _train(self, champion: Checkpoint, sealed: SealedSet) -> Checkpoint:
        trained = [known for known in self._ledger.checkpoints(cycle=self._cycle.id) if known.stage == "training"]
        if trained:
            self._present(trained[0])
            return trained[0]
        source = self._equipment.data / champion.folder
        practice = Practice(
            self._cycle.id,
            self._cycle.seed,
            self._recipe,
            load_model(source),
            source,
            sealed,
            self._equipment,
            Codec.load(source),
            self._progress,
        )
        practised = practice.run()
        digest = publish(practised.folder, self._models)
        if digest == champion.manifest:
            # Not one group had a right and a wrong rollout: the weights are the champion's, to the bit.
            self._progress.say("warning", "nothing was learned: no group had both right and wrong rollouts")
            return champion
        candidate = self._checkpoint(digest, champion.manifest, "training", practised.step, practised.metrics)
        candidate = self._recorded(candidate)
        self._present(candidate)
        return candidate

    def _present(self, candidate: Checkpoint) -> None:
        """Makes it the candidate, unless this night's decision about it is made: its alias is then no longer ours."""
        decided = any(one.id == self._decision_id for one in self._ledger.decisions(candidate=candidate.manifest))
        if not decided and self._ledger.alias(CANDIDATE) != candidate.manifest:
            self._ledger.set_aliases({CANDIDATE: candidate.manifest}, f"trained by {self._cycle.id}", utc_now())

    def _recorded(self, made: Checkpoint) -> Checkpoint:
        """Puts a checkpoint on record; equal weights that are there already keep the record that they have."""
        known = self._ledger.checkpoint(made.manifest)
        if known is None:
            self._ledger.put_checkpoint(made)
        return known or made

    def _evaluate(self, candidate: Checkpoint, champion: Checkpoint, sealed: SealedSet) -> Evaluation:
        name = f"{self._cycle.id}.evaluation"
        known = self._ledger.evaluation(name)
        if known is not None:
            return known
        temperature = self._recipe.evaluation.temperature
        results = {
            (who, kind): self._sit(number, checkpoint, kind, sealed)
            for number, (who, checkpoint, kind) in enumerate(
                [
                    ("champion", champion, temperature),
                    ("candidate", candidate, temperature),
                    ("champion", champion, 0.0),
                    ("candidate", candidate, 0.0),
                ]
            )
        }
        evaluation = Evaluation(
            id=name,
            cycle=self._cycle.id,
            sealed_set=sealed.digest,
            candidate=results["candidate", temperature],
            champion=results["champion", temperature],
            candidate_greedy=results["candidate", 0.0],
            champion_greedy=results["champion", 0.0],
            created=utc_now(),
        )
        self._ledger.put_evaluation(evaluation)
        return evaluation

    def _sit(self, number: int, checkpoint: Checkpoint, temperature: float, sealed: SealedSet) -> ModelResults:
        folder = self._equipment.data / checkpoint.folder
        self._equipment.engine.load(folder, checkpoint.manifest)
        sitting = Sitting(self._cycle.id, checkpoint.manifest, temperature, number, self._cycle.seed)
        found = sit(sitting, sealed.tasks, self._equipment, Codec.load(folder))
        passed = sum(item.passed is True for item in found.items)
        self._progress.say("evaluation", f"{passed} of {len(found.items)} right", step=float(number + 1), steps=4.0)
        self._progress.save()
        return found

    def _decide(self, evaluation: Evaluation) -> Decision:
        name = self._decision_id
        known = [one for one in self._ledger.decisions(candidate=evaluation.candidate.weights) if one.id == name]
        if known:
            return known[0]
        decision = decision_on(
            evaluation, self._equipment.policy, in_service=self._ledger.alias(CHAMPION), id=name, made_at=utc_now()
        )
        self._ledger.put_decision(decision)
        return decision

    def _checkpoint(
        self, digest: str, parent: str | None, stage: str, step: int, metrics: dict[str, float]
    ) -> Checkpoint:
        return Checkpoint.model_validate(
            {
                "manifest": digest,
                "parent": parent,
                "cycle": self._cycle.id,
                "stage": stage,
                "step": step,
                "recipe": recipe_digest(self._recipe),
                "metrics": metrics,
                "folder": f"models/{digest}",
                "created": utc_now(),
            }
        )
