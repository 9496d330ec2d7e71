"""Read models of a core for the control API: status, jobs, the schedule, and what only screens use.

Invariants: read-only, and only the shown part is read: a page costs the same however much is on record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from appliance import __version__
from appliance.client.messages import JobDetail
from appliance.client.nights import ComingNight, HeldOutNight, ScheduleView
from appliance.client.screen import AuditBefore, AuditLine, CycleCurves, MachineView, ModelLineage
from appliance.client.status import Status
from appliance.config.places import broker_socket
from appliance.daemon.contract import BrokenError, NotThereError, RequestError
from appliance.daemon.coordination.core import Core
from appliance.daemon.service.supervisor import JOBS
from appliance.daemon.views import ledger_views as views
from appliance.daemon.views.cycle_views import candidate_wait, held_out_night, newest_figures, step_figures
from appliance.daemon.views.ledger_views import checkpoint_views_of, cycle_named, job_named
from appliance.daemon.views.machine_usage import MachineWatch
from appliance.jobs.lifecycle import GAVE_WAY, waits_for
from appliance.ledger.audited import TamperedError
from appliance.nights.calendar import zone_name
from appliance.nights.machine import unknown
from appliance.records.cycles import Checkpoint
from appliance.records.jobs import Job, JobState
from appliance.system.clock import seconds_between
from appliance.system.durable_file import READ_ONLY_HINT, read_only_reason
from policies import audit


def status_of(core: Core, next_cycle: str | None = None) -> Status:
    """Builds the status; thread-safe."""
    ledger, names = core.ledger, views.aliases(core.ledger)
    tampered = "; ".join(ledger.mismatches()[:5])
    cycle, decisions, canary, candidate, nights = None, [], None, "", ""
    try:
        unfinished = core.cycles.unfinished()
        cycle = unfinished or next(iter(ledger.cycles(limit=1)), None)
        nights = core.nights.paused or (core.nights.holds(unfinished.id) if unfinished is not None else "")
        candidate = candidate_wait(ledger, core.policy, unfinished, core.now()).text
        decisions = ledger.decisions(candidate=names["candidate"], limit=1)
        canary = core.governance.canary()
    except TamperedError as error:
        tampered = tampered or str(error)
    worker = core.supervisor.status
    read_only = f"{reason}; {READ_ONLY_HINT}" if (reason := read_only_reason(core.data)) else ""
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
        nights=nights,
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


LONGEST_PAUSE = timedelta(days=36_500)


def schedule_view(core: Core, limit: int) -> ScheduleView:
    nights = core.nights
    state, coming = nights.book.state(), nights.book.coming(min(limit, 100))
    seen = nights.seen if nights.looked else nights.machine()
    return ScheduleView(
        enabled=nights.rules.enabled,
        calendar=nights.calendar.text,
        zone=zone_name(nights.calendar.zone),
        paused=state.paused,
        until=state.until,
        holds=nights.why,
        coming=tuple(
            ComingNight(
                key=one.key,
                opens=one.opens.isoformat(timespec="seconds"),
                closes=one.closes.isoformat(timespec="seconds") if one.closes else "",
            )
            for one in coming
        ),
        nights=tuple(nights.book.nights(limit)),
        unknown=unknown(seen, nights.rules.idle, energy=nights.rules.max_energy is not None),
    )


def until_time(text: str, now: str) -> str:
    """Parses the end of a pause into UTC. Raises RequestError for an invalid, zoneless, past or too distant time."""
    if not text:
        return ""
    try:
        until = datetime.fromisoformat(text)
    except ValueError as error:
        raise RequestError(f"invalid time {text!r}", hint="write it as 2026-12-01T08:00+01:00") from error
    if until.tzinfo is None:
        raise RequestError(f"{text!r} has no time zone", hint="write it as 2026-12-01T08:00+01:00")
    ahead = until - datetime.fromisoformat(now)
    if ahead <= timedelta():
        raise RequestError(f"{text!r} is in the past", hint="name a later time, or `assay schedule resume`")
    if ahead > LONGEST_PAUSE:
        raise RequestError(
            f"{text!r} is more than {LONGEST_PAUSE.days:,} days away",
            hint="pause without a time: nights then wait for `assay schedule resume`",
        )
    return until.astimezone(UTC).isoformat(timespec="seconds")


CHUNK = 1 << 16
MOST_BYTES = 20_000
"""Largest log entry sent with its content, in bytes."""


class ScreenViews:
    """Read models for the TUI's screens; thread-safe."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._machine = MachineWatch(core.data, broker_socket(core.settings, core.data))
        self._measured: dict[str, HeldOutNight | None] = {}
        """Nights by evaluation, which never changes; the decision, which does, is left out."""

    def machine(self) -> MachineView:
        worker = self._core.supervisor.status.pid
        return self._machine.view({"core": os.getpid(), **({"worker": worker} if worker is not None else {})})

    def curves(self, name: str) -> CycleCurves:
        """Returns a cycle's training curves. Raises NotThereError, AmbiguousPrefixError."""
        cycle = cycle_named(self._core.ledger, name)
        return CycleCurves(cycle=cycle.id, steps=step_figures(self._core.ledger, cycle))

    def held_out(self, limit: int) -> list[HeldOutNight]:
        """Returns held-out success by evaluated night, oldest first; each evaluation is read once."""
        ledger, found = self._core.ledger, []
        for name in ledger.in_force.keys("evaluations")[:limit]:
            if name not in self._measured and (evaluation := ledger.evaluation(name)) is not None:
                self._measured[name] = held_out_night(evaluation)
            if (night := self._measured.get(name)) is not None:
                newest = ledger.decisions(candidate=night.candidate, limit=1)
                found.append(night.model_copy(update={"decision": newest[0].outcome if newest else None}))
        return found[::-1]

    def lineage(self, name: str, limit: int) -> ModelLineage:
        """Returns a checkpoint and its ancestors. Raises NotThereError."""
        ledger = self._core.ledger
        models: list[Checkpoint] = []
        found = ledger.checkpoint(self._core.governance.digest_of(name))
        while found is not None and len(models) < limit:
            models.append(found)
            found = ledger.checkpoint(found.parent) if found.parent is not None else None
        if not models:
            raise NotThereError(f"no such checkpoint: {name!r}", hint="`assay model ls` lists them")
        return ModelLineage(models=tuple(checkpoint_views_of(ledger, models)), cut=found is not None)

    def audit(self, where: AuditBefore, limit: int) -> list[AuditLine]:
        """Returns log entries, newest first. Raises BrokenError for an unreadable log."""
        before = where.before
        entries: list[AuditLine] = []
        skip = 0
        for line in lines_from_the_end(self._core.ledger.audit.path):
            if skip > 0:
                skip -= 1
                continue
            if len(entries) >= limit:
                break
            try:
                entry = audit.read(line + b"\n")
            except ValueError as error:
                raise BrokenError(f"the audit log cannot be read: {error}", hint="`assay audit verify`") from error
            if before is not None and entry.number >= before:
                skip = entry.number - before
                continue
            what = entry.what if len(line) <= MOST_BYTES else {"bytes": len(line), "holds": ", ".join(entry.what)}
            entries.append(AuditLine(number=entry.number, at=entry.at, kind=entry.kind, what=what))
        return entries


def lines_from_the_end(path: Path) -> Iterator[bytes]:
    """Yields the complete lines of a file, last first; a line still being written is left out."""
    with path.open("rb") as source:
        place, rest, first = source.seek(0, os.SEEK_END), b"", True
        while place > 0:
            size = min(CHUNK, place)
            place -= size
            source.seek(place)
            lines = (source.read(size) + rest).split(b"\n")
            rest = lines[0]
            whole = lines[1:-1] if first else lines[1:]
            first = first and len(lines) == 1
            yield from (line for line in reversed(whole) if line)
        if rest and not first:
            yield rest
