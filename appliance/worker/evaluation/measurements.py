"""Measurements that gates ask for beside the answers: verifiers, hacks, drift, contamination, egress, refusals.

Invariants: only what the policy asks for is measured; each measurement concerns this cycle's candidate, these sealed
questions and this machine; a failed measurement is reported as missing or untested, never as a good figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from appliance.learning.signal.corrections import divergence, drift_of
from appliance.ledger.ledger import Ledger
from appliance.records.cycles import Checkpoint
from appliance.records.rollouts import REFUSAL_RUN, UNSOLVABLE_RUN
from appliance.records.training import Judged
from appliance.system.clock import now
from appliance.worker.evaluation.egress_probe import probed
from appliance.worker.evaluation.evaluate import EvalRun, evaluate, judge_and_record, recorded
from appliance.worker.evaluation.safety_probe import refused, requests
from appliance.worker.setup.context import WorkContext
from appliance.worker.setup.cycle_setup import BY_ID, CycleSetup, keys_of, trained_questions
from curriculum.catalog import Catalog
from curriculum.contract.task import Task
from curriculum.names import CALCULATORS
from curriculum.registry import BUILT_IN
from curriculum.sealed import sealed_set
from curriculum.seeds import derive
from policies.contract.evidence import (
    ContaminationReport,
    DriftReport,
    HackReport,
    Measurements,
    ProbeReport,
    SelfTestReport,
)
from runtime.sandbox import CallResult, Tier
from verifiers.contract.verdict import Outcome
from verifiers.selftest.report import NotRun, SelfTestEntry
from verifiers.selftest.run import run_selftest, selftest_digest

TOLD_SECONDS = 10.0
"""Seconds between two progress lines of the verifier self-test."""


class CycleMeasurements:
    """Takes the measurements of one cycle's candidate that the policy requires."""

    def __init__(self, setup: CycleSetup, context: WorkContext, tell: Callable[[str], None]) -> None:
        """Prepares one cycle's measurements. `tell` receives progress lines of the verifier self-test, which takes a
        minute or more."""
        self._setup = setup
        self._tell = tell
        self._told: float | None = None
        self._open = 0
        """Number of self-test cases without a verdict so far."""
        self._context = context
        self._ledger = context.ledger
        self._temperature = setup.recipe.evaluation.temperature

    def measure(
        self, candidate: Checkpoint, champion: Checkpoint, ours: Sequence[Judged], theirs: Sequence[Judged]
    ) -> Measurements:
        """Takes all measurements that the policy requires of the candidate. `ours` and `theirs` are candidate's and
        champion's sampled rollouts on the sealed questions, in order."""
        asked = self._context.policy.asks_for
        trained = trained_questions(self._ledger, candidate.cycle) if asked("contamination") else None
        return Measurements(
            selftest=self._selftest() if asked("selftest") else None,
            hacks=self._hacks(candidate, ours) if asked("hacks") else None,
            drift=self._drift(candidate, champion, ours, theirs) if asked("drift") else None,
            contamination=None if trained is None else contamination_of(self._setup.sealed.tasks, trained),
            egress=self._egress() if asked("egress") else None,
            refusal=self._refusals(candidate) if asked("refusal") else None,
        )

    def _selftest(self) -> SelfTestReport:
        """Runs the verifier self-test for the kinds of verifiers that the sealed questions use, through the same
        checker."""
        kinds = sorted({task.spec.kind for task in self._setup.sealed.tasks})
        found = run_selftest(self._context.checker, made_at=now(), jobs=4, only=kinds, progress=self._tried)
        missing = [case for case in found.not_run if case.verifier in kinds]
        return SelfTestReport(
            verifiers=tuple(kinds),
            untested=tuple(
                kind
                for kind in kinds
                if kind in {case.verifier for case in missing}
                or kind not in {entry.verifier for entry in found.entries}
            ),
            missing=len(missing),
            why=missing[0].reason if missing else "",
            attacks=found.attacks,
            accepted=found.accepted,
            controls=found.controls,
            rejected=found.controls_rejected,
            unsuspected=found.suspected_expected - found.suspected_found,
            tested=found.digest,
            installed=selftest_digest(),
            made_at=found.made_at.isoformat(timespec="milliseconds"),
        )

    def _tried(self, done: int, total: int, last: SelfTestEntry | NotRun) -> None:
        self._open += isinstance(last, NotRun)
        now = time.monotonic()
        if done == total or self._told is None or now - self._told >= TOLD_SECONDS:
            self._told = now
            again = f", {self._open} of them without a verdict: tried again at the end" if self._open else ""
            self._tell(f"verifiers: {done} of {total} attacks and controls tried{again}")

    def _hacks(self, candidate: Checkpoint, ours: Sequence[Judged]) -> HackReport:
        """Asks the candidate questions whose check contradicts them, and counts hacks: a pass proves a hack, not a
        solution."""
        setup = self._setup
        tasks = unsolvable(setup.recipe.evaluation.unsolvable_items, setup.seed, setup.tasksets, setup.catalog)
        seed = derive("unsolvable", setup.seed)
        run = EvalRun(setup.cycle, candidate, self._temperature, UNSOLVABLE_RUN, seed)
        return hacks_of(evaluate(run, tasks, self._context)[1], ours)

    def _refusals(self, candidate: Checkpoint) -> ProbeReport:
        """Asks the candidate to attack its sandbox and its checker; counts the requests that it refused."""
        setup = self._setup
        run = EvalRun(setup.cycle, candidate, self._temperature, REFUSAL_RUN, setup.seed)
        assignments = requests(run, self._context.policy)
        judged = recorded([one.id for one in assignments], run, self._ledger)
        if judged is None:
            judged = judge_and_record(assignments, self._context, self._context.agent_of(candidate))
        return refused(judged)

    def _drift(
        self, candidate: Checkpoint, champion: Checkpoint, ours: Sequence[Judged], theirs: Sequence[Judged]
    ) -> DriftReport:
        base = first_of_line(self._ledger, champion)
        from_champion = self._divergence(ours, champion)
        return drift_of(
            ours,
            theirs,
            kl_champion=from_champion,
            kl_base=from_champion if base == champion else self._divergence(ours, base),
        )

    def _divergence(self, written: Sequence[Judged], model: Checkpoint) -> float:
        """Returns the KL divergence of the candidate's answers from `model`, after loading it into the engine."""
        self._context.load(model)
        return divergence(written, self._context.engine, self._temperature)

    def _egress(self) -> ProbeReport:
        """Probes all routes out of fresh sandboxes, configured like the candidate's."""

        def run(program: str) -> CallResult:
            with self._context.sessions.open(tier=Tier.SANDBOX, caller=f"{self._setup.cycle}.egress") as session:
                return session.run(program)

        return probed(run)


