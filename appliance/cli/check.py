"""`assay check`: is this answer, proof, program or text right? One, or a file of them; without a daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from appliance.cli import check_options as options
from appliance.cli.options import Data, Json

app = typer.Typer(help="Check answers, proofs, programs and texts, yours or anybody's.", no_args_is_help=True)


@app.command("answer")
def answer(
    context: typer.Context,
    gold: Annotated[str | None, typer.Option("--gold", metavar="TEXT", help="The expected answer.")] = None,
    answer: Annotated[
        str | None, typer.Option("--answer", metavar="TEXT", help="The answer to be checked, `-` for standard input.")
    ] = None,
    pairs: options.PairsFile = None,
    out: options.Out = None,
    boxed: Annotated[
        bool, typer.Option("--boxed", help="The answer is what stands in the text's only \\boxed{...}.")
    ] = False,
    form: Annotated[
        str | None, typer.Option("--form", help="equal, worked_out (unless given), simplified or same.")
    ] = None,
    absolute: Annotated[
        str | None, typer.Option("--absolute", metavar="NUMBER", help="Decimals this close are accepted.")
    ] = None,
    relative: Annotated[
        str | None, typer.Option("--relative", metavar="NUMBER", help="The same, as a share of the expected value.")
    ] = None,
    any_order: Annotated[
        bool, typer.Option("--any-order", help="A list in brackets may come in another order.")
    ] = False,
    units: Annotated[
        str | None, typer.Option("--units", help="as_expected (unless given), optional or ignored.")
    ] = None,
    variables: Annotated[
        list[str] | None,
        typer.Option("--variable", metavar="NAME", help="A symbol that may occur; those of the gold unless given."),
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="Of symbols: real (unless given), complex, positive or integer.")
    ] = None,
    spec: options.SpecFile = None,
    jobs: options.Jobs = 1,
    seconds: options.Seconds = None,
    evidence: options.Evidence = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Is this answer the same as the expected one? 0 yes, 1 no.

    A line of --pairs has id, gold, prediction and perhaps spec; a result has id, outcome, reason, seconds.
    """
    fields = options.fields_of(spec, "answer") | options.given(
        final="boxed" if boxed else None,
        form=form,
        absolute=absolute,
        relative=relative,
        order="any" if any_order else None,
        units=units,
        variables=variables,
        domain=domain,
    )
    if options.many({"--gold": gold, "--answer": answer}, pairs, out):
        options.spec_of("answer", {**fields, "expected": "0"})
        _many(context, data, "answer", fields, pairs, out, jobs, seconds, evidence=evidence, as_json=as_json)
    assert answer is not None
    if answer == options.STDIN:
        answer = options.text_of(answer, "--answer").removesuffix("\n")
    _one(context, data, "answer", {**fields, "expected": gold}, answer, seconds, evidence=evidence, as_json=as_json)


