"""What becomes of a job whose work was interrupted: solved where its artifact is on record, queued again otherwise.

A kill may come between the record of the artifact and that of the job's end. Then the work is done, in time, and what
has passed since (a deadline) changes nothing of it.
"""

from __future__ import annotations

from appliance.ledger.ledger import Ledger
from appliance.records import Job, JobState


def already_solved(job: Job, ledger: Ledger, now: str) -> Job | None:
    """The job as its artifact ends it; None where it has none. Nothing is written."""
    known = ledger.artifact(job.id)
    if known is None:
        return None
    update = {
        "state": JobState.SOLVED,
        "reason": "verified before the daemon was stopped",
        "tried": (),
        "artifact": known.id,
        "solved_by": known.solved_by,
        "step": "",
        "updated": now,
    }
    return job.model_copy(update=update)


def taken_up_again(job: Job, ledger: Ledger, now: str) -> Job:
    """The job as it stands while nobody works on it. Nothing is written."""
    queued = job.model_copy(update={"state": JobState.QUEUED, "step": "", "updated": now})
    return already_solved(job, ledger, now) or queued
