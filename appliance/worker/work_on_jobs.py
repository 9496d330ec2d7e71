"""Work on the queued jobs, one after the other, the most urgent first, until none is left that can be worked on.

What always holds: each job is answered by what was in service when its work began, and the weights are loaded by the
digest that was approved. Without anything in service only the solvers work; what they leave waits for the first model,
and no model's library is loaded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from appliance.agent.dialect import Codec
from appliance.agent.loop import Assignment
from appliance.config import Settings
from appliance.daemon.crew import LEFT
from appliance.daemon.readiness import require_isolation
from appliance.jobs.service import weights_for, withdrawn
from appliance.jobs.solve import Solver, attempts
from appliance.jobs.versions import versions
from appliance.learning.checkpoints import verify
from appliance.ledger.ledger import Ledger
from appliance.promotion import CHAMPION
from appliance.records import Checkpoint, Job, JobState
from appliance.worker.attention import Attention
from appliance.worker.equipment import Equipment
from appliance.worker.progress import utc_now
from appliance.worker.seeds import derive

MOST_TRIES = 10_000
"""That are looked through for the newest number; more than any job has."""


def work_on_jobs(
    equipment: Equipment, settings: Settings, *, leave: Callable[[], object] = lambda: os._exit(LEFT)
) -> None:
    """`leave` ends this process at once, for work that does not stop."""
    ledger = equipment.ledger
    while (job := ledger.next_job(with_model=ledger.alias(CHAMPION) is not None)) is not None:
        # Asked before each: where no broker answers any more, the jobs that wait are left to the core.
        isolation = require_isolation(settings)
        digest = weights_for(job, ledger)
        weights = ledger.checkpoint(digest) if digest else None
        if digest and weights is None:
            raise LookupError(f"the model in service, {digest[:12]}, is in no record")
        _work_on(job, equipment, settings, weights, isolation, leave)


def _work_on(
    job: Job,
    equipment: Equipment,
    settings: Settings,
    weights: Checkpoint | None,
    isolation: str,
    leave: Callable[[], object],
) -> None:
    ledger = equipment.ledger
    digest = "" if weights is None else weights.manifest
    job = job.model_copy(update={"weights": digest})

    def gone() -> str:
        return withdrawn(digest, ledger) if digest else ""

    with Attention(job, ledger, now=utc_now, clock=time.monotonic, leave=leave, withdrawn=gone) as attention:
        if attention.keep_on():
            ended = job.model_copy(update={"state": JobState.UNSOLVED, "reason": attention.keep_on()})
        else:
            solver = _solver(equipment, settings, weights, isolation)
            plan = [] if weights is None else _plan(equipment, settings, job)
            ended = solver.solve(job, plan, keep_on=attention.keep_on, say=attention.say)
    # Now that nothing else writes: how it was stopped if it was, and the time that it took.
    update: dict[str, object] = {"spent_seconds": round(attention.spent, 1), "step": "", "updated": utc_now()}
    if attention.again and ended.state is not JobState.SOLVED:
        update["state"] = JobState.QUEUED
    ledger.put_job(ended.model_copy(update=update))


def _solver(equipment: Equipment, settings: Settings, weights: Checkpoint | None, isolation: str) -> Solver:
    codec = None
    if weights is not None:
        folder = equipment.data / weights.folder
        if equipment.engine.weights != weights.manifest:
            # Loaded by digest: what was approved is what answers.
            verify(folder, expect=weights.manifest)
            equipment.engine.load(folder, weights.manifest)
        codec = Codec.load(folder)
    return Solver(
        None if codec is None else equipment.agent(codec),
        codec,
        equipment.checker,
        equipment.ledger,
        equipment.data,
        versions(weights, equipment.policy.digest, isolation),
        utc_now,
        sessions=equipment.sessions,
        branches=settings.jobs.branches,
    )


def _plan(equipment: Equipment, settings: Settings, job: Job) -> list[Assignment]:
    temperature, first = settings.recipe.training.temperature, first_attempt(job, equipment.ledger)
    return attempts(job, temperature=temperature, derive=derive, policy=equipment.policy, first=first)


def first_attempt(job: Job, ledger: Ledger) -> int:
    """One more than the number of any try at it by other weights, which had to leave it."""
    if not any(ledger.rollout_counts(job.id).values()):
        return 0
    made = ledger.rollouts(job=job.id, limit=MOST_TRIES)
    return max((one.rollout.sample + 1 for one in made if one.rollout.weights != job.weights), default=0)