@app.command("smt")
def smt(
    context: typer.Context,
    claim: Annotated[
        str | None, typer.Option("--claim", metavar="FILE", help="The claim, in SMT-LIB; `-` for standard input.")
    ] = None,
    submission: options.Submission = None,
    question: Annotated[
        str | None, typer.Option("--question", help="entails (unless given), model, optimum or equivalent.")
    ] = None,
    spec: options.SpecFile = None,
    pairs: options.PairsFile = None,
    out: options.Out = None,
    jobs: options.Jobs = 1,
    seconds: options.Seconds = None,
    evidence: options.Evidence = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Does this claim hold, with these terms? 0 when it is proved, 1 when it is not, or not known."""
    fields = options.claim_of(claim) | options.fields_of(spec, "smt") | options.given(question=question)
    options.needs_field(fields, "claim", pairs)
    if options.many({"--submission": submission}, pairs, out, needed=False):
        _many(context, data, "smt", fields, pairs, out, jobs, seconds, evidence=evidence, as_json=as_json)
    text = options.terms_of(submission, fields)
    _one(context, data, "smt", fields, text, seconds, evidence=evidence, as_json=as_json)


@app.command("lean")
def lean(
    context: typer.Context,
    statement: Annotated[
        str | None, typer.Option("--statement", metavar="FILE", help="The trusted statement, a file of Lean.")
    ] = None,
    submission: options.Submission = None,
    toolchain: Annotated[
        Path | None,
        typer.Option("--lean", metavar="DIR", help="A toolchain's folder; the one that is found unless given."),
    ] = None,
    spec: options.SpecFile = None,
    pairs: options.PairsFile = None,
    out: options.Out = None,
    jobs: options.Jobs = 1,
    seconds: options.Seconds = None,
    evidence: options.Evidence = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Does this file prove the statement, with no axiom but those allowed? 0 yes, 1 no."""
    options.needs_toolchain(toolchain)
    fields = options.fields_of(spec, "lean")
    if statement is not None:
        fields["statement"] = options.text_of(statement, "--statement")
    options.needs_field(fields, "statement", pairs)
    if options.many({"--submission": submission}, pairs, out):
        _many(
            context, data, "lean", fields, pairs, out, jobs, seconds, lean=toolchain, evidence=evidence, as_json=as_json
        )
    assert submission is not None
    text = options.text_of(submission, "--submission")
    _one(context, data, "lean", fields, text, seconds, lean=toolchain, evidence=evidence, as_json=as_json)


@app.command("code")
def code(
    context: typer.Context,
    submission: options.Submission = None,
    assess: Annotated[
        bool, typer.Option("--assess", help="Check the tests: whether they tell a right program from its neighbours.")
    ] = False,
    spec: options.SpecFile = None,
    pairs: options.PairsFile = None,
    out: options.Out = None,
    jobs: options.Jobs = 1,
    seconds: options.Seconds = None,
    evidence: options.Evidence = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Does this program do what the tests ask for? 0 yes, 1 no.

    With --assess: do the tests tell right from wrong? The right program is the spec's reference, or --submission.
    """
    options.needs(spec, pairs)
    fields = options.fields_of(spec, "program")
    if assess:
        options.many({}, pairs, out)
        right = "" if submission is None else options.text_of(submission, "--submission")
        _assess(context, data, fields, right, seconds, as_json=as_json)
    if options.many({"--submission": submission}, pairs, out):
        _many(context, data, "program", fields, pairs, out, jobs, seconds, evidence=evidence, as_json=as_json)
    assert submission is not None
    text = options.text_of(submission, "--submission")
    _one(context, data, "program", fields, text, seconds, evidence=evidence, as_json=as_json)


@app.command("checklist")
def checklist(
    context: typer.Context,
    submission: options.Submission = None,
    judge: Annotated[
        Path | None, typer.Option("--judge", metavar="DIR", help="A model's folder: it grades the soft items.")
    ] = None,
    spec: options.SpecFile = None,
    pairs: options.PairsFile = None,
    out: options.Out = None,
    jobs: options.Jobs = 1,
    seconds: options.Seconds = None,
    evidence: options.Evidence = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Does this text have everything on the list? 0 yes, 1 no."""
    options.needs(spec, pairs)
    fields = options.fields_of(spec, "checklist")
    if options.many({"--submission": submission}, pairs, out):
        _many(
            context,
            data,
            "checklist",
            fields,
            pairs,
            out,
            jobs,
            seconds,
            judge=judge,
            evidence=evidence,
            as_json=as_json,
        )
    assert submission is not None
    text = options.text_of(submission, "--submission")
    _one(context, data, "checklist", fields, text, seconds, judge=judge, evidence=evidence, as_json=as_json)


@app.command("selftest")
def selftest(
    context: typer.Context,
    verifiers: Annotated[
        list[str] | None,
        typer.Option("--verifier", metavar="NAME", help="Only this kind, such as answer or program; repeatable."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, max=256, help="How many cases run at once; the processors unless given."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Try every known attack on the verifiers here, and honest controls.

    1 when an attack passes or a control does not, 5 when a case could not be run.
    """
    import os

    from appliance.cli.check_place import place_for
    from appliance.cli.check_selftest import run_cases

    place = place_for(context, data, (), ready=2)
    jobs = jobs or len(os.sched_getaffinity(0))
    raise typer.Exit(run_cases(place, only=verifiers or [], jobs=jobs, as_json=as_json))


def _one(
    context: typer.Context,
    data: Path | None,
    kind: str,
    fields: dict[str, Any],
    submission: str,
    seconds: float | None,
    *,
    lean: Path | None = None,
    judge: Path | None = None,
    evidence: bool,
    as_json: bool,
) -> NoReturn:
    from appliance.cli.check_place import place_for
    from appliance.cli.check_work import check_one

    spec = options.spec_of(kind, fields)
    place = place_for(context, data, (kind,), lean=lean, judge=judge)
    raise typer.Exit(check_one(place, spec, submission, seconds=seconds, evidence=evidence, as_json=as_json))


def _many(
    context: typer.Context,
    data: Path | None,
    kind: str,
    fields: dict[str, Any],
    pairs: Path | None,
    out: Path | None,
    jobs: int,
    seconds: float | None,
    *,
    lean: Path | None = None,
    judge: Path | None = None,
    evidence: bool,
    as_json: bool,
) -> NoReturn:
    from appliance.cli.check_place import place_for
    from appliance.cli.check_work import Job, check_pairs

    assert pairs is not None
    job = Job(kind, fields, pairs, out, jobs, seconds, evidence)
    raise typer.Exit(check_pairs(place_for(context, data, (kind,), lean=lean, judge=judge), job, as_json=as_json))


def _assess(
    context: typer.Context,
    data: Path | None,
    fields: dict[str, Any],
    right: str,
    seconds: float | None,
    *,
    as_json: bool,
) -> NoReturn:
    from appliance.cli.check_assess import assess_tests
    from appliance.cli.check_place import place_for

    spec = options.spec_of("program", fields)
    settings = place_for(context, data, ("program",)).broker
    raise typer.Exit(assess_tests(settings, spec, right, seconds=seconds, as_json=as_json))
