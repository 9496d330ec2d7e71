"""Follows a job: its present step on one changing line, or line by line without a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing

from appliance.cli.shell.live_line import USUAL_COLUMNS, LiveLine, columns_of
from appliance.cli.show.printing import Output, show_fields, show_line
from appliance.client.api_client import ApiClient
from appliance.client.messages import JobDetail
from appliance.errors import ExitCode
from appliance.jobs.statement import mark, statement
from appliance.records.jobs import Job, JobState

POLL_SECONDS = 0.3
SOON = (0.05, 3.0)
"""Initial polling interval and its duration, in seconds, for solvers that answer quickly."""
MOST_SHOWN = 2_000
"""Characters of a question."""


def states_of(api: ApiClient, job: str) -> Iterator[JobDetail]:
    """Polls a job until it has ended or was set aside; yields it each time."""
    begun = time.monotonic()
    while True:
        detail = api.job(job)
        yield detail
        if detail.job.state.rests:
            return
        time.sleep(SOON[0] if time.monotonic() - begun < SOON[1] else POLL_SECONDS)


def ended_code(job: Job) -> ExitCode:
    if job.state is JobState.SOLVED:
        return ExitCode.OK
    return ExitCode.INFRASTRUCTURE if job.state in (JobState.FAILED, JobState.SET_ASIDE) else ExitCode.FAILED_VERDICT


class JobProgress:
    """Line of a followed job on a terminal; close it to leave the cursor at the beginning of a line."""

    def __init__(self) -> None:
        self._line: LiveLine | None = None

    def close(self) -> None:
        if self._line is not None:
            self._draw("")

    def show(self, job: Job) -> None:
        self._draw(line_of(job, seconds=True))

    def _draw(self, text: str) -> None:
        self._line = self._line or LiveLine()
        self._line.show(sys.stdout, text, columns_of(sys.stdout) or USUAL_COLUMNS)


def follow_job(api: ApiClient, job: str) -> JobDetail:
    """Shows a job's progress until it rests, then the job, and returns it."""
    details = states_of(api, job)
    if sys.stdout.isatty():
        with closing(JobProgress()) as progress:
            for detail in details:
                progress.show(detail.job)
    else:
        for detail in changes_of(details):
            show_line(line_of(detail.job))
    show_job(detail)
    return detail


def changes_of(details: Iterable[JobDetail]) -> Iterator[JobDetail]:
    """Yields each state of a job that differs from the previous one in more than seconds."""
    last = None
    for detail in details:
        job = detail.job
        seen = (job.state, job.step, job.tries_done, job.reason)
        if seen != last:
            yield detail
        last = seen


def queued(job: Job) -> Output[Job]:
    lines = [f"job {job.id} is {job.state.value}; see `assay jobs watch {job.id}`"]
    return Output(job, lines + [job.reason] * bool(job.reason))


def show_job(detail: JobDetail) -> None:
    job, artifact = detail.job, detail.artifact
    show_fields(
        [
            ("job", job.id),
            ("kind", job.kind),
            ("state", job.state),
            ("priority", job.priority),
            ("deadline", job.deadline),
            ("budget", job.budget),
            ("spent", f"{job.spent_seconds:.0f} s" if job.spent_seconds else None),
            ("tries again", job.retry_of),
            ("question", job.question if len(job.question) <= MOST_SHOWN else f"{job.question[:MOST_SHOWN]} ..."),
            ("files", ", ".join(f"{file.name} ({file.bytes} bytes)" for file in job.files)),
            ("now", job.step),
            ("tries", job.tries_done or None),
            ("reason", job.reason),
            ("answer", artifact.answer if artifact else None),
            ("solved by", job.solved_by),
            ("meaning", _meaning(job)),
            ("bundle", detail.bundle),
            ("model", artifact.weights[:12] if artifact else None),
            ("check again", f"assay verify {detail.bundle} --digest {artifact.manifest}" if artifact else None),
        ]
    )
    for number, step in enumerate(job.steps, 1):
        show_line(f"step {number}: {step.text}")
    claims = statement(job, artifact.verdict) if artifact else ()
    if claims:
        show_line(f"{mark(claims)}:")
    for claim in claims:
        show_line(f"  {claim.standing.value}: {claim.part} ({claim.by})")
    for tried in job.tried:
        show_line(f"tried: {tried}")


def _meaning(job: Job) -> str | None:
    """Describes a person's validation of a job's check, or how to validate it. None if it can no longer be
    validated."""
    if job.validation is not None:
        verb = "means" if job.validation.verdict == "meant" else "does not mean"
        return f"the check {verb} what was asked: {job.validation.person}, {job.validation.created}"
    return None if job.state.ended and not job.artifact else f"not validated yet: assay jobs validate {job.id}"


def line_of(job: Job, *, seconds: bool = False) -> str:
    parts = [job.state.value]
    if job.step:
        parts.append(job.step)
    if job.tries_done:
        parts.append(f"{job.tries_done} {'try' if job.tries_done == 1 else 'tries'} done")
    if seconds and job.spent_seconds:
        parts.append(f"{job.spent_seconds:.0f} s")
    if job.reason and not job.state.ended:
        parts.append(job.reason)
    return ", ".join(parts)
