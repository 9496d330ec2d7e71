"""Commands of `assay jobs` that list, show, follow, cancel, resume and retry."""

from __future__ import annotations

from contextlib import closing

import typer

from appliance.cli.jobs.watch import JobProgress, ended_code, show_job, show_queued, watch_job
from appliance.cli.shell.named import JobId
from appliance.cli.shell.options import Data, Json, Limit, client_of
from appliance.cli.show.printing import short_time, show_json, show_line, show_records
from appliance.text.printable import printable

MOST_SHOWN = 60
"""Characters of a question and of a job's step in the list; `assay jobs show` has the rest."""


def ls(context: typer.Context, limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """List the jobs, newest first.

    Example: assay jobs ls --limit 50
    """
    show_records(
        client_of(context, data).jobs(limit),
        ("job", "kind", "priority", "state", "submitted", "question", "now"),
        lambda job: (
            *(job.id, job.kind, job.priority, job.state, job.created[:19]),
            printable(job.question, limit=MOST_SHOWN),
            printable(job.step or job.reason, limit=MOST_SHOWN),
        ),
        empty="no job yet: submit one with `assay submit --question ... --check ...`",
        as_json=as_json,
        narrow={"submitted": short_time, "priority": None, "kind": None, "now": None},
    )


def show(context: typer.Context, job: JobId, data: Data = None, as_json: Json = False) -> None:
    """Show one job: state, answer and bundle, or the failed attempts.

    Example: assay jobs show job-1f0c52b7d2aa --json
    """
    detail = client_of(context, data).job(job)
    show_json(detail) if as_json else show_job(detail)


def watch(context: typer.Context, job: JobId, data: Data = None, as_json: Json = False) -> None:
    """Follow a job to its end. Exit code 0 solved, 1 not solved or cancelled, 5 failed or set aside.

    Ctrl-C leaves the job running. With --json, print one line of JSON for each change.

    Example: assay jobs watch job-1f0c52b7d2aa
    """
    api = client_of(context, data)
    with closing(JobProgress(as_json=as_json)) as progress:
        detail = watch_job(api, job, progress.show)
    if not as_json:
        show_job(detail)
    raise typer.Exit(ended_code(detail.job))


def cancel(context: typer.Context, job: JobId, data: Data = None, as_json: Json = False) -> None:
    """Cancel a job, even while it is worked on. Exit code 4 if it has already ended.

    Example: assay jobs cancel job-1f0c52b7d2aa
    """
    ended = client_of(context, data).cancel(job)
    show_json(ended) if as_json else show_line(f"job {ended.id} is cancelled")


def resume(context: typer.Context, job: JobId, data: Data = None, as_json: Json = False) -> None:
    """Resume a job that was set aside because its worker died three times in a row. Exit code 4 for any other.

    Example: assay jobs resume job-1f0c52b7d2aa
    """
    again = client_of(context, data).resume(job)
    show_json(again) if as_json else show_queued(again)


def retry(context: typer.Context, job: JobId, data: Data = None, as_json: Json = False) -> None:
    """Submit the same question again with the next seed, as a new job. Exit code 4 while the job has not ended.

    Example: assay jobs retry job-1f0c52b7d2aa
    """
    again = client_of(context, data).retry(job)
    show_json(again) if as_json else show_queued(again)
