"""`assay curriculum sample`: tasks as a person reads them, from seeds that may be seen."""

from __future__ import annotations

from typing import Annotated

import typer

from appliance.cli.shell.named import TasksetName
from appliance.cli.shell.options import Data, Json

MOST = 1_000


def sample(
    context: typer.Context,
    name: TasksetName,
    level: Annotated[int | None, typer.Option("--level", min=0, help="Only this level (default: all).")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="This seed; not a sealed one.")] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, max=MOST, help="Training tasks of each level; not with --seed.")
    ] = 1,
    answers: Annotated[bool, typer.Option("--answers", help="Show the answers and how they are checked.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show tasks as the model sees them: questions, files, and with --answers the answers.

    Example: assay curriculum sample tables --level 2 --count 3
    """
    from appliance.cli.curriculum.catalog import catalog_of, levels_of, viewable
    from appliance.cli.curriculum.view import show_draft
    from appliance.cli.show.printing import show_json, show_line
    from curriculum.contract.errors import ExhaustedError
    from curriculum.contract.task import Split
    from curriculum.seeds import seeds, split_of
    from curriculum.summary import training_drafts

    catalog = catalog_of(context, data)
    found = []
    for at in levels_of(catalog, name, level):
        if seed is None:
            drafts = training_drafts(catalog, name, at, count, seeds(Split.TRAIN))
        else:
            try:
                drafts = [(seed, viewable(catalog, name, at, seed))]
            except ExhaustedError:
                drafts = []
        found += [(at, number, draft) for number, draft in drafts]
    if as_json:
        from appliance.cli.documents.tasks import AnsweredTask, SampledTask

        shape = AnsweredTask if answers else SampledTask
        shown = []
        for at, number, draft in found:
            task = catalog.task_of(draft, name, at, number).record() | {"answer": draft.answer, "topic": draft.topic}
            shown.append(shape(**{field: value for field, value in task.items() if field in shape.model_fields}))
        show_json(shown)
        return
    for at, number, draft in found:
        show_line(f"{name}, level {at}, seed {number} ({split_of(number).value}), {draft.topic}")
        show_draft(draft, answers=answers)
        typer.echo()
    if not found:
        show_line(f"{name}: no such task in that split")
