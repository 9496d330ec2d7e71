"""`assay curriculum show` and `sample`: tasksets and tasks as a person reads them.

Invariants: control characters are made visible; only tasks that may be seen are shown, and answers only on request.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.live_line import columns_of
from appliance.cli.shell.named import TasksetName
from appliance.cli.shell.options import data_folder
from appliance.cli.shell.wrapping import wrapped
from appliance.cli.show.printing import Output, for_people, prints, show_fields, show_line
from appliance.text.printable import printable
from common.counting import counted
from verifiers.contract.kinds import AnswerForm

if TYPE_CHECKING:
    from appliance.cli.curriculum.card import TasksetCard
    from appliance.cli.curriculum.documents import AnsweredTask, SampledTask
    from curriculum.catalog import Catalog
    from curriculum.contract.taskset import TaskDraft


FILE_LINES = 12
"""Lines of a file shown at first."""
ANSWER_FORMS = {
    AnswerForm.BOXED: r"in \boxed{}",
    AnswerForm.BLOCK: "one fenced code block",
    AnswerForm.WHOLE: "the whole last turn",
    AnswerForm.WORLD: "the final state of the world",
}


def show_draft(draft: TaskDraft, *, answers: bool = False) -> None:
    """Prints one task: question, files, and with `answers` the answer."""
    for message in draft.messages:
        typer.echo(wrapped(indented(message.text), columns_of(sys.stdout)))
    show_files(draft.files)
    if answers:
        typer.echo(f"  answer ({draft.spec.kind}):")
        typer.echo(indented(draft.answer, "    "))


def show_files(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        lines = text.splitlines()
        typer.echo(f"  --- {printable(name)}, {counted(len(lines), 'line')}, {counted(len(text.encode()), 'byte')}")
        typer.echo(indented("\n".join(lines[:FILE_LINES]), "  | "))
        if len(lines) > FILE_LINES:
            typer.echo(f"  | … {len(lines) - FILE_LINES} more lines")


def indented(text: str, before: str = "  ") -> str:
    return "\n".join(f"{before}{line}" for line in printable(text, lines=True).split("\n"))


@prints
def show(
    name: TasksetName,
    answers: Annotated[bool, typer.Option("--answers", help="Show the answers of the examples, too.")] = False,
) -> Output[TasksetCard]:
    """Show one taskset: topics, levels, tools, budget, how difficult it is, and a task of each level; for your own with
    its answer.

    Difficulty is shown by topic and level: steps of the reference; characters of the shortest known solution; shares of
    questions that the most common answer, one line of Python or SymPy, or a script without insight solves in one call;
    and the pass rate of each model that `assay curriculum measure` asked. "-" is not measured.

    Example: assay curriculum show tables --answers
    """
    from appliance.cli.curriculum.card import card_of
    from appliance.cli.curriculum.catalog import catalog_of
    from curriculum.names import OWN
    from curriculum.summary import summary_of

    catalog = catalog_of()
    one = card_of(summary_of(catalog, name), data_folder())
    return Output(one, lambda: _show_taskset(one, catalog, answers or one.domain == OWN))


def _show_taskset(one: TasksetCard, catalog: Catalog, answers: bool) -> None:
    from appliance.cli.curriculum.card import show_card
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
    show_card(one)
    for level in range(one.levels):
        for draft in examples(catalog, one.name, level, 1):
            typer.echo(f"\nlevel {level}, {draft.topic}")
            show_draft(draft, answers=answers)


def _budget(turns: int | None, tokens: int | None) -> str:
    own = [counted(turns, "tool call") if turns is not None else "", f"{tokens} tokens" if tokens is not None else ""]
    return ", ".join(filter(None, own)) or "as recipe.agent says"


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
        return Output([], lambda: _show_tasks(name, found, answers))
    from appliance.cli.curriculum.documents import AnsweredTask, SampledTask

    shape = AnsweredTask if answers else SampledTask
    tasks = []
    for at, number, draft in found:
        task = catalog.task_of(draft, name, at, number).record() | {"answer": draft.answer, "topic": draft.topic}
        tasks.append(shape(**{field: value for field, value in task.items() if field in shape.model_fields}))
    return Output(tasks)


def _show_tasks(name: str, found: list[tuple[int, int, TaskDraft]], answers: bool) -> None:
    from curriculum.seeds import split_of

    for at, number, draft in found:
        show_line(f"{name}, level {at}, seed {number} ({split_of(number).value}), {draft.topic}")
        show_draft(draft, answers=answers)
        typer.echo()
    if not found:
        show_line(f"{name}: no such task in that split")
