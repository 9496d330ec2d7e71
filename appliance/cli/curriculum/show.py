"""`assay curriculum show`: one taskset, with a task of each level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.named import TasksetName
from appliance.cli.show.printing import Output, prints, show_fields

if TYPE_CHECKING:
    from curriculum.catalog import Catalog
    from curriculum.taskset_summary import TasksetSummary


@prints
def show(
    name: TasksetName,
    answers: Annotated[bool, typer.Option("--answers", help="Show the answers of the examples, too.")] = False,
) -> Output[TasksetSummary]:
    """Show one taskset: topics, levels, tools, budget, and a task of each level.

    Example: assay curriculum show tables --answers
    """
    from appliance.cli.curriculum.catalog import catalog_of
    from curriculum.summary import summary_of

    catalog = catalog_of()
    one = summary_of(catalog, name)
    return Output(one, lambda: _show(one, catalog, answers))


def _show(one: TasksetSummary, catalog: Catalog, answers: bool) -> None:
    from appliance.cli.curriculum.view import ANSWER_FORMS, show_draft
    from curriculum.summary import examples
    from verifiers.contract.kinds import AnswerForm

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
        for draft in examples(catalog, one.name, level, 1):
            typer.echo(f"\nlevel {level}, {draft.topic}")
            show_draft(draft, answers=answers)


def _budget(turns: int | None, tokens: int | None) -> str:
    own = [f"{turns} tool calls" if turns is not None else "", f"{tokens} tokens" if tokens is not None else ""]
    return ", ".join(filter(None, own)) or "as recipe.agent says"
