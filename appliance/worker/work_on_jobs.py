"""Runs the queued jobs one by one, most urgent first, until none is runnable.

Invariants: a job is leased before any work; it is answered by the model in service when its work began, loaded by its
approved digest. Without such a model, or for the solvers' part, only solvers run: unsolved jobs wait for the model, and
no model library is loaded. A job gives way to a more urgent one: solvers start it again later, the model continues with
its remaining attempts.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from appliance.agent.assignment import Assignment
from appliance.config.configuration import Settings
from appliance.jobs.lifecycle import GAVE_WAY, gives_way, overdue, weights_for, withdrawn
from appliance.jobs.solve import JobSolver, attempts
from appliance.jobs.versions import versions
from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import CHAMPION
from appliance.readiness.sandbox import require_isolation
from appliance.records.cycles import Checkpoint
from appliance.records.jobs import Job, JobPart, JobState, JobStep
from appliance.records.training import RolloutFilter
from appliance.system.clock import utc_now
from appliance.system.process_state import LEFT
from appliance.worker.setup.context import WorkContext
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
                job,
                plan,
                stop_reason=watchdog.stop_reason,
                say=watchdog.report,
                gives_way=lambda: watchdog.gives_way,
                keep=watchdog.keep,
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
    return max((one.rollout.sample + 1 for one in made if one.rollout.weights not in ("", job.weights)), default=0)


POLL_SECONDS = 1.0
GRACE_SECONDS = 5.0
"""Seconds for the work to stop by itself."""


class JobWatchdog:
    """Context manager around the work on one job, with a thread of its own. `clock` counts seconds and `now` returns
    UTC in ISO 8601. `leave` exits this process immediately; `withdrawn` returns the reason that the weights may not be
    used any more; `urgent` is true if a more urgent job waits, which stops the work immediately or sets `gives_way`."""

    def __init__(
        self,
        job: Job,
        ledger: Ledger,
        *,
        now: Callable[[], str],
        clock: Callable[[], float],
        leave: Callable[[], object],
        withdrawn: Callable[[], str] = lambda: "",
        urgent: Callable[[], bool] = lambda: False,
        stops_for_urgent: bool = False,
        poll_seconds: float = POLL_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._job = job
        self._ledger = ledger
        self._now = now
        self._clock = clock
        self._leave = leave
        self._withdrawn = withdrawn
        self._urgent, self._stops_for_urgent = urgent, stops_for_urgent
        self.gives_way = False
        """True if a more urgent job waits."""
        self._poll_seconds = poll_seconds
        self._grace_seconds = grace_seconds
        self._started = clock()
        self._step, self._tries = "", 0
        self._steps = job.steps
        self._reason = ""
        self._again = False
        self._since = 0.0
        self._closing = threading.Event()
        self._writing = threading.Lock()
        """Held from reading the progress to its record, so that an older one never comes after a newer."""
        self._thread = threading.Thread(target=self._watch, name="job-watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._poll()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._closing.set()
        self._thread.join()

    def stop_reason(self) -> str:
        """Returns the reason to stop work on the job, as a sentence; empty while it may continue."""
        return self._reason

    @property
    def again(self) -> bool:
        """True if the job must start again: with other weights, or after a more urgent job."""
        return self._again

    def report(self, step: str, tries_done: int) -> None:
        """Sets the job's current step and its number of finished attempts."""
        self._step, self._tries = step, tries_done

    def keep(self, steps: Sequence[JobStep]) -> None:
        """Sets the steps of the job's attempts so far, and records them at once: a kill must not lose the last."""
        self._steps = tuple(steps)
        self._record()

    @property
    def spent(self) -> float:
        """Seconds of work on the job, including that of earlier processes."""
        return self._job.spent_seconds + self._clock() - self._started

    def _watch(self) -> None:
        while not self._closing.wait(self._poll_seconds):
            self._poll()
            if self._reason and self._clock() - self._since > self._grace_seconds:
                self._put_ended()
                self._leave()
                return

    def _record(self) -> Job:
        with self._writing:
            update = {
                "state": JobState.RUNNING,
                "step": self._step,
                "tries_done": self._tries,
                "steps": self._steps,
                "reason": "",
                "spent_seconds": round(self.spent, 1),
                "updated": self._now(),
            }
            return self._ledger.put_job(self._job.model_copy(update=update))

    def _poll(self) -> None:
        stored = self._record()
        if self._reason:
            return
        self._reason = self._reason_to_stop(stored)
        self._since = self._clock()

    def _reason_to_stop(self, stored: Job) -> str:
        if stored.state.ended:
            return stored.reason or stored.state.value
        gone = self._withdrawn()
        if gone:
            self._again = True
            return gone
        self.gives_way = self._urgent()
        if self.gives_way and self._stops_for_urgent:
            self._again = True
            return GAVE_WAY
        return overdue(stored, self._now())

    def _put_ended(self) -> None:
        """Records a job as unsolved, or queued again, because its work did not stop when required."""
        state = JobState.QUEUED if self._again else JobState.UNSOLVED
        update = {"state": state, "step": "", "reason": self._reason, "spent_seconds": round(self.spent, 1)}
        self._ledger.put_job(
            self._job.model_copy(
                update={**update, "tries_done": self._tries, "steps": self._steps, "updated": self._now()}
            )
        )
