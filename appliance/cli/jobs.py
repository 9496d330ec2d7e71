"""`assay submit`, `assay jobs`: questions in, artifacts with evidence out."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from appliance.cli.options import Data, Json, Limit, client_of

if TYPE_CHECKING:
    from appliance.cli.request import JobRequest
    from appliance.client import ApiClient, JobDetail

app = typer.Typer(help="List the jobs, show one.", no_args_is_help=True)

POLL_SECONDS = 0.3


def add_to(root: typer.Typer) -> None:
    """Adds `submit` and `jobs`."""
    root.command("submit")(submit)
    root.add_typer(app, name="jobs")


def submit(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="A TOML file with the job, `-` for standard input.")] = None,
    question: Annotated[str | None, typer.Option("--question", help="What is asked.")] = None,
    check: Annotated[
        str | None,
        typer.Option("--check", help='A predicate over the answer: "7*x+3 == 45". No known answer is needed.'),
    ] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option("--variable", help="Stands for the answer in --check (x); may occur in --expect."),
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="Of the answer: integer, rational, real (default) or complex.")
    ] = None,
    expect: Annotated[
        str | None, typer.Option("--expect", help="The expected answer; the agent never sees it.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="How --expect is compared: exact, integer or expression.")
    ] = None,
    family: Annotated[
        str | None, typer.Option("--family", help="An item of a task family, with its own check.")
    ] = None,
    level: Annotated[int | None, typer.Option("--level", help="Of the family's item.")] = None,
    item: Annotated[int | None, typer.Option("--item", help="Which item of the family.")] = None,
    attempts: Annotated[int | None, typer.Option("--attempts", help="Independent tries, 1 to 1024.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the tries.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is done: 0 solved, 1 not solved, 5 failed.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Ask the model in service a question whose answer can be checked."""
    from appliance.cli.show import show_json, show_line

    flags: dict[str, Any] = {
        "question": question,
        "check": check,
        "variable": tuple(variable) if variable else None,
        "domain": domain,
        "expect": expect,
        "kind": kind,
        "family": family,
        "level": level,
        "item": item,
        "attempts": attempts,
        "seed": seed,
    }
    submission = _request(file, {name: value for name, value in flags.items() if value is not None}).to_submission()
    with client_of(context, data) as api:
        job = api.submit(submission)
        if not wait:
            if as_json:
                show_json(job)
            else:
                show_line(f"job {job.id} is {job.state.value}; see `assay jobs show {job.id}`")
                if job.reason:
                    show_line(job.reason)
            return
        detail = _wait(api, job.id)
    _show_job(detail, as_json=as_json)
    raise typer.Exit({"solved": 0, "unsolved": 1}.get(detail.job.state.value, 5))


@app.command("ls")
def ls(context: typer.Context, limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """The jobs, newest first."""
    from appliance.cli.show import show_json, show_table

    with client_of(context, data) as api:
        jobs = api.jobs(limit)
    if as_json:
        show_json(jobs)
        return
    show_table(
        ("job", "state", "submitted", "question", "reason"),
        [(job.id, job.state.value, job.created, job.question, job.reason) for job in jobs],
        empty="no job yet: `assay submit --question ... --check ...`",
    )


@app.command("show")
def show(context: typer.Context, job: str, data: Data = None, as_json: Json = False) -> None:
    """One job: its state, its answer and its bundle, or what was tried."""
    with client_of(context, data) as api:
        _show_job(api.job(job), as_json=as_json)


def _request(file: Path | None, flags: dict[str, Any]) -> JobRequest:
    from pydantic import ValidationError

    from appliance.cli.request import MAX_FILE_BYTES, JobRequest, RequestError, first_fault, read_request

    if file is None:
        try:
            return JobRequest.model_validate(flags)
        except ValidationError as error:
            raise RequestError(f"--{first_fault(error)}", hint="see `assay submit --help`") from error
    if flags:
        raise RequestError(
            f"a file and --{next(iter(flags))} both describe the job", hint="give the file alone, or the flags alone"
        )
    if str(file) == "-":
        return read_request(sys.stdin.buffer.read(MAX_FILE_BYTES + 1), "standard input")
    try:
        with file.open("rb") as stream:
            return read_request(stream.read(MAX_FILE_BYTES + 1), str(file))
    except OSError as error:
        raise RequestError(f"{file}: {error.strerror}", hint="name a TOML file that can be read") from error


def _wait(api: ApiClient, job: str) -> JobDetail:
    while (detail := api.job(job)).job.state.value in ("queued", "running"):
        time.sleep(POLL_SECONDS)
    return detail


def _show_job(detail: JobDetail, *, as_json: bool) -> None:
    from appliance.cli.show import show_fields, show_json, show_line

    if as_json:
        show_json(detail)
        return
    job, artifact = detail.job, detail.artifact
    show_fields(
        [
            ("job", job.id),
            ("state", job.state.value),
            ("question", job.question),
            ("reason", job.reason),
            ("answer", artifact.answer if artifact else None),
            ("bundle", detail.bundle),
            ("model", artifact.weights[:12] if artifact else None),
            ("check again", f"assay verify {detail.bundle}" if artifact else None),
        ]
    )
    for tried in job.tried:
        show_line(f"tried: {tried}")
