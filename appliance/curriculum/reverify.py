"""Judges stored answers again whose verifier has a new version, and reports the differences.

Invariants: nothing is changed; a verdict from the current verifier version is not repeated; infrastructure errors, then
or now, are counted and not compared. Rollouts are read in pages, newest first. Specs come from the records: tasks of
steps, held-out questions of cycles, and jobs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from appliance.curriculum.kept_files import kept_questions
from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import meetings
from appliance.records.cycles import Cycle
from appliance.records.evaluations import SAMPLED_RUNS
from appliance.records.record import Record
from appliance.records.rollouts import Purpose
from appliance.records.training import Judged, RolloutFilter
from common.counting import counted
from curriculum.contract.task import Task
from verifiers.contract.verdict import Outcome, SpecProblem, Verdict
from verifiers.registry import identity
from verifiers.registry.spec import Spec

PAGE = 200
MOST = 100_000
SHOWN = 500
Judge = Callable[[Sequence[tuple[Spec, str]]], Sequence[Verdict | SpecProblem]]


class JudgedAnew(Record):
    """A stored answer whose verdict is different under the current verifier."""

    id: str
    """Id of the rollout or bundle."""
    work: str
    """Id of the cycle or job."""
    purpose: str
    step: int
    verifier: str
    versions: tuple[str, str]
    """Verifier version then, and now."""
    outcomes: tuple[str, str]
    scores: tuple[float, float]


class Reverification(Record):
    rollouts: int
    """Number of rollouts read."""
    judged: int
    """Answers judged again because their verifier has another version."""
    unknown: int
    """Answers whose spec is not on record."""
    broken: int
    """Answers without a verdict now."""
    different: int
    rewards: tuple[JudgedAnew, ...]
    """Changed verdicts of rollouts that were trained on."""
    promotions: dict[str, str]
    """Changes in the evaluation behind a decision, by decision."""
    bundles: tuple[JudgedAnew, ...]
    seconds: float

    @property
    def same(self) -> bool:
        """True if every repeated verdict was reached and equals the stored one."""
        return not (self.different or self.bundles or self.broken)


def reverify(
    ledger: Ledger,
    data: Path,
    judge: Judge,
    *,
    since: str = "",
    clock: Callable[[], float] = time.monotonic,
    say: Callable[[str], object] = lambda text: None,
) -> Reverification:
    """Judges stored answers again whose verifier has a new version, and returns the changed verdicts. `since` (UTC, ISO
    8601) skips older cycles and jobs. Raises LedgerError."""
    started = clock()
    counts: Counter[str] = Counter()
    changes: list[JudgedAnew] = []
    for cycle in ledger.cycles(MOST):
        if cycle.created >= since:
            specs = _specs_of(cycle, ledger, data)
            for page in _pages(ledger, RolloutFilter(cycle=cycle.id)):
                known = [(one, None if _own_check(one) else specs.get(one.rollout.task)) for one in page]
                changes += _judged_anew(known, judge, counts)
                say(f"{cycle.id}: {counted(counts['rollouts'], 'rollout')} read, {counts['judged']} judged again")
    for job in ledger.jobs(MOST):
        if job.created >= since:
            for page in _pages(ledger, RolloutFilter(job=job.id)):
                changes += _judged_anew([(one, job.spec) for one in page], judge, counts)
    bundles = tuple(_bundles(ledger, judge, since, counts))
    return Reverification(
        rollouts=counts["rollouts"],
        judged=counts["judged"],
        unknown=counts["unknown"],
        broken=counts["broken"],
        different=len(changes),
        rewards=tuple(one for one in changes if one.purpose == Purpose.TRAIN)[:SHOWN],
        promotions=_promotions(ledger, changes),
        bundles=bundles,
        seconds=round(clock() - started, 3),
    )


def _own_check(judged: Judged) -> bool:
    """True if a rollout of an evaluation (unsolvable or refusal probe) had its own check, which is not on record. The
    task of that name has another."""
    return judged.rollout.is_probe


def _specs_of(cycle: Cycle, ledger: Ledger, data: Path) -> dict[str, Spec]:
    tasks = [*map(Task.model_validate, ledger.step_tasks(cycle.id)), *kept_questions(data, cycle.id)]
    return {task.id: task.spec for task in tasks}


def _pages(ledger: Ledger, where: RolloutFilter) -> Iterator[list[Judged]]:
    while page := ledger.rollouts(where, limit=PAGE):
        yield page
        where = where.model_copy(update={"before": page[-1].rollout.id})


def _judged_anew(page: Sequence[tuple[Judged, Spec | None]], judge: Judge, counts: Counter[str]) -> list[JudgedAnew]:
    counts["rollouts"] += len(page)
    again: list[tuple[Judged, Spec, str]] = []
    for one, spec in page:
        answer = one.rollout.answer
        if answer is None or one.verdict.outcome is Outcome.INFRA_ERROR or not one.verdict.verifier:
            continue
        if spec is None:
            counts["unknown"] += 1
        elif is_outdated(one.verdict, spec):
            again.append((one, spec, answer))
    counts["judged"] += len(again)
    found = []
    for (one, spec, _), now in zip(again, judge([(spec, answer) for _, spec, answer in again]), strict=True):
        if isinstance(now, SpecProblem) or now.outcome is Outcome.INFRA_ERROR:
            counts["broken"] += 1
        elif differs(one.verdict, now):
            rollout = one.rollout
            found.append(
                _change(rollout.id, rollout.cycle, rollout.purpose.value, rollout.step, spec, one.verdict, now)
            )
    return found


def is_outdated(then: Verdict, spec: Spec) -> bool:
    """True if the verifier of this verdict now has another name or version."""
    return (then.verifier, then.version) != identity(spec)


def differs(then: Verdict, now: Verdict) -> bool:
    """True if two verdicts on the same answer differ in passing or score, so that it would earn another reward."""
    return (then.passed, then.score) != (now.passed, now.score)


def _change(name: str, work: str, purpose: str, step: int, spec: Spec, then: Verdict, now: Verdict) -> JudgedAnew:
    return JudgedAnew(
        id=name,
        work=work,
        purpose=purpose,
        step=step,
        verifier=spec.kind,
        versions=(then.version, identity(spec)[1]),
        outcomes=(then.outcome.value, now.outcome.value),
        scores=(then.score, now.score),
    )


def _promotions(ledger: Ledger, changes: Sequence[JudgedAnew]) -> dict[str, str]:
    """Describes, by id, the promotion decisions that rest on a changed verdict. It may be in their evaluation or in an
    earlier one of the same two models. Greedy answers decide nothing."""
    counted = Counter(one.work for one in changes if one.purpose == Purpose.EVALUATION and one.step in SAMPLED_RUNS)
    found = {}
    for decision in ledger.decisions(limit=MOST) if counted else ():
        evaluation = ledger.evaluation(decision.evaluation)
        if evaluation is None:
            continue
        history = ledger.evaluations(candidate=decision.candidate, limit=MOST)
        met = meetings(evaluation, history)
        nights = [*(one for one in met if one.created < evaluation.created), evaluation]
        changed = [one for one in nights if counted[one.cycle]]
        if changed:
            count, named = sum(counted[one.cycle] for one in changed), ", ".join(one.id for one in changed)
            found[decision.id] = f"{decision.outcome.value}: {count} answers of {named} have another verdict now"
    return found


def _bundles(ledger: Ledger, judge: Judge, since: str, counts: Counter[str]) -> Iterator[JudgedAnew]:
    for artifact in ledger.artifacts(MOST):
        job = ledger.job(artifact.job)
        if job is None or artifact.created < since or not is_outdated(artifact.verdict, job.spec):
            continue
        counts["judged"] += 1
        [now] = judge([(job.spec, artifact.answer)])
        if isinstance(now, SpecProblem) or now.outcome is Outcome.INFRA_ERROR:
            counts["broken"] += 1
        elif differs(artifact.verdict, now):
            yield _change(artifact.id, job.id, "bundle", 0, job.spec, artifact.verdict, now)
