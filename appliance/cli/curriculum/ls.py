"""`assay curriculum ls`: the tasksets, one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.options import data_folder
from appliance.cli.show.printing import Output, prints, show_line, show_table
from appliance.errors import UsageError

if TYPE_CHECKING:
    from appliance.cli.curriculum.documents import LearnableTaskset
    from curriculum.taskset_summary import TasksetSummary


@prints
def ls(
    word: Annotated[
        str | None, typer.Argument(help="Only tasksets with a word in name or topics that begins like this.")
    ] = None,
    domain: Annotated[str | None, typer.Option("--domain", help="Only this domain.")] = None,
    check: Annotated[str | None, typer.Option("--check", help="Only this kind of check.")] = None,
    ready: Annotated[bool, typer.Option("--ready", help="Only tasksets whose answers can be checked here.")] = False,
    of_model: Annotated[
        str,
        typer.Option(
            "--for", metavar="MODEL", help="First what this model can learn from, as `curriculum measure` found."
        ),
    ] = "",
) -> Output[list[TasksetSummary] | Annotated[list[LearnableTaskset], "with --for"]]:
    """List the tasksets: subject, check, and whether answers can be checked here.

    Example: assay curriculum ls puzzle --ready
    """
    begins = None if word is None else re.compile(rf"(?<![^\W_]){re.escape(word)}", re.IGNORECASE)

    def wanted(one: TasksetSummary) -> bool:
        return (
            (begins is None or any(begins.search(text) for text in (one.name, *one.topics)))
            and domain in (None, one.domain)
            and (check is None or check in one.checks)
            and not (ready and one.missing)
        )

    found = [one for one in _summaries(data_folder()) if wanted(one)]
    if not of_model:
        return Output(found, lambda: _show(found))
    learnable = _learnable(found, of_model)
    return Output(learnable, lambda: _show_learnable(learnable))


def _learnable(found: list[TasksetSummary], model: str) -> list[LearnableTaskset]:
    """Adds what was measured of a model, and sorts by what it can learn from. Raises UsageError if nothing was
    measured."""
    from appliance.cli.curriculum.documents import LearnableTaskset
    from appliance.evaluation.measured import name_key, seen_in, weights_key
    from appliance.models.export_model import published
    from curriculum.difficulty import Difficulty

    data = data_folder()
    seen = seen_in(data, name_key(model)) or seen_in(data, weights_key(published(model, data)))
    if not seen:
        raise UsageError(f"nothing was measured of {model}", f"run `assay curriculum measure --model {model}`")
    known = Difficulty().after(seen)
    rows = []
    for one in found:
        places = [each for each in seen if each.place.taskset == one.name]
        judged = sum(each.judged for each in places)
        promises = [known.promise(each.place, one.levels) for each in places]
        rows.append(
            LearnableTaskset(
                **one.model_dump(),
                attempts=judged,
                passes=sum(each.passed for each in places) / judged if judged else None,
                learnable=sum(promises) / len(promises) if promises else None,
            )
        )
    return sorted(rows, key=lambda one: (one.learnable is None, -(one.learnable or 0.0), one.name))


def _show_learnable(found: list[LearnableTaskset]) -> None:
    def percent(share: float | None) -> str:
        return "-" if share is None else f"{100 * share:.0f} %"

    show_table(
        ("taskset", "learnable", "passes", "attempts", "levels", "domain", "here"),
        [
            (
                *(one.name, percent(one.learnable), percent(one.passes), one.attempts or "-"),
                *(one.levels, one.domain, "no" if one.missing else "yes"),
            )
            for one in found
        ],
        empty="no taskset matches: list all with `assay curriculum ls`",
    )
    show_line("learnable: mean probability, over measured topics and levels, that 20 to 80 % of attempts pass")


def _show(found: list[TasksetSummary]) -> None:
    show_table(
        ("taskset", "domain", "levels", "check", "answer", "world", "version", "here"),
        [
            (
                *(one.name, one.domain, one.levels, "foreign_reward" if one.foreign else ",".join(one.checks)),
                *(",".join(one.forms), one.environment, one.version, "no" if one.missing else "yes"),
            )
            for one in found
        ],
        narrow={"version": None, "world": None},
        empty="no taskset matches: list all with `assay curriculum ls`",
    )
    if foreign := ", ".join(one.name for one in found if one.foreign):
        show_line(f"never trained on (foreign reward): {foreign}")
    for why in dict.fromkeys(one.missing for one in found if one.missing):
        show_line(f"not here: {', '.join(one.name for one in found if one.missing == why)}: {why}")


def _summaries(data: Path) -> Iterator[TasksetSummary]:
    """Yields shipped summaries of built-in tasksets; loads the owner's, and any without a summary."""
    from appliance.curriculum.own_files import names_in
    from curriculum.names import taskset_names
    from curriculum.taskset_summary import shipped_summaries

    shipped = shipped_summaries()
    try:
        own = names_in(data)
    except PermissionError:
        typer.echo("skipping the owner's tasksets: the data folder belongs to another user", err=True)
        own = []
    for name in [*taskset_names(), *own]:
        yield shipped[name] if name in shipped else _made(data, name)


def _made(data: Path, name: str) -> TasksetSummary:
    from appliance.curriculum.own_tasksets import catalog_in
    from curriculum.summary import summary_of

    return summary_of(catalog_in(data, [name]), name)
