"""`assay jobs validate`: a person signs whether a job's check means what was asked.

Invariants: the signature covers exactly what is shown, down to the typed digest. Nothing is signed with `--json` alone
or without a confirmation. Examples are computed here by the verifiers, not by the daemon.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from appliance.cli.shell.options import Limit, api_client
from appliance.cli.shell.person import SigningOptions
from appliance.cli.show.printing import (
    Output,
    for_people,
    prints,
    records,
    short_time,
    show_fields,
    show_line,
    show_table,
)
from appliance.client import ApiError, Job, JobDetail
from appliance.client.messages import ValidationEnvelope
from appliance.client.signing import signed_validation
from appliance.errors import AssayError, ExitCode
from appliance.jobs.validation import TOO_BUSY, content_of, not_asked
from policies.statements import Page, ShownExample
from runtime.model import FrozenModel
from verifiers.registry import kind_of


class ValidationDocument(FrozenModel):
    """Page about a job's check that a person is asked to sign."""

    job: str
    content: str
    shown: str
    """Digest of the page."""
    page: Page


@prints
def validate(
    signs: SigningOptions,
    job: Annotated[str | None, typer.Argument(help="The job; without it, list the jobs that wait.")] = None,
    not_meant: Annotated[
        bool, typer.Option("--not-meant", help="Sign that the check does not mean what was asked.")
    ] = False,
    limit: Limit = 20,
) -> Output[
    Annotated[Sequence[Job], "without a job"]
    | Annotated[ValidationDocument, "without --confirm"]
    | Annotated[Job, "with --confirm"]
]:
    """Sign whether a job's check means what was asked.

    The check is shown in plain words, with examples that it accepts and rejects. --json without --confirm signs
    nothing.

    Example: assay jobs validate job-1f0c52b7d2aa
    """
    api = api_client()
    if job is None:
        return records(
            api.open_validations(limit),
            ("job", "kind", "state", "submitted", "question"),
            lambda one: (one.id, one.kind, one.state.value, one.created[:19], one.question),
            empty="every job's check is validated",
            narrow={"submitted": short_time, "kind": None},
        )
    detail = api.job(job)
    _require_open(detail.job)
    own = signs.person_key() if signs.confirm is not None or for_people() else None
    page = _page(detail)
    digest = page.digest()
    busy = any(line.startswith(TOO_BUSY) for line in page.first[:1])
    if own is None:
        document = ValidationDocument(job=detail.job.id, content=content_of(detail.job), shown=digest, page=page)
        return Output(document, code=ExitCode.BUSY if busy else ExitCode.OK)
    if for_people():
        _show(detail.job, page)
    if busy:
        raise AssayError(
            "too busy: not every example was tried, and nothing is signed",
            "run it again when the machine is less busy",
            ExitCode.BUSY,
        )
    what = "this check does not mean what was asked" if not_meant else "this check means what was asked"
    signs.confirmed(f"say that {what}", digest)
    signer = signs.signer(own)

    envelope = signed_validation(
        "not_meant" if not_meant else "meant",
        job=detail.job.id,
        content=content_of(detail.job),
        page=page,
        keys=api.keys(),
        signer=signer,
    )
    public = f"{own.path}.pub"
    validated = api.validate(detail.job.id, ValidationEnvelope(envelope=envelope.decode("ascii")))
    return Output(validated, _signed(validated, detail.bundle, public))


def _require_open(job: Job) -> None:
    """Raises ApiError if the job's check cannot be signed."""
    if why := not_asked(job):
        raise ApiError(why, hint="list the jobs that wait with `assay jobs validate`", exit_code=4)


def _page(detail: JobDetail) -> Page:
    from appliance.cli.check.target import target_for
    from appliance.jobs.validation import page_of

    place = target_for((kind_of(detail.job.spec),))
    answer = detail.artifact.answer if detail.artifact is not None else None
    with place.checker(jobs=1) as checker:
        return page_of(detail.job, answer, checker.check_many, time.monotonic)


def _show(job: Job, page: Page) -> None:
    """Prints the page that a person signs: warnings first, then question, check, and the verifier's results."""
    for line in page.first:
        show_line(line)
    show_fields([("job", job.id), ("kind", job.kind), ("state", job.state.value)])
    _block("The question:", page.question)
    _block("The files:", page.files)
    _block("What is checked, in plain words:", page.words)
    accepted = [one for one in page.examples if one.accepted]
    unknown = [one for one in page.examples if one.outcome == "infra_error"]
    _show_examples("Accepted:", accepted)
    _show_examples("Rejected:", [one for one in page.examples if one not in accepted and one not in unknown])
    _show_examples("Not tried:", unknown)
    _block("Also:", page.notes)
    show_line("")
    show_fields([("verifier", page.verifier), ("content", content_of(job)), ("shown", page.digest())])


def _block(title: str, lines: tuple[str, ...]) -> None:
    if lines:
        show_line("")
        for line in (title, *(f"  {line}" for line in lines)):
            show_line(line)


def _show_examples(title: str, examples: list[ShownExample]) -> None:
    if examples:
        show_line("")
        show_line(title)
        show_table(
            ("  example", "submission", "verdict"),
            [(f"  {one.what}", " / ".join(one.text.splitlines()), one.reason) for one in examples],
            empty="",
            whole=True,
        )


def _signed(job: Job, bundle: str | None, public: str) -> list[str]:
    signed = job.validation
    assert signed is not None
    result = "means what was asked" if signed.verdict == "meant" else "does not mean what was asked"
    if bundle is not None:
        command = shlex.join(["assay", "verify", bundle, "--person-key", public])
        then = f"the bundle is unchanged; your signature lies beside it: `{command}`"
    elif signed.verdict == "not_meant":
        then = f"work on it continues: stop it with `assay jobs cancel {job.id}`"
    else:
        then = "it becomes part of the bundle if the job is solved"
    return [f"{signed.person}: the check of {job.id} {result}", then]
