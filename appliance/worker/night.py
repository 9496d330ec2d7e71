"""One cycle, phase after phase: prepare, warm start, training, evaluation, decision.

A candidate that an earlier night held for want of evidence is asked fresh questions instead of training another one,
as often as the policy says.

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
from appliance.ledger.history import history_of
from appliance.promotion import CANDIDATE, CHAMPION, decision_on, meetings
from appliance.records import Checkpoint, Cycle, Evaluation, ModelResults
from appliance.seedling.model import load_model
from appliance.worker.attest import write_attestation
from appliance.worker.equipment import Equipment
from appliance.worker.exam import Sitting, recorded_sitting, sit
from appliance.worker.gather import Gathering, trained_questions
from appliance.worker.practice import Practice
from appliance.worker.progress import Progress, utc_now
from appliance.worker.seeds import derive
from appliance.worker.warm import Warming
from curriculum.sealed import SealedSet, sealed_set
from policies.decision import Decision, DecisionOutcome
from policies.evidence import Gathered
from policies.gates_gain import asks_again


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
            held = self._held()
            sealed = self._seal(held)
        champion = self._start(sealed)
        with self._progress.phase("training"):
            candidate = held or self._train(champion, sealed)
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

    def _held(self) -> Checkpoint | None:
        """The candidate to ask again tonight; None when a new one is to be trained. Decided once a cycle."""
        if "again" not in self._progress.cycle.plan:
            fresh = not self._progress.cycle.plan.get("start") and not self._ledger.recorded_steps(self._cycle.id)
            again = self._worth_asking_again() if fresh else None
            self._progress.plan(again=again)
            if again is not None:
                self._progress.say("evidence", f"{again[:12]} was held for want of evidence: it is asked once more")
        planned = self._progress.cycle.plan["again"]
        return self._ledger.checkpoint(planned) if planned else None

    def _worth_asking_again(self) -> str | None:
        candidate, champion = self._ledger.alias(CANDIDATE), self._ledger.alias(CHAMPION)
        newest = self._ledger.decisions(candidate=candidate, limit=1) if candidate else []
        if not newest or newest[0].champion != champion or newest[0].outcome is not DecisionOutcome.HOLD:
            return None
        if newest[0].policy != self._equipment.policy.digest:
            return None  # an edit of the policy never applies to a candidate that was evaluated before it
        if newest[0].policy != self._equipment.policy.digest:
            return None  # an edit of the policy never applies to a candidate that was evaluated before it
        last = self._ledger.evaluation(newest[0].evaluation)
        if last is None:
            return None
        nights = len(meetings(last, self._ledger.evaluations(candidate=candidate, limit=1000)))
        rules = self._equipment.policy.promotion.evidence
        return candidate if asks_again(newest[0].findings, nights, rules) else None

    def _seal(self, held: Checkpoint | None) -> SealedSet:
        """Tonight's questions; none that a candidate from an earlier night was trained on."""
        seed = derive("sealed", self._cycle.seed)
        if held is None:
            sealed = sealed_set(self._recipe.evaluation.sealed_items, seed)
            description = sealed.description
        else:
            known = trained_questions(self._ledger, held.cycle)
            sealed = sealed_set(self._recipe.evaluation.sealed_items, seed, exclude=known)
            description = {**sealed.description, "without what was trained in": held.cycle}
        self._ledger.put_sealed_set(sealed.digest, description)
        return sealed

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
            first = self._recorded(first, sealed)
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
        candidate = self._recorded(candidate, sealed)
        self._present(candidate)
        return candidate

    def _present(self, candidate: Checkpoint) -> None:
        """Makes it the candidate, unless this night's decision about it is made: its alias is then no longer ours."""
        decided = any(one.id == self._decision_id for one in self._ledger.decisions(candidate=candidate.manifest))
        if not decided and self._ledger.alias(CANDIDATE) != candidate.manifest:
            self._ledger.set_aliases({CANDIDATE: candidate.manifest}, f"trained by {self._cycle.id}", utc_now())

    def _recorded(self, made: Checkpoint, sealed: SealedSet) -> Checkpoint:
        """Puts a checkpoint on record, with its attestation; equal weights that are there already keep the record that
        they have."""
        known = self._ledger.checkpoint(made.manifest)
        if known is None:
            policy = self._equipment.policy.digest
            write_attestation(
                self._equipment.data, self._ledger, self._cycle, made, policy=policy, sealed=sealed.digest
            )
            self._ledger.put_checkpoint(made)
        return known or made

    def _evaluate(self, candidate: Checkpoint, champion: Checkpoint, sealed: SealedSet) -> Evaluation:
        name = f"{self._cycle.id}.evaluation"
        known = self._ledger.evaluation(name)
        if known is not None:
            return known
        sat = [self._sit(*sitting, sealed) for sitting in self._sittings(candidate, champion)]
        evaluation = Evaluation(
            id=name,
            cycle=self._cycle.id,
            sealed_set=sealed.digest,
            champion=sat[0],
            candidate=sat[1],
            champion_greedy=sat[2],
            candidate_greedy=sat[3],
            gathered=self._gather(candidate, champion, sealed),
            created=utc_now(),
            policy=self._equipment.policy.digest,
        )
        self._ledger.put_evaluation(evaluation)
        return evaluation

    def _sittings(self, candidate: Checkpoint, champion: Checkpoint) -> list[tuple[int, Checkpoint, float]]:
        """Number, who, temperature: both sampled, then both greedy."""
        sampled = self._recipe.evaluation.temperature
        return [(0, champion, sampled), (1, candidate, sampled), (2, champion, 0.0), (3, candidate, 0.0)]

    def _sitting(self, number: int, checkpoint: Checkpoint, temperature: float) -> Sitting:
        return Sitting(self._cycle.id, checkpoint.manifest, temperature, number, self._cycle.seed)

    def _gather(self, candidate: Checkpoint, champion: Checkpoint, sealed: SealedSet) -> Gathered:
        """What the policy asks for beside the answers."""
        judged = [
            recorded_sitting(self._sitting(number, checkpoint, temperature), sealed.tasks, self._equipment)
            for number, checkpoint, temperature in self._sittings(candidate, champion)[:2]
        ]
        theirs, ours = (found or [] for found in judged)
        gathering = Gathering(self._cycle.id, self._cycle.seed, self._recipe, self._equipment, sealed)
        found = gathering.gather(candidate, champion, ours, theirs)
        self._progress.save()
        return found

    def _sit(self, number: int, checkpoint: Checkpoint, temperature: float, sealed: SealedSet) -> ModelResults:
        folder = self._equipment.data / checkpoint.folder
        self._equipment.engine.load(folder, checkpoint.manifest)
        sitting = self._sitting(number, checkpoint, temperature)
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
            evaluation,
            self._equipment.policy,
            in_service=self._ledger.alias(CHAMPION),
            history=history_of(evaluation, self._ledger),
            id=name,
            made_at=utc_now(),
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
