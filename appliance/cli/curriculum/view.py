"""Prints a task for a person: question, files, tools, answer format.

Invariants: control characters are made visible; the answer is shown only on request.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import typer

from appliance.cli.shell.live_line import columns_of
from appliance.cli.shell.wrapping import wrapped
from appliance.text.printable import printable
from curriculum.contract.taskset import TaskDraft
from verifiers.contract.kinds import AnswerForm

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
        typer.echo(f"  --- {printable(name)}, {len(lines)} lines, {len(text.encode())} bytes")
        typer.echo(indented("\n".join(lines[:FILE_LINES]), "  | "))
        if len(lines) > FILE_LINES:
            typer.echo(f"  | … {len(lines) - FILE_LINES} more lines")


def indented(text: str, before: str = "  ") -> str:
    return "\n".join(f"{before}{line}" for line in printable(text, lines=True).split("\n"))