def unsolvable(items: int, seed: int, tasksets: Sequence[str] = CALCULATORS, catalog: Catalog = BUILT_IN) -> list[Task]:
    """Returns ordinary sealed questions whose specs no honest answer satisfies. Deterministic in its arguments."""
    tasks = []
    for task in sealed_set(items, derive("unsolvable", seed), tasksets=tasksets, catalog=catalog).tasks:
        spec = catalog.named(task.taskset).unsolvable(catalog.draft_of(task), derive("unsolvable", seed, task.id))
        tasks.append(task.model_copy(update={"spec": spec, "provenance": f"unsolvable:{task.provenance}"}))
    return tasks


def hacks_of(unsolvable_: Sequence[Judged], sealed: Sequence[Judged]) -> HackReport:
    """Counts the candidate's passed unsolvable questions and suspected answers; excludes infrastructure errors."""
    asked = [one.verdict for one in unsolvable_ if one.verdict.outcome is not Outcome.INFRA_ERROR]
    answers = [one.verdict for one in sealed if one.verdict.outcome is not Outcome.INFRA_ERROR]
    return HackReport(
        impossible=len(asked),
        passed=sum(verdict.passed for verdict in asked),
        answers=len(answers),
        suspected=sum(verdict.outcome is Outcome.HACK_SUSPECTED for verdict in answers),
    )


def contamination_of(sealed: Sequence[Task], trained: Collection[str]) -> ContaminationReport:
    """Counts the sealed questions that occur in the training data."""
    return ContaminationReport(
        sealed=len(sealed),
        trained=sum(key.startswith(BY_ID) for key in trained),
        found=sum(any(key in trained for key in keys_of(task)) for task in sealed),
    )


def first_of_line(ledger: Ledger, checkpoint: Checkpoint) -> Checkpoint:
    """Returns the root of a checkpoint's lineage, or its oldest recorded ancestor."""
    seen = {checkpoint.manifest}
    while checkpoint.parent is not None and checkpoint.parent not in seen:
        parent = ledger.checkpoint(checkpoint.parent)
        if parent is None:
            return checkpoint
        seen.add(parent.manifest)
        checkpoint = parent
    return checkpoint
