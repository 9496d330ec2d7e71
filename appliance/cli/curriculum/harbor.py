"""`assay curriculum harbor` and `export`: inspects and writes Harbor task folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.shell.options import Data, Json
from appliance.cli.show.printing import show_json, show_line


def harbor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A Harbor task folder, with its task.toml.")],
    as_json: Json = False,
) -> None:
    """Show what a Harbor task folder becomes here, and what judges it; or why it is unusable (exit code 2).

    Example: assay curriculum harbor tasks/repair-nginx
    """
    from curriculum.environments.terminal.harbor.folder import read_folder

    task = read_folder(folder)
    if as_json:
        from appliance.cli.documents.tasks import HarborFolder

        show_json(
            HarborFolder(
                name=task.name,
                files=len(task.draft.world["files"]),
                judged_by=tuple(task.draft.world["declared"]),
                foreign=task.foreign,
                solution=bool(task.solution),
                notes=tuple(task.notes),
            )
        )
        return
    show_line(
        f"{task.name}: {len(task.draft.world['files'])} files, judged by {', '.join(task.draft.world['declared'])}"
    )
    show_line(
        "its score: a foreign reward, not a verdict" if task.foreign else "its score: a verdict of the check `files`"
    )
    show_line(f"its solution: {'present' if task.solution else 'none'}")
    for note in task.notes:
        show_line(f"note: {note}")


def export(
    context: typer.Context,
    taskset: Annotated[str, typer.Argument(metavar="NAME", help="A taskset with terminal tasks.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    level: Annotated[int, typer.Option("--level", min=0, help="Level of the task.")] = 0,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of the task, not a sealed one (default: the first).")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Write a terminal task as a Harbor task folder, with its check and its solution.

    Example: assay curriculum export terminal_repairs task --level 2
    """
    from appliance.cli.curriculum.catalog import catalog_of, levels_of, viewable
    from curriculum.contract.errors import ExhaustedError
    from curriculum.contract.task import Split
    from curriculum.environments.terminal.harbor.folder import write
    from curriculum.seeds import seeds
    from curriculum.summary import training_drafts

    catalog = catalog_of(context, data)
    levels_of(catalog, taskset, level)
    if seed is not None:
        number, draft = seed, viewable(catalog, taskset, level, seed)
    elif drawn := training_drafts(catalog, taskset, level, 1, seeds(Split.TRAIN)):
        [(number, draft)] = drawn
    else:
        raise ExhaustedError(f"{taskset} has no training task of level {level}", hint="choose another level")
    write(draft, f"{taskset}-{level}-{number}", folder)
    if as_json:
        from appliance.cli.documents.tasks import ExportedTask

        show_json(ExportedTask(folder=str(folder), topic=draft.topic, level=level))
    else:
        show_line(f"{folder}: {draft.topic}, level {level}")
