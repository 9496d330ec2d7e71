"""`assay curriculum show`: one taskset, with a task of each level."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.shell.named import TasksetName
from appliance.cli.shell.options import Data, Json
from appliance.cli.show.printing import show_fields, show_json


def show(
    context: typer.Context,
    name: TasksetName,
    answers: Annotated[bool, typer.Option("--answers", help="Show the answers of the examples, too.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show one taskset: topics, levels, tools, budget, and a task of each level.

    Example: assay curriculum show tables --answers
    """
    from appliance.cli.curriculum.catalog import catalog_of
    from appliance.cli.curriculum.view import ANSWER_FORMS, show_draft
    from curriculum.summary import examples, summary_of
    from verifiers.contract.kinds import AnswerForm

    catalog = catalog_of(context, data)
    one = summary_of(catalog, name)
    if as_json:
        show_json(one)
        return
    show_fields(
        [
            ("taskset", f"{one.name}, version {one.version}, domain {one.domain}"),
            ("asks", one.about),
            ("topics", ", ".join(one.topics)),
            ("levels", one.levels),
            ("check", ", ".join(one.checks)),
            ("answer", ", ".join(ANSWER_FORMS[AnswerForm(form)] for form in one.forms)),
            ("tools", ", ".join(one.tools) or "none"),
            ("world", one.environment if one.environment != "python" else ""),
            ("budget", _budget(one.turns, one.tokens)),
            ("null answers", " | ".join(one.null_answers)),
            ("trained on", "never: its answers are scored by a foreign reward" if one.foreign else ""),
            ("here", one.missing and f"cannot be checked on this machine: {one.missing}"),
        ]
    )
    for level in range(one.levels):
        for draft in examples(catalog, name, level, 1):
            typer.echo(f"\nlevel {level}, {draft.topic}")
            show_draft(draft, answers=answers)


def _budget(turns: int | None, tokens: int | None) -> str:
    own = [f"{turns} tool calls" if turns is not None else "", f"{tokens} tokens" if tokens is not None else ""]
    return ", ".join(filter(None, own)) or "as recipe.agent says"
