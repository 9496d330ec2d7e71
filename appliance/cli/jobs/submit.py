"""`assay submit`: a job from flags, a TOML file or standard input."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from appliance.cli.jobs.request import MAX_FILE_BYTES, JobRequest, PreparedRequest, first_fault, read_request
from appliance.cli.shell.inputs import STDIN, standard_input
from appliance.cli.shell.model_options import given, parameters_of, with_options
from appliance.cli.shell.options import Data, Json, client_of
from appliance.errors import UsageError
from appliance.system import clock
from policies.toml_files import beginning

if TYPE_CHECKING:
    from curriculum.catalog import Catalog


@with_options(parameters_of(JobRequest))
def submit(
    context: typer.Context,
    job_file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A TOML file with the job, `-` for standard input.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the end. Exit code 0 solved, 1 not solved, 5 failed.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
    **values: Any,
) -> None:
    """Submit a question whose answer can be checked: an answer, a program, a proof, a text.

    Example: assay submit --question "Which whole number x has 7x + 3 = 45?" --check "7*x + 3 == 45" --domain integer
    """
    from appliance.cli.curriculum.catalog import catalog_of
    from appliance.cli.jobs.watch import JobProgress, ended_code, show_job, show_queued, watch_job
    from appliance.cli.show.printing import show_json

    prepared = _prepared(job_file, given(values), lambda: catalog_of(context, data))
    api = client_of(context, data)
    for content in prepared.contents.values():
        api.put_file(content)
    job = api.submit(prepared.submission)
    if not wait:
        show_json(job) if as_json else show_queued(job)
        return
    if as_json:
        detail = watch_job(api, job.id, None)
        show_json(detail)
    else:
        show_queued(job)
        with closing(JobProgress(as_json=False)) as progress:
            detail = watch_job(api, job.id, progress.show)
        show_job(detail)
    raise typer.Exit(ended_code(detail.job))


def _prepared(file: Path | None, flags: dict[str, Any], catalog: Callable[[], Catalog]) -> PreparedRequest:
    """Returns the job that the flags, the TOML file or standard input describe, with the contents of its files. Raises
    UsageError."""
    now = clock.now().astimezone()
    if file is None:
        try:
            request = JobRequest.model_validate(flags)
        except ValidationError as error:
            raise UsageError(f"--{first_fault(error)}", hint="see `assay submit --help`") from error
        return request.prepared(Path(), now, catalog)
    if flags:
        raise UsageError(
            f"a file and --{next(iter(flags))} cannot be combined", hint="give either the file or the flags"
        )
    if str(file) == STDIN:
        return read_request(standard_input("FILE", MAX_FILE_BYTES), "standard input").prepared(Path(), now, catalog)
    try:
        content = beginning(file, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", hint="name a readable TOML file") from error
    return read_request(content, str(file)).prepared(file.parent, now, catalog)
