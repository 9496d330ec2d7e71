"""`assay check draft`: a model drafts a checklist for the user's instruction; the draft is parsed as data and checked.

Invariants: nothing is written before the list was found sound; model text is printed escaped; the model runs on this
machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from appliance.cli.shell.inputs import text_of
from appliance.cli.show.printing import Output, prints
from appliance.errors import AssayError, ExitCode, UsageError
from runtime.model import FrozenModel
from verifiers.checklists.assess import ListAssessment, assess
from verifiers.registry import kind_named

TRIES = 3
MOST_TOKENS = 2048


class DraftedList(FrozenModel):
    list: dict[str, Any]
    """The checklist, as `assay check checklist --spec` reads it."""
    refused: tuple[str, ...]
    assessment: ListAssessment


@prints
def draft(
    instruction: Annotated[str, typer.Argument(metavar="FILE", help="Your instruction; `-` for standard input.")],
    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="URL", help="An OpenAI-compatible API on this machine.")
    ] = "",
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model's name at the endpoint.")] = "",
    written: Annotated[
        str, typer.Option("--written", metavar="FILE", help="A list already written by a model, instead of asking one.")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="File for a sound list, to use with --spec; must not exist."),
    ] = None,
) -> Output[DraftedList]:
    """Let a model draft a checklist for your instruction, and check the draft.

    Exit code 0 for a sound list, 1 for an unsound one, 2 for a text that is not a list.

    Example: assay check draft letter.txt --endpoint http://127.0.0.1:8000/v1 --model judge --out list.toml
    """
    from appliance.cli.check.target import target_for
    from curriculum.checklists.written import WrittenList, WrittenListError, read_written, request
    from verifiers.checklists.explain import explain

    if bool(written) == bool(endpoint and model):
        raise UsageError("no author for the list", "give --endpoint with --model, or --written")
    if out is not None and out.exists():
        raise UsageError(f"{out} already exists", "name another file")
    asked = text_of(instruction, "FILE").strip()
    if not asked:
        raise UsageError("the instruction is empty", "describe the text that you want")

    def from_model() -> WrittenList:
        from appliance.inference.http.local_api import LocalApi

        problem: WrittenListError | None = None
        with LocalApi(endpoint, model) as api:
            for attempt in range(TRIES):
                message = {"role": "user", "content": request(asked)}
                said = api.say([message], temperature=0.7, max_tokens=MOST_TOKENS, seed=attempt)
                try:
                    return read_written(said.message.content or "", asked)
                except WrittenListError as error:
                    problem = error
        assert problem is not None
        raise problem

    found = read_written(text_of(written, "--written"), asked) if written else from_model()
    with target_for((kind_named("checklist"),)).checker(jobs=1) as checker:
        report = assess(checker, found.spec)
    content = found.spec.model_dump(mode="json", exclude={"kind"})
    lines = [
        *explain(found.spec),
        *(f"left out: {why}" for why in found.refused),
        f"{'sound' if report.sound else 'not sound'}: {report.reason}",
        *(f"  {line}" for line in report.lines()),
    ]
    if report.sound and out is not None:
        try:
            with out.open("x") as file:
                file.write(json.dumps(content, indent=2) + "\n")
        except OSError as error:
            raise AssayError(f"{out}: {error.strerror}", "name a writable file", ExitCode.USAGE) from error
    code = ExitCode.OK if report.sound else ExitCode.FAILED_VERDICT
    return Output(DraftedList(list=content, refused=tuple(found.refused), assessment=report), lines, code)
