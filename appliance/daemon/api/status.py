"""Read models of a core for `assay status` and `assay jobs`; nothing is decided or changed."""

from __future__ import annotations

import os

from appliance import __version__
from appliance.client.messages import JobDetail
from appliance.client.status import Status
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.supervisor import JOBS
from appliance.daemon.views import ledger_views as views
from appliance.daemon.views.candidate_wait import candidate_wait
from appliance.daemon.views.curves import newest_figures
from appliance.daemon.views.ledger_views import job_named
from appliance.jobs.lifecycle import GAVE_WAY, waits_for
from appliance.ledger.audited import TamperedError
from appliance.records.jobs import Job, JobState
from appliance.system.clock import seconds_between
from appliance.system.read_only_disk import HINT, read_only_reason


def status_of(core: Core, next_cycle: str | None = None) -> Status:
    """Builds the status; thread-safe."""
    ledger, names = core.ledger, views.aliases(core.ledger)
    tampered = "; ".join(ledger.mismatches()[:5])
    cycle, decisions, canary, candidate = None, [], None, ""
    try:
        unfinished = core.cycles.unfinished()
        cycle = unfinished or next(iter(ledger.cycles(limit=1)), None)
        candidate = candidate_wait(ledger, core.policy, unfinished, core.now()).text
        decisions = ledger.decisions(candidate=names["candidate"], limit=1)
        canary = core.governance.canary()
    except TamperedError as error:
        tampered = tampered or str(error)
    worker = core.supervisor.status
    read_only = f"{reason}; {HINT}" if (reason := read_only_reason(core.data)) else ""
    waits = dict.fromkeys(filter(None, (read_only, worker.waits_for, core.solvers.waits_for)))
    return Status(
        version=__version__,
        pid=os.getpid(),
        data=str(core.data),
        started=core.started,
        uptime_seconds=max(0.0, seconds_between(core.started, core.now())),
        worker=worker.model_copy(update={"waits_for": "; ".join(waits)}),
        solvers=core.solvers.status,
        broker_news=core.broker_news,
        cycles_wait_for=core.cycles.misconfigured(),
        cycle=cycle,
        step_metrics=newest_figures(ledger, cycle) if cycle is not None else {},
        aliases=names,
        canary=canary,
        candidate_waits_for=candidate,
        decision=decisions[0] if decisions else None,
        jobs=ledger.job_counts(),
        next_cycle=next_cycle,
        policy=core.policy.digest,
        last_event=ledger.newest_event(),
        gateway=core.gateway.status(),
        tampered=tampered,
    )


def jobs_of(core: Core, limit: int) -> list[Job]:
    """Returns jobs, newest first, with only valid validations."""
    return [as_it_stands(core, job) for job in core.validations.listed(limit)]


def job_detail(core: Core, name: str) -> JobDetail:
    """Returns a job with its artifact. Raises NotThereError, AmbiguousPrefixError."""
    job = job_named(core.ledger, name)
    artifact = core.ledger.artifact(job.artifact) if job.artifact else None
    bundle = str(core.data / artifact.folder) if artifact else None
    return JobDetail(job=as_it_stands(core, core.validations.as_it_counts(job)), artifact=artifact, bundle=bundle)


def as_it_stands(core: Core, job: Job) -> Job:
    """Updates the reason of a queued job to what it waits for now."""
    if job.state is not JobState.QUEUED or job.reason == GAVE_WAY:
        return job
    champion, model = core.ledger.alias("champion") is not None, core.supervisor.status
    own = core.supervisor if job.solvers_done else core.solvers
    blocked = own.jobs_wait_for or core.supervisor.jobs_wait_for
    if blocked and (champion or not job.solvers_done):
        return job.model_copy(update={"reason": f"waits: {blocked}"})
    cycle = model.doing.removeprefix("cycle ") if model.doing.startswith("cycle ") else ""
    return job.model_copy(
        update={"reason": waits_for(job, champion=champion, cycle=cycle, busy=own.status.doing == JOBS)}
    )
