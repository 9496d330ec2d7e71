"""The table of jobs: what was asked for, what is done about it, and what was found."""

from __future__ import annotations

from typing import NamedTuple

from rich.text import Text

from appliance.client import MEANING, ApiClient, Artifact, Job, Status, explain_check
from tui.table import Row, Table
from tui.text import DIM, GOOD, JOB_STATES, add_field, plain, signed

MOST = 30


class JobRecord(NamedTuple):
    job: Job
    artifact: Artifact | None = None


def fetch(client: ApiClient) -> list[JobRecord]:
    artifacts = {artifact.id: artifact for artifact in client.artifacts(limit=MOST)}
    return [JobRecord(job, artifacts.get(job.artifact or "")) for job in client.jobs(limit=MOST)]


def row(record: JobRecord) -> Row:
    job = record.job
    return Row(
        job.id,
        (
            plain(job.id.removeprefix("job-")[:8]),
            plain(job.kind, DIM),
            plain(str(job.priority), DIM),
            signed(JOB_STATES[job.state]),
            plain(job.question, limit=60),
            plain(job.step or job.solved_by, DIM, limit=40),
        ),
    )


def detail(record: JobRecord, status: Status | None = None) -> Text:
    job, artifact = record
    text = signed(JOB_STATES[job.state])
    text.append_text(plain(f"  {job.id}", DIM))
    text.append("\n")
    add_field(text, "question", job.question)
    summary, *explained = explain_check(job.spec)
    add_field(text, "checked by", summary)
    for line in explained:
        add_field(text, " ", line, DIM)
    for file in job.files:
        add_field(text, "file", f"{file.name}, {file.bytes} bytes")
    add_field(text, "attempts", f"{job.attempts}, {job.tries_done} {'try' if job.tries_done == 1 else 'tries'} done")
    add_field(text, "priority", job.priority)
    add_field(text, "deadline", job.deadline)
    if job.budget_seconds:
        add_field(text, "budget", f"{job.spent_seconds:.0f} of {job.budget_seconds:g} s")
    add_field(text, "now", job.step)
    add_field(text, "reason", job.reason)
    add_field(text, "solved by", job.solved_by)
    for claim in artifact.statement if artifact is not None else ():
        if claim.part != MEANING or job.validation is None:
            add_field(text, claim.standing.value, f"{claim.part} ({claim.by})")
    if job.validation is not None:
        verdict = "validated" if job.validation.verdict == "meant" else "not meant"
        add_field(text, verdict, f"{MEANING} ({job.validation.person}, {job.validation.created})")
    if job.artifact:
        add_field(text, "artifact", f"{job.artifact}  (assay verify re-checks it)", GOOD)
    for tried in job.tried:
        add_field(text, "tried", tried)
    add_field(text, "submitted", job.created)
    return text


JOBS = Table(
    name="jobs",
    columns=(("job", 8), ("kind", 8), ("prio", 4), ("state", 10), ("question", 36), ("doing, or solved by", 20)),
    side="right",
    empty="No job yet: s submits one.",
    fetch=fetch,
    row=row,
    detail=detail,
)
