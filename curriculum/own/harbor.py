"""Makes a row of a Harbor task folder: a terminal problem with its check and its solution.

Invariants: nothing of a folder runs on the host; a row's answer is what its solution left in a terminal of its own, in
a sandbox. A row that only the folder's own test scores has no answer: its score is a foreign reward, never trained on.

Filters that reject checkable problems: duplicates, and questions too close to sealed ones.

`refusal` applies filters in turn. A new one is a function from a problem to a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from common.bounded_models import first_fault
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Task
from curriculum.environments.terminal.environment import TERMINAL
from curriculum.environments.terminal.harbor.folder import read_folder
from curriculum.own.columns import RowError
from curriculum.own.rows import OwnRow
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Check, Match
from curriculum.worlds.world import World
from runtime.errors import MACHINE_ERRORS, InfrastructureError
from runtime.sandbox import Priority, SessionPool

MARK = "task.toml"
SOLUTION = "harbor-solution/solve.sh"
CALLER = "add"
_END = re.compile(r"\[[^\[\]]*\]\Z")


class HarborRow(NamedTuple):
    row: OwnRow
    solution: str
    """Commands, not run yet; empty if there are none, or if no built-in check judges them."""


def folders_in(place: Path) -> list[Path]:
    """Returns the Harbor task folders at a path. Itself if it has a task.toml, else all subfolders if any has one."""
    if not place.is_dir():
        return []
    if (place / MARK).exists():
        return [place]
    inner = [path for path in sorted(place.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    return inner if any((path / MARK).exists() for path in inner) else []


def row_of_folder(folder: Path) -> HarborRow:
    """Reads a Harbor task folder into a row, with its solution. Raises RowError if it cannot be used."""
    if folder.is_symlink():
        raise RowError("it is a link: name the folder itself")
    try:
        task = read_folder(folder)
    except CurriculumError as error:
        raise RowError(f"{error}{': ' if error.hint else ''}{error.hint or ''}") from None
    draft = task.draft
    try:
        row = OwnRow(
            question="\n".join(message.text for message in draft.messages),
            spec=draft.spec,
            origin=folder.resolve().name,
            environment=draft.environment,
            world=draft.world,
            tools=draft.tools,
        )
    except ValidationError as error:
        raise RowError(f"it cannot be a task: {first_fault(error)}") from None
    return HarborRow(row, "" if task.foreign else task.solution)


def solved(pool: SessionPool, one: HarborRow) -> OwnRow:
    """Runs a Harbor task's solution in a sandbox, and returns the row with its answer. Raises RowError without one."""
    if not one.solution:
        return one.row
    files = [*one.row.world["files"], {"path": SOLUTION, "text": one.solution, "mode": "755"}]
    try:
        setup = {**one.row.world, "files": files}
        with World.open(pool, TERMINAL, setup, caller=CALLER, priority=Priority.JOB) as world:
            said = world.call("run_command", {"command": f"bash {SOLUTION}"}).text
            answer = world.submission()
    except CurriculumError as error:
        raise RowError(f"its solution cannot run here: {error}") from None
    except MACHINE_ERRORS:
        raise
    except InfrastructureError as error:
        raise RowError(f"its solution failed to run: {error}") from None
    end = _END.search(said)
    if answer is None or end is None or end.group() != "[exit code 0]":
        raise RowError(f"its solution does not complete: {end.group() if end else 'it ended the terminal'}")
    return one.row.model_copy(update={"answer": answer})


def untouched(row: OwnRow) -> str:
    """Returns the submission of an agent that changes nothing in the row's terminal."""
    there = {one["path"]: {"text": one["text"], "mode": one["mode"]} for one in row.world["files"]}
    return json.dumps({path: there[path] for path in row.world["declared"] if path in there})


Door = Callable[[OwnRow], str]
"""Returns the reason why a problem is rejected; empty if accepted."""


def not_there(known: Collection[str]) -> Door:
    """Returns a filter that rejects a row whose question key is in `known` at call time. The caller adds keys of
    accepted rows."""

    def door(row: OwnRow) -> str:
        return "its question exists already" if row.key in known else ""

    return door


def not_sealed(sealed: Iterable[Task], beside: Iterable[str] = ()) -> Door:
    """Returns a filter that rejects questions equal or close to a sealed task's (`curriculum.separation.rules`).
    `beside` are the owner's other questions, from which forms are detected."""
    kept = SeparationIndex(sealed, beside)

    def door(row: OwnRow) -> str:
        match = kept.met_by_text(row.question, row.key)
        if match is not None:
            return _too_near(match)
        held = (kept.met_by_result(text, row.question) for text in row.texts)
        match = next(filter(None, held), None)
        return "" if match is None else f"one of its files contains a sealed question: {match.check.value}"

    return door


def _too_near(match: Match) -> str:
    """Returns the reason for rejecting a question that matches a sealed one. It differs for the same question and a
    close one."""
    if match.check in (Check.KEY, Check.EXACT):
        return "its question is sealed: models are evaluated on it"
    return f"too close to a sealed question that models are evaluated on ({match.check.value})"


def refusal(row: OwnRow, doors: Iterable[Door]) -> str:
    """Returns the reason of the first filter that rejects the row; empty if all accept it."""
    return next(filter(None, (door(row) for door in doors)), "")
