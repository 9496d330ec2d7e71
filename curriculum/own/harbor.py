"""Makes a row of a Harbor task folder: a terminal problem with its check and its solution.

Invariants: nothing of a folder runs on the host; a row's answer is what its solution left in a terminal of its own, in
a sandbox. A row that only the folder's own test scores has no answer: its score is a foreign reward, never trained on.

Filters that reject checkable problems: duplicates, and questions too close to sealed ones.

`refusal` applies filters in turn. A new one is a function from a problem to a reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from common.bounded_models import first_fault
from curriculum.contract.errors import CurriculumError
from curriculum.contract.task import Task
from curriculum.environments import ENVIRONMENTS
from curriculum.environments.terminal.environment import CONTAINER
from curriculum.environments.terminal.harbor.folder import HarborRecipe, read_folder
from curriculum.environments.terminal.harbor.places import SOLUTION
from curriculum.own.columns import RowError
from curriculum.own.containers import install_container
from curriculum.own.rows import OwnRow
from curriculum.separation.index import SeparationIndex
from curriculum.separation.rules import Check, Match
from curriculum.worlds.world import World
from runtime.errors import MACHINE_ERRORS, InfrastructureError, SandboxError
from runtime.sandbox import Priority, SessionPool
from verifiers.contract.text import escaped
from verifiers.files.spec import FilesSpec, PlacedFile
from verifiers.files.verifier import FilesVerifier

MARK = "task.toml"
CALLER = "add"


class HarborRow(NamedTuple):
    row: OwnRow
    solution: tuple[PlacedFile, ...]
    """Files of the reference solution, beginning with its script, not run yet; empty if there is none."""
    recipe: HarborRecipe = HarborRecipe()
    lost: tuple[str, ...] = ()
    """Parts of the folder's description that cannot be reproduced."""

    @property
    def is_ready(self) -> bool:
        """True if nothing has to be installed or run before the row can be used."""
        return not self.solution and not self.lost and self.recipe == HarborRecipe()


