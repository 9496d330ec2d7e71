"""An artifact says what came out of a job: the bundle on disk, and what carries each part of its statement."""

from __future__ import annotations

from appliance.records.jobs import Job, JobState
from appliance.records.record import Record
from verifiers.contract.statement import StatementPart
from verifiers.contract.verdict import Verdict

MEANING = "that the check says what the question means"
"""The part of every statement that only a person can carry."""


class Artifact(Record):
    """Is a bundle on disk: what came out of a job, with the evidence."""

    id: str
    job: str
    folder: str
    """Relative to the data folder."""
    manifest: str
    """SHA-256 of the bundle's manifest file."""
    answer: str
    weights: str
    """Digest of the weights that answered; empty where a solver did and no model was asked."""
    verdict: Verdict
    solved_by: str = "policy model"
    statement: tuple[StatementPart, ...] = ()
    created: str


def solved_by_then(job: Job, artifact: Artifact) -> Job:
    """Returns the job as its artifact ends it, whatever stopped it once that was on record: a kill, the deadline, a
    person. The work was done by then, in time."""
    update = {
        "state": JobState.SOLVED,
        "reason": "verified before it was stopped",
        "tried": (),
        "artifact": artifact.id,
        "solved_by": artifact.solved_by,
        "step": "",
    }
    return job.model_copy(update=update)
