"""`assay curriculum sample`: tasks as a person reads them, from seeds that may be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.named import TasksetName
from appliance.cli.show.printing import Output, for_people, prints, show_line

if TYPE_CHECKING:
    from appliance.cli.curriculum.documents import AnsweredTask, SampledTask
    from curriculum.contract.taskset import TaskDraft

MOST = 1_000


@prints
def sample(
    name: TasksetName,
    level: Annotated[int | None, typer.Option("--level", min=0, help="Only this level (default: all).")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="This seed; not a sealed one.")] = None,
    count: Annotated[
        int, typer.Option("--count", min=1, max=MOST, help="Training tasks of each level; not with --seed.")
    ] = 1,
    answers: Annotated[bool, typer.Option("--answers", help="Show the answers and how they are checked.")] = False,
) -> Output[list[SampledTask] | Annotated[list[AnsweredTask], "with --answers"]]:
    """Show tasks as the model sees them: questions, files, and with --answers the answers.

    Example: assay curriculum sample tables --level 2 --count 3
    """
    from appliance.cli.curriculum.catalog import catalog_of, levels_of, viewable
    from curriculum.contract.errors import ExhaustedError
    from curriculum.contract.task import Split
    from curriculum.seeds import seeds
    from curriculum.summary import training_drafts

    catalog = catalog_of()
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
    if for_people():
        return Output([], lambda: _show(name, found, answers))
    from appliance.cli.curriculum.documents import AnsweredTask, SampledTask

    shape = AnsweredTask if answers else SampledTask
    tasks = []
    for at, number, draft in found:
        task = catalog.task_of(draft, name, at, number).record() | {"answer": draft.answer, "topic": draft.topic}
        tasks.append(shape(**{field: value for field, value in task.items() if field in shape.model_fields}))
    return Output(tasks)


def _show(name: str, found: list[tuple[int, int, TaskDraft]], answers: bool) -> None:
    from appliance.cli.curriculum.view import show_draft
    from curriculum.seeds import split_of

    for at, number, draft in found:
        show_line(f"{name}, level {at}, seed {number} ({split_of(number).value}), {draft.topic}")
        show_draft(draft, answers=answers)
        typer.echo()
    if not found:
        show_line(f"{name}: no such task in that split")
