"""How a job goes on: when it is given up, what becomes of it after a kill, which weights answer it, and how it is asked
again. Nothing is written here.

What always holds: which weights answer a job follows from the aliases, the canary's record and the job's id alone, so a
job that was begun before a kill is gone on with by the same weights, unless those were taken out of service meanwhile.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from appliance.ledger.ledger import Ledger
from appliance.promotion.evidence import CANARY, CHAMPION, PREVIOUS
from appliance.records.artifacts import solved_by_then
from appliance.records.jobs import Job, JobState
from appliance.records.service import CanaryState
from policies.canary import arm

GAVE_WAY = "gives way to a more urgent job"
WAITS = "waits for the first model in service: `assay cycle start`"
WAITS_FOR_MODEL = "waits until the model in service works on it"


def waits_for(job: Job, *, champion: bool, cycle: str, busy: bool) -> str:
    """What a queued job waits for, in a sentence; empty where its turn is next.

    `champion` says whether a model is in service; `cycle` is the one whose worker runs now, empty where none does;
    `busy` says whether the worker that it needs is at other jobs."""
    if not job.solvers_done:
        return "waits for a free worker" if busy else ""
    if not champion:
        return f"waits for the first model in service, which {cycle} makes: `assay cycle watch`" if cycle else WAITS
    if cycle:
        return f"waits for the end of {cycle}, which has the machine: `assay cycle watch`"
    return "waits for a free worker" if busy else WAITS_FOR_MODEL


def overdue(job: Job, now: str) -> str:
    """Why the job is given up, in a sentence; empty while there is time. `now` is UTC in ISO 8601."""
    if job.deadline is not None and datetime.fromisoformat(now) >= datetime.fromisoformat(job.deadline):
        return f"its deadline has passed: {job.deadline}"
    if job.budget_seconds is not None and job.spent_seconds >= job.budget_seconds:
        return f"its budget is used up: {job.budget_seconds:g} s of work"
    return ""


def already_solved(job: Job, ledger: Ledger, now: str) -> Job | None:
    """The job as its artifact ends it; None where it has none.

    A kill may come between the record of the artifact and that of the job's end. Then the work is done, in time, and
    what has passed since (a deadline) changes nothing of it."""
    known = ledger.artifact(job.id)
    if known is None:
        return None
    return solved_by_then(job, known).model_copy(update={"updated": now})


def taken_up_again(job: Job, ledger: Ledger, now: str) -> Job:
    """The job as it stands while nobody works on it: solved where its artifact is on record, queued otherwise."""
    queued = job.model_copy(update={"state": JobState.QUEUED, "step": "", "updated": now})
    return already_solved(job, ledger, now) or queued


def asked_again(job: Job, now: str, **other: Any) -> Job:
    """A new job that asks the same, but for the fields that are given; its `id` has to be."""
    copied = {name: getattr(job, name) for name in ("question", "spec", "files", "attempts", "seed", "budget_seconds")}
    return Job(**copied | other, state=JobState.QUEUED, created=now, updated=now)


def gives_way(job: Job, other: Job | None) -> bool:
    """Whether work on the job is to stop for another one: one that is more urgent, or anybody's own before a replay."""
    if other is None or other.id == job.id:
        return False
    return (other.replay_of is None, other.priority) > (job.replay_of is None, job.priority)


def weights_for(job: Job, ledger: Ledger) -> str | None:
    """The digest of the weights that answer it, the champion's or the canary's for its share; None where no model is in
    service."""
    champion, canary = ledger.alias(CHAMPION), ledger.alias(CANARY)
    newest = ledger.canaries(limit=1) if canary is not None else []
    if not newest or newest[0].candidate != canary or newest[0].state.ended:
        return champion
    if job.replay_of is not None:
        return canary
    known = newest[0]
    if known.state is not CanaryState.SHARE or job.created < known.share_since:
        return champion
    return canary if arm(job.id, known.rules.share, known.id) == "canary" else champion


def withdrawn(weights: str, ledger: Ledger) -> str:
    """Why work by these weights is to be stopped, and the job put back into the queue; empty while they may go on.

    A champion that another one followed in good order ends what it began.
    """
    if weights in {ledger.alias(name) for name in (CHAMPION, CANARY, PREVIOUS)}:
        return ""
    return f"the model {weights[:12]} was taken out of service"
