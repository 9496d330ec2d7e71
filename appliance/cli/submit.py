"""`assay submit`: a job from flags, one TOML file or standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from appliance.cli.options import Data, Json, client_of

if TYPE_CHECKING:
    from appliance.cli.request import Prepared


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
    spec: Annotated[
        str | None,
        typer.Option("--spec", metavar="SPEC.toml", help="A program's tests, as for `assay check code`; or any spec."),
    ] = None,
    claim: Annotated[
        str | None, typer.Option("--claim", metavar="FILE", help="A claim for the SMT solvers, a file of SMT-LIB.")
    ] = None,
    statement: Annotated[
        str | None, typer.Option("--statement", metavar="FILE", help="What is to be proved, a file of Lean.")
    ] = None,
    checklist: Annotated[
        str | None, typer.Option("--checklist", metavar="FILE", help="What a text must have, as TOML or JSON.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", metavar="FILE", help="Data that the agent finds in its folder; repeatable."),
    ] = None,
    attempts: Annotated[int | None, typer.Option("--attempts", help="Independent tries, 1 to 1024.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the tries.")] = None,
    priority: Annotated[
        int | None, typer.Option("--priority", help="0 to 9; higher ones go first, 5 is usual.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", help="When it is given up: 2h, 1d12h, or 2026-05-01T18:00.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="SECONDS", help="Of work on it, over all tries.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is done: 0 solved, 1 not solved, 5 failed.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Ask for what can be checked: an answer, a program, a proof, a text."""
    from appliance.cli.jobs_watch import ended_code, show_job, show_queued, watch_job
    from appliance.cli.show import show_json

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
        "spec": spec,
        "claim": claim,
        "statement": statement,
        "checklist": checklist,
        "file": tuple(files) if files else None,
        "attempts": attempts,
        "seed": seed,
        "priority": priority,
        "deadline": deadline,
        "budget": budget,
    }
    prepared = _prepared(file, {name: value for name, value in flags.items() if value is not None})
    with client_of(context, data) as api:
        for content in prepared.contents.values():
            api.put_file(content)
        job = api.submit(prepared.submission)
        if not wait:
            show_json(job) if as_json else show_queued(job)
            return
        detail = watch_job(api, job.id, None)
    show_json(detail) if as_json else show_job(detail)
    raise typer.Exit(ended_code(detail.job))


def _prepared(file: Path | None, flags: dict[str, Any]) -> Prepared:
    """The job that the flags or the file describe, with what lies in the files that it names."""
    from datetime import datetime

    from pydantic import ValidationError

    from appliance.cli.request import JobRequest, RequestError, first_fault, read_request

    now = datetime.now().astimezone()
    if file is None:
        try:
            request = JobRequest.model_validate(flags)
        except ValidationError as error:
            raise RequestError(f"--{first_fault(error)}", hint="see `assay submit --help`") from error
        return request.prepared(Path(), now)
    if flags:
        raise RequestError(
            f"a file and --{next(iter(flags))} both describe the job", hint="give the file alone, or the flags alone"
        )
    if str(file) == "-":
        return read_request(_standard_input(), "standard input").prepared(Path(), now)
    return read_request(_content(file), str(file)).prepared(file.parent, now)


def _content(file: Path) -> bytes:
    from appliance.cli.request import MAX_FILE_BYTES, RequestError
    from policies.toml_files import beginning

    try:
        return beginning(file, MAX_FILE_BYTES)
    except OSError as error:
        raise RequestError(f"{file}: {error.strerror}", hint="name a TOML file that can be read") from error


def _standard_input() -> bytes:
    from appliance.cli.request import MAX_FILE_BYTES, RequestError

    if sys.stdin is None or sys.stdin.closed:
        raise RequestError("there is no standard input", hint="name a file")
    return sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
