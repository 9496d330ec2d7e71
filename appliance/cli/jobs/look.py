"""Commands of `assay jobs` that list, show, follow, cancel, resume and retry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import typer

from appliance.cli.jobs.watch import changes_of, ended_code, follow_job, queued, show_job, states_of
from appliance.cli.shell.named import JobId
from appliance.cli.shell.options import Limit, api_client
from appliance.cli.show.printing import Output, for_people, prints, records, short_time
from appliance.text.printable import printable

if TYPE_CHECKING:
    from appliance.client.messages import JobDetail
    from appliance.records.jobs import Job

MOST_SHOWN = 60
"""Characters of a question and of a job's step in the list; `assay jobs show` has the rest."""


@prints
def ls(limit: Limit = 20) -> Output[Sequence[Job]]:
    """List the jobs, newest first.

    Example: assay jobs ls --limit 50
    """
    return records(
        api_client().jobs(limit),
        ("job", "kind", "priority", "state", "submitted", "question", "now"),
        lambda job: (
            *(job.id, job.kind, job.priority, job.state, job.created[:19]),
            printable(job.question, limit=MOST_SHOWN),
            printable(job.step or job.reason, limit=MOST_SHOWN),
        ),
        empty="no job yet: submit one with `assay submit --question ... --check ...`",
        narrow={"submitted": short_time, "priority": None, "kind": None, "now": None},
    )


@prints
def show(job: JobId) -> Output[JobDetail]:
    """Show one job: state, answer and bundle, or the failed attempts.

    Example: assay jobs show job-1f0c52b7d2aa --json
    """
    detail = api_client().job(job)
    return Output(detail, lambda: show_job(detail))


@prints
def watch(job: JobId) -> Iterator[Job]:
    """Follow a job to its end. Exit code 0 solved, 1 not solved or cancelled, 5 failed or set aside.

    Ctrl-C leaves the job running. With --json, print one line of JSON for each change.

    Example: assay jobs watch job-1f0c52b7d2aa
    """
    api = api_client()
    if for_people():
        detail = follow_job(api, job)
    else:
        for detail in changes_of(states_of(api, job)):
            yield detail.job
    raise typer.Exit(ended_code(detail.job))


@prints
def cancel(job: JobId) -> Output[Job]:
    """Cancel a job, even while it is worked on. Exit code 4 if it has already ended.

    Example: assay jobs cancel job-1f0c52b7d2aa
    """
    ended = api_client().cancel(job)
    return Output(ended, f"job {ended.id} is cancelled")


@prints
def resume(job: JobId) -> Output[Job]:
    """Resume a job that was set aside because its worker died three times in a row. Exit code 4 for any other.

    Example: assay jobs resume job-1f0c52b7d2aa
    """
    return queued(api_client().resume(job))


@prints
def retry(job: JobId) -> Output[Job]:
    """Submit the same question again with the next seed, as a new job. Exit code 4 while the job has not ended.

    Example: assay jobs retry job-1f0c52b7d2aa
    """
    return queued(api_client().retry(job))
