"""Runs the queued jobs one by one, most urgent first, until none is runnable.

Invariants: a job is leased before any work; it is answered by the model in service when its work began, loaded by its
approved digest. Without such a model, or for the solvers' part, only solvers run: unsolved jobs wait for the model, and
no model library is loaded. A job gives way to a more urgent one: solvers start it again later, the model continues with
its remaining attempts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from appliance.agent.assignment import Assignment
from appliance.config.configuration import Settings
from appliance.jobs.lifecycle import gives_way, weights_for, withdrawn
from appliance.jobs.solve import JobSolver, attempts
from appliance.jobs.versions import versions
from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import CHAMPION
from appliance.readiness.sandbox import require_isolation
from appliance.records.checkpoints import Checkpoint
from appliance.records.jobs import Job, JobPart, JobState
from appliance.records.training import RolloutFilter
from appliance.system.clock import utc_now
from appliance.system.worker_exit import LEFT
from appliance.worker.setup.context import WorkContext
from appliance.worker.watchdog import JobWatchdog
from curriculum.seeds import derive

SOLVERS_SECONDS = 120.0
"""Maximum seconds that idle solvers stay: they restart in a CPU second, and a model may need minutes to load."""
MOST_TRIES = 10_000
"""Maximum attempts searched for the newest number; more than any job has."""


def work_on_jobs(
    context: WorkContext,
    settings: Settings,
    part: JobPart = "any",
    *,
    leave: Callable[[], object] = lambda: os._exit(LEFT),
) -> None:
    """Runs queued jobs; `leave` exits this process immediately if work does not stop. A worker for one part stays for
    later jobs."""
    ledger, seconds = context.ledger, 0.0 if part == "any" else settings.jobs.warm_seconds
    if part == "solvers":
        seconds = min(seconds, SOLVERS_SECONDS)
    while (job := ledger.claim_job(part=_part(part, ledger), seconds=seconds)) is not None:
        # Checked before each job: without a broker, the core handles the waiting jobs.
        isolation = require_isolation(settings)
        digest = None if part == "solvers" else weights_for(job, ledger)
        weights = ledger.checkpoint(digest) if digest else None
        if digest and weights is None:
            raise LookupError(f"the model in service, {digest[:12]}, is not recorded")
        _work_on(job, context, settings, weights, isolation, leave, part)
        if part != "any":
            context.checker.start()  # warms up every kind of check for later jobs


def _part(part: JobPart, ledger: Ledger) -> JobPart:
    return "solvers" if ledger.alias(CHAMPION) is None else part


def _work_on(
    job: Job,
    context: WorkContext,
    settings: Settings,
    weights: Checkpoint | None,
    isolation: str,
    leave: Callable[[], object],
    part: JobPart,
) -> None:
    ledger = context.ledger
    digest = "" if weights is None else weights.manifest
    job = job.model_copy(update={"weights": digest})

    def gone() -> str:
        return withdrawn(digest, ledger) if digest else ""

    def urgent() -> bool:
        return gives_way(job, ledger.next_job(part=_part(part, ledger)))

    with JobWatchdog(
        job,
        ledger,
        now=utc_now,
        clock=time.monotonic,
        leave=leave,
        withdrawn=gone,
        urgent=urgent,
        stops_for_urgent=weights is None,
    ) as watchdog:
        if watchdog.stop_reason():
            ended = job.model_copy(update={"state": JobState.UNSOLVED, "reason": watchdog.stop_reason()})
        else:
            solver = _solver(context, settings, weights, isolation)
            plan = [] if weights is None else _plan(context, settings, job)
            ended = solver.solve(
                job, plan, stop_reason=watchdog.stop_reason, say=watchdog.report, gives_way=lambda: watchdog.gives_way
            )
    # The watchdog has stopped writing: record the reason for a stop, and the time spent.
    update: dict[str, object] = {"spent_seconds": round(watchdog.spent, 1), "step": "", "updated": utc_now()}
    if watchdog.again and ended.state is not JobState.SOLVED:
        update["state"] = JobState.QUEUED
    ledger.put_job(ended.model_copy(update=update))


def _solver(context: WorkContext, settings: Settings, weights: Checkpoint | None, isolation: str) -> JobSolver:
    agent = None if weights is None else context.agent_of(weights)
    return JobSolver(
        agent,
        None if agent is None else agent.renderer,
        context.checker,
        context.ledger,
        context.data,
        versions(weights, context.policy.digest, isolation),
        utc_now,
        sessions=context.sessions,
        branches=settings.jobs.branches,
    )


def _plan(context: WorkContext, settings: Settings, job: Job) -> list[Assignment]:
    temperature, first = settings.recipe.training.temperature, first_attempt(job, context.ledger)
    return attempts(job, temperature=temperature, derive=derive, policy=context.policy, first=first)


def first_attempt(job: Job, ledger: Ledger) -> int:
    """Returns the number of a job's first attempt with the current weights, after those of other weights."""
    if not any(ledger.rollout_counts(job.id).values()):
        return 0
    made = ledger.rollouts(RolloutFilter(job=job.id), limit=MOST_TRIES)
    return max((one.rollout.sample + 1 for one in made if one.rollout.weights != job.weights), default=0)
