"""`assay jobs validate`: whether a job's check says what was meant, which only a person can tell.

What always holds: what is signed is what is shown, down to the digest that is typed; nothing is signed with `--json`
alone, nor without somebody who confirms. The examples are computed here, by the verifiers, and not by the daemon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.options import Data, Json, Limit, client_of
from appliance.cli.person import Agent, Confirm, KeyFile, PassphraseFile, Signs, confirm, open_key, person_key

if TYPE_CHECKING:
    from appliance.client import ApiClient, Job, JobDetail
    from policies.meaning import Look, Page


def validate(
    context: typer.Context,
    job: Annotated[str | None, typer.Argument(help="Which job; those that wait are listed without one.")] = None,
    not_meant: Annotated[
        bool, typer.Option("--not-meant", help="Your word is that the check does not say what was meant.")
    ] = False,
    name: Signs = None,
    key: KeyFile = None,
    passphrase_file: PassphraseFile = None,
    agent: Agent = False,
    confirmed: Confirm = None,
    limit: Limit = 20,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Say, with your signature, whether a job's check means what was asked.

    It is shown in plain words, with what it accepts and what it rejects. --json without --confirm signs nothing.
    """
    with client_of(context, data) as api:
        if job is None:
            _list(api, limit, as_json=as_json)
            return
        detail = api.job(job)
        _require_open(detail.job)
        own = person_key(name, key) if confirmed is not None or not as_json else None
        page = _page(context, detail, data)
        digest = page.digest()
        if own is None:
            _show_page_as_json(detail.job, page)
            return
        if not as_json:
            _show(detail.job, page)
        what = "this check does not say what was meant" if not_meant else "this check says what was meant"
        confirm(f"say that {what}", digest, confirmed)
        signer = open_key(own, passphrase_file, agent=agent)
        from appliance.client.signing import signed_meaning
        from appliance.jobs.content import content_of

        envelope = signed_meaning(
            "not_meant" if not_meant else "meant",
            job=detail.job.id,
            content=content_of(detail.job),
            page=page,
            keys=api.keys(),
            signer=signer,
        )
        _told(api.give_meaning(detail.job.id, envelope), detail.bundle, as_json=as_json)


def _list(api: ApiClient, limit: int, *, as_json: bool) -> None:
    from appliance.cli.show import show_json, show_table

    jobs = api.meanings(limit)
    if as_json:
        show_json(jobs)
        return
    show_table(
        ("job", "kind", "state", "submitted", "question"),
        [(job.id, job.kind.value, job.state.value, job.created[:19], job.question) for job in jobs],
        empty="no job waits for a word on whether its check says what was meant",
    )


def _require_open(job: Job) -> None:
    """Raises ApiError where no word can be given."""
    from appliance.client import ApiError
    from appliance.jobs.content import not_asked

    if why := not_asked(job):
        raise ApiError(why, hint="`assay jobs validate` lists those that wait for a word", exit_code=4)


def _page(context: typer.Context, detail: JobDetail, data: Data) -> Page:
    import time

    from appliance.cli.check_place import place_for
    from appliance.jobs.meaning import page_of

    place = place_for(context, data, (detail.job.spec.kind,))
    answer = detail.artifact.answer if detail.artifact is not None else None
    with place.checker(jobs=1) as checker:
        return page_of(detail.job, answer, checker.check_many, time.monotonic)


def _show_page_as_json(job: Job, page: Page) -> None:
    from appliance.cli.show import show_json
    from appliance.jobs.content import content_of

    show_json({"job": job.id, "content": content_of(job), "shown": page.digest(), "page": page.model_dump(mode="json")})


def _show(job: Job, page: Page) -> None:
    """The warnings first, then the question, the check, and what the verifier said."""
    from appliance.cli.show import show_fields, show_line
    from appliance.jobs.content import content_of

    for line in page.first:
        show_line(line)
    show_fields([("job", job.id), ("kind", job.kind.value), ("state", job.state.value)])
    _block("The question:", page.question)
    _block("The files:", page.files)
    _block("What is checked, in plain words:", page.words)
    accepted = [look for look in page.looks if look.accepted]
    unknown = [look for look in page.looks if look.outcome == "infra_error"]
    _looks("Accepted:", accepted)
    _looks("Rejected:", [look for look in page.looks if look not in accepted and look not in unknown])
    _looks("Not tried:", unknown)
    _block("Also:", page.notes)
    show_line("")
    show_fields([("verifier", page.verifier), ("content", content_of(job)), ("shown", page.digest())])


def _block(title: str, lines: tuple[str, ...]) -> None:
    from appliance.cli.show import show_line

    if lines:
        show_line("")
        for line in (title, *(f"  {line}" for line in lines)):
            show_line(line)


def _looks(title: str, looks: list[Look]) -> None:
    from appliance.cli.show import show_line, show_table

    if looks:
        show_line("")
        show_line(title)
        show_table(
            ("  how it was made", "what was handed in", "what the verifier said"),
            [(f"  {look.what}", " / ".join(look.text.splitlines()), look.reason) for look in looks],
            empty="",
        )


def _told(job: Job, bundle: str | None, *, as_json: bool) -> None:
    from appliance.cli.show import show_json, show_line

    if as_json:
        show_json(job)
        return
    meaning = job.meaning
    assert meaning is not None
    said = "says what was meant" if meaning.verdict == "meant" else "does not say what was meant"
    show_line(f"{meaning.person}: the check of {job.id} {said}")
    if bundle is not None:
        show_line(f"the bundle stays as it is; the word is with it: `assay verify {bundle}`")
    elif meaning.verdict == "not_meant":
        show_line(f"the work on it goes on: `assay jobs cancel {job.id}` ends it")
    else:
        show_line("it goes into the bundle, if the job is solved")