def folders_in(place: Path) -> list[Path]:
    """Returns the Harbor task folders at a path. Itself if it has a task.toml, else all subfolders if any has one."""
    if not place.is_dir():
        return []
    if (place / MARK).exists():
        return [place]
    inner = [path for path in sorted(place.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    return inner if any((path / MARK).exists() for path in inner) else []


def row_of_folder(folder: Path, *, without_network: bool = False) -> HarborRow:
    """Reads a Harbor task folder into a row, with its solution and its recipe. Raises RowError if it cannot be used."""
    if folder.is_symlink():
        raise RowError("it is a link: name the folder itself")
    try:
        task = read_folder(folder, without_network=without_network)
    except CurriculumError as error:
        raise RowError(f"{error}{': ' if error.hint else ''}{error.hint or ''}") from None
    if task.lost and not task.solution:
        raise RowError(unproved(task.lost))
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
    return HarborRow(row, task.solution, task.recipe, task.lost)


def unproved(lost: Collection[str]) -> str:
    """Returns the reason for refusing a folder whose description cannot be reproduced and that has no solution."""
    return f"it has no solution that would show that it can be solved without: {'; '.join(lost)[:400]}"


def solved(pool: SessionPool, one: HarborRow) -> OwnRow:
    """Installs what a Harbor task needs, runs its preparation and its solution in sandboxes, and returns the row.

    With a check of ours, the row's answer is what the solution left; with a foreign test alone, the solution must have
    the full score. Raises RowError, with the output, for a solution that fails; and for a folder of which something
    cannot be reproduced, without a solution that does without it.
    """
    try:
        built = _prepared(pool, _installed(one))
        if not one.solution:
            if built.lost:
                raise RowError(unproved(built.lost))
            return built.row
        return _with_answer(pool, built)
    except CurriculumError as error:
        if isinstance(error, RowError):
            raise
        raise RowError(f"its solution cannot run here: {error}") from None
    except MACHINE_ERRORS:
        raise
    except InfrastructureError as error:
        raise RowError(f"its solution failed to run: {error}") from None


def _installed(one: HarborRow) -> HarborRow:
    """Installs a Harbor task's packages for sandboxes, once for all tasks with the same ones, and names the set in the
    row. What cannot be had is added to `lost`."""
    if not one.recipe.installs:
        return one
    try:
        digest, lost = install_container(one.recipe.pip, one.recipe.apt)
    except SandboxError as error:
        raise RowError(f"its packages cannot be installed: {error}") from None
    world = {**one.row.world, "packages": digest}
    spec = one.row.spec
    assert isinstance(spec, FilesSpec)
    if spec.foreign is not None:
        spec = spec.model_copy(update={"foreign": spec.foreign.model_copy(update={"packages": digest})})
    row = one.row.model_copy(update={"environment": CONTAINER.name, "world": world, "spec": spec})
    return one._replace(row=row, lost=tuple(dict.fromkeys((*one.lost, *lost))))


def _prepared(pool: SessionPool, one: HarborRow) -> HarborRow:
    """Runs a Harbor image's own commands and its health check in a sandbox; the files that they leave are the row's."""
    steps, health = one.recipe.steps, one.recipe.healthcheck
    if not steps and not health:
        return one
    scripts = [PlacedFile(path=f"{SOLUTION}/step-{at}.sh", text=text) for at, text in enumerate((*steps, health))]
    lost = list(one.lost)
    with _opened(pool, one.row, scripts, gathers=True) as world:
        for at, step in enumerate(steps):
            said = world.call("run_command", {"command": f"bash {SOLUTION}/step-{at}.sh"}).text
            if not said.endswith("[exit code 0]"):
                lost.append(f"RUN {' '.join(step.split())[:60]} ({_end(said)})")
        submission = world.submission()
        if health:
            said = world.call("run_command", {"command": f"bash {SOLUTION}/step-{len(steps)}.sh"}).text
            if not said.endswith("[exit code 0]"):
                raise RowError(f"its health check fails: {_end(said)}")
    if submission is None:
        raise RowError("its Dockerfile's commands leave more than a terminal can begin with")
    row = _with_files(one.row, submission)
    row = row.model_copy(update={"world": {**row.world, "healthcheck": health}}) if health else row
    return one._replace(row=row, lost=tuple(lost))


def _with_files(row: OwnRow, submission: str) -> OwnRow:
    """Returns the row with the new, changed and removed files of a submission in its world, and in its test's."""
    files = {one["path"]: one for one in row.world.get("files", ())}
    for path, one in json.loads(submission).items():
        files.pop(path, None)
        if "text" in one:
            files[path] = {"path": path, "text": one["text"], "mode": one["mode"]}
    spec = row.spec
    assert isinstance(spec, FilesSpec)
    if spec.foreign is not None:
        placed = tuple(PlacedFile.model_validate(one) for one in files.values())
        spec = spec.model_copy(update={"foreign": spec.foreign.model_copy(update={"world": placed})})
    return row.model_copy(update={"world": {**row.world, "files": list(files.values())}, "spec": spec})


def _with_answer(pool: SessionPool, one: HarborRow) -> OwnRow:
    """Runs a Harbor task's solution in a sandbox and returns the row with its answer, if a check of ours is to judge
    it. Raises RowError for a solution that does not complete, or has not the full score of a foreign test."""
    with _opened(pool, one.row, one.solution) as world:
        said = world.call("run_command", {"command": f"bash {one.solution[0].path}"}).text
        answer = world.submission()
    if not said.endswith("[exit code 0]"):
        raise RowError(f"its solution does not complete: {_end(said)}{_without(one)}")
    if answer is None:
        raise RowError("its solution leaves more than can be submitted: about 40,000 characters")
    spec = one.row.spec
    assert isinstance(spec, FilesSpec)
    if not spec.only_foreign:
        return one.row.model_copy(update={"answer": answer})
    verdict = FilesVerifier(pool, priority=Priority.JOB).verify(spec, answer)
    if verdict.foreign_reward != 1:
        printed = str(verdict.evidence.get("printed", ""))[-300:]
        score = "no score" if verdict.foreign_reward is None else f"a score of {verdict.foreign_reward:g}"
        raise RowError(f"its solution has {score} here: {_end(said)}; its test: {printed}{_without(one)}")
    return one.row


def _opened(pool: SessionPool, row: OwnRow, more: Iterable[PlacedFile], *, gathers: bool = False) -> World:
    files = [*row.world.get("files", ()), *(file.model_dump(mode="json") for file in more)]
    setup = {**row.world, "files": files} | ({"gathers": True} if gathers else {})
    environment = ENVIRONMENTS[row.environment]
    world = World.open(pool, environment, setup, caller=CALLER, priority=Priority.JOB)
    world.begun.result()
    return world


def _end(said: str) -> str:
    """Returns how a command ended, after the end of what it printed, in one line."""
    return escaped(" ".join(said.split())[-300:])


def _without(one: HarborRow) -> str:
    return f"; it ran without: {'; '.join(one.lost)[:300]}" if one.lost else ""


def untouched(row: OwnRow) -> str:
    """Returns the submission of an agent that changes nothing in the row's terminal."""
    if row.world.get("changed"):
        return "{}"
    there = {one["path"]: {"text": one["text"], "mode": one.get("mode", "644")} for one in row.world.get("files", ())}
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
