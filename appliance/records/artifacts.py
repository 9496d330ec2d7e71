"""Artifacts of jobs: the bundle on disk, and what carries each part of its statement."""

from __future__ import annotations

from appliance.records.jobs import Job, JobState
from appliance.records.record import Record
from verifiers.contract.statement import StatementPart
from verifiers.contract.verdict import Verdict

MEANING = "that the check says what the question means"
"""Part of every statement that only a person can vouch for."""


class Artifact(Record):
    """A bundle on disk: the result of a job, with its evidence."""

    id: str
    job: str
    folder: str
    """Path relative to the data folder."""
    manifest: str
    """SHA-256 of the bundle's manifest file."""
    answer: str
    weights: str
    """Digest of the weights that answered; empty if a solver answered."""
    verdict: Verdict
    solved_by: str = "policy model"
    statement: tuple[StatementPart, ...] = ()
    created: str


def solved_by_then(job: Job, artifact: Artifact) -> Job:
    """Returns the job as solved by its recorded bundle. A kill, the deadline or a person may have stopped it
    afterwards."""
    update = {
        "state": JobState.SOLVED,
        "reason": "verified before it was stopped",
        "tried": (),
        "artifact": artifact.id,
        "solved_by": artifact.solved_by,
        "step": "",
    }
    return job.model_copy(update=update)
