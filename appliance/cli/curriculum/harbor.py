"""`assay curriculum harbor` and `export`: inspects and writes Harbor task folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from appliance.cli.show.printing import Output, prints, prints_without_data
from appliance.text.printable import printable
from runtime.model import FrozenModel


class HarborFolder(FrozenModel):
    name: str
    about: str
    """Version, description, keywords and authors, as its task.toml has them."""
    files: int
    judged_by: tuple[str, ...]
    foreign: bool
    """True if its score is a foreign reward and not a verdict."""
    solution: bool
    installs: tuple[str, ...]
    """Packages that are fetched when it is added."""
    runs: tuple[str, ...]
    """Commands of its image that run in a sandbox when it is added."""
    lost: tuple[str, ...]
    """Parts of its description that cannot be reproduced."""
    notes: tuple[str, ...]


class ExportedTask(FrozenModel):
    folder: str
    topic: str
    level: int


@prints_without_data
def harbor(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A Harbor task folder, with its task.toml.")],
    without_network: Annotated[
        bool, typer.Option("--without-network", help="Also read one that asks for a network, without one.")
    ] = False,
) -> Output[HarborFolder]:
    """Show what a Harbor task folder becomes here, and what judges it; or why it is unusable (exit code 2).

    Example: assay curriculum harbor tasks/repair-nginx
    """
    from curriculum.environments.terminal.harbor.folder import read_folder

    task = read_folder(folder, without_network=without_network)
    found = HarborFolder(
        name=task.name,
        about=task.about,
        files=len(task.draft.world.get("files", ())),
        judged_by=tuple(task.draft.world["declared"]),
        foreign=task.foreign,
        solution=bool(task.solution),
        installs=(*task.recipe.pip, *task.recipe.apt),
        runs=task.recipe.steps,
        lost=task.lost,
        notes=tuple(task.notes),
    )
    lines = [
        f"{found.name}: {found.files} files, judged by {', '.join(found.judged_by)}",
        *([printable(found.about)] if found.about else []),
        f"its score: {'a foreign reward, not a verdict' if found.foreign else 'a verdict of the check `files`'}",
        f"its solution: {'present' if found.solution else 'none'}",
        *([f"installed when it is added: {', '.join(found.installs)}"] if found.installs else []),
        *(f"run when it is added: {' '.join(step.split())[:200]}" for step in found.runs),
        *(f"cannot be reproduced: {one}" for one in found.lost),
        *(["so it is accepted only with a solution that does without"] if found.lost else []),
        *(f"note: {note}" for note in found.notes),
    ]
    return Output(found, lines)


@prints
def export(
    taskset: Annotated[str, typer.Argument(metavar="NAME", help="A taskset with terminal tasks.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    level: Annotated[int, typer.Option("--level", min=0, help="Level of the task.")] = 0,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed of the task, not a sealed one (default: the first).")
    ] = None,
) -> Output[ExportedTask]:
    """Write a terminal task as a Harbor task folder, with its check and its solution.

    Example: assay curriculum export terminal_repairs task --level 2
    """
    from appliance.cli.curriculum.catalog import catalog_of, levels_of, viewable
    from curriculum.contract.errors import ExhaustedError
    from curriculum.contract.task import Split
    from curriculum.environments.terminal.harbor.export import write
    from curriculum.seeds import seeds
    from curriculum.summary import training_drafts

    catalog = catalog_of()
    levels_of(catalog, taskset, level)
    if seed is not None:
        number, draft = seed, viewable(catalog, taskset, level, seed)
    elif drawn := training_drafts(catalog, taskset, level, 1, seeds(Split.TRAIN)):
        [(number, draft)] = drawn
    else:
        raise ExhaustedError(f"{taskset} has no training task of level {level}", hint="choose another level")
    write(draft, f"{taskset}-{level}-{number}", folder)
    exported = ExportedTask(folder=str(folder), topic=draft.topic, level=level)
    return Output(exported, f"{folder}: {draft.topic}, level {level}")
