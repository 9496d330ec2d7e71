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


def work_on_jobs(
    equipment: Equipment, settings: Settings, *, leave: Callable[[], object] = lambda: os._exit(LEFT)
) -> None:
    """`leave` ends this process at once, for work that does not stop."""
    ledger = equipment.ledger
    isolation = require_isolation(settings)
    while True:
        weights = _in_service(ledger)
        job = ledger.next_job(with_model=weights is not None)
        if job is None:
            return
        with Attention(job, ledger, now=utc_now, clock=time.monotonic, leave=leave) as attention:
            if attention.keep_on():
                ended = job.model_copy(update={"state": JobState.UNSOLVED, "reason": attention.keep_on()})
            else:
                solver = _solver(equipment, weights, isolation)
                plan = [] if weights is None else _plan(equipment, settings, job)
                ended = solver.solve(job, plan, keep_on=attention.keep_on, say=attention.say)
        # Again, now that nothing else writes: the time that it took, and a state that is none of an end.
        ledger.put_job(ended.model_copy(update={"spent_seconds": round(attention.spent, 1), "updated": utc_now()}))


def _in_service(ledger: Ledger) -> Checkpoint | None:
    digest = ledger.alias(CHAMPION)
    return ledger.checkpoint(digest) if digest else None


def _solver(equipment: Equipment, weights: Checkpoint | None, isolation: str) -> Solver:
    codec = None
    if weights is not None:
        folder = equipment.data / weights.folder
        if equipment.engine.weights != weights.manifest:
            # Loaded by digest: what was approved is what answers.
            verify(folder)
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
    )


def _plan(equipment: Equipment, settings: Settings, job: Job) -> list[Assignment]:
    temperature = settings.recipe.training.temperature
    return attempts(job, temperature=temperature, derive=derive, policy=equipment.policy)
