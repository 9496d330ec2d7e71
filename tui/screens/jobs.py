"""The screen Jobs: submitted questions, their progress and their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType

from appliance.client import MEANING, ApiClient, Artifact, Job, Status, explain_check
from tui.widgets.dialogs import TypedConfirmation
from tui.widgets.signs import JOB_STATES, signed
from tui.widgets.table_pane import TablePane
from tui.widgets.text import DIM, GOOD, Row, Table, add_field, plain

JOB = "job-"
"""Prefix of job names."""
MOST = 200
"""Number of jobs shown; `assay jobs ls` lists older ones."""


class JobRecord(NamedTuple):
    job: Job
    artifact: Artifact | None = None


def row(record: JobRecord) -> Row:
    job = record.job
    return Row(
        job.id,
        (
            plain(job.id.removeprefix(JOB)[:8]),
            plain(job.kind, DIM),
            signed(JOB_STATES[job.state]),
            plain(job.question, limit=26),
            plain(job.step or job.solved_by, DIM, limit=16),
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
    add_field(text, "budget", f"{job.budget}; {job.tries_done} {'try' if job.tries_done == 1 else 'tries'} done")
    add_field(text, "priority", job.priority)
    add_field(text, "deadline", job.deadline)
    if job.spent_seconds:
        add_field(text, "spent", f"{job.spent_seconds:.0f} s")
    for number, step in enumerate(job.steps, 1):
        add_field(text, f"step {number}", step.text)
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
    columns=(("job", 8), ("kind", 8), ("state", 10), ("question", 26), ("doing, by", 16)),
    empty="No job yet: s submits one.",
    row=row,
    detail=detail,
)


class JobsPane(TablePane):
    TABLE = JOBS
    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "app.submit", "submit"), Binding("x", "cancel_job", "cancel")]
    PAGED = False
    ON_RECORD = frozenset({"cancel_job"})
    ACTING = {"x": "cancel_job"}  # noqa: RUF012 - declared so by Pane
    KEYS = (*TablePane.KEYS[:3], ("x", "cancel the selected job"))

    def page(self, client: ApiClient, status: Status, before: str | None) -> Sequence[JobRecord]:
        artifacts = {artifact.id: artifact for artifact in client.artifacts(limit=MOST)}
        return [JobRecord(job, artifacts.get(job.artifact or "")) for job in client.jobs(limit=MOST)]

    def line(self, status: Status) -> Text:
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in status.jobs.items())
        return plain(counts or "none yet", DIM)

    def action_cancel_job(self) -> None:
        record = self.selected
        if record is None or self.host.read_only:
            return
        job: Job = record.job
        if job.state.ended:
            self.host.say(f"{job.id} has ended: it is {job.state.value}.")
            return

        def act(_passphrase: str) -> str:
            self.host.client().cancel(job.id)
            return f"{job.id} is cancelled."

        body = plain(job.question, lines=True)
        self.host.put(TypedConfirmation("Cancel this job", job.id, body, act, to="cancel it", kind=JOB))
