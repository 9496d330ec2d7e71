"""`assay submit`: a job from flags, a TOML file or standard input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from appliance.cli.jobs.request import MAX_FILE_BYTES, JobRequest, PreparedRequest, first_fault, read_request
from appliance.cli.shell.inputs import STDIN, standard_input
from appliance.cli.shell.model_options import given, parameters_of, with_options
from appliance.cli.shell.options import api_client
from appliance.cli.show.printing import Output, for_people, prints, show_lines
from appliance.errors import UsageError
from appliance.system import clock
from common.toml_files import beginning

if TYPE_CHECKING:
    from appliance.client.messages import JobDetail
    from appliance.records.jobs import Job
    from curriculum.catalog import Catalog


@with_options(parameters_of(JobRequest))
@prints
def submit(
    job_file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A TOML file with the job, `-` for standard input.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the end. Exit code 0 solved, 1 not solved, 5 failed.")
    ] = False,
    **values: Any,
) -> Output[Annotated[Job, "without --wait"] | Annotated[JobDetail, "with --wait"]]:
    """Submit a question whose answer can be checked: an answer, a program, a proof, a text.

    Example: assay submit --question "Which whole number x has 7x + 3 = 45?" --check "7*x + 3 == 45" --domain integer
    """
    from appliance.cli.curriculum.catalog import catalog_of
    from appliance.cli.jobs.watch import ended_code, follow_job, queued, states_of

    prepared = _prepared(job_file, given(values), catalog_of)
    api = api_client()
    for content in prepared.contents.values():
        api.put_file(content)
    job = api.submit(prepared.submission)
    begun = queued(job)
    if not wait:
        return begun
    if for_people():
        show_lines(begun.text)
        detail = follow_job(api, job.id)
    else:
        *_, detail = states_of(api, job.id)
    return Output(detail, code=ended_code(detail.job))


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
