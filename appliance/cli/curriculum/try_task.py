"""`assay curriculum try`: a person works on a task as the model would, and sees the verdict."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from appliance.cli.shell.named import TasksetName
from appliance.cli.show.printing import in_data_folder, show_line
from appliance.errors import ExitCode

if TYPE_CHECKING:
    from appliance.cli.curriculum.try_item import Judge, TryCommands
    from curriculum.contract.task import Task


@in_data_folder
def try_(
    name: TasksetName,
    level: Annotated[int, typer.Option("--level", min=0, help="Difficulty; 0 is the easiest.")] = 0,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="This seed, not a sealed one (default: a new one).")
    ] = None,
    answer: Annotated[str | None, typer.Option("--answer", help="Judge this answer without asking.")] = None,
    file: Annotated[
        str | None, typer.Option("--file", metavar="FILE", help="Judge this file's content; `-` for standard input.")
    ] = None,
) -> None:
    """Work on a task yourself: Python in a sandbox, the task's tools, an answer, the verdict with its evidence.

    Exit code 0 if an answer passed, 1 if none did.

    Example: assay curriculum try tables --level 1
    """
    from random import SystemRandom

    from appliance.agent.answers import final_answer
    from appliance.cli.check.show import show_verdict
    from appliance.cli.check.target import target_for
    from appliance.cli.curriculum.catalog import catalog_of, levels_of, viewable
    from appliance.cli.curriculum.view import show_draft
    from appliance.cli.shell.inputs import text_of
    from appliance.errors import UsageError
    from curriculum.contract.errors import ExhaustedError
    from curriculum.contract.task import Split
    from curriculum.seeds import draw
    from curriculum.summary import training_drafts
    from verifiers.contract.kinds import AnswerForm
    from verifiers.contract.verdict import Outcome
    from verifiers.registry import kind_of

    if answer is not None and file is not None:
        raise UsageError("--answer and --file cannot be combined", "give one of them")
    catalog = catalog_of()
    [at] = levels_of(catalog, name, level)
    if why := catalog.named(name).missing():
        raise UsageError(
            f"answers of {name} cannot be checked here: {why}", "choose another from `assay curriculum ls --ready`"
        )
    if seed is not None:
        number, draft = seed, viewable(catalog, name, at, seed)
    else:
        rng = SystemRandom()
        drawn = training_drafts(catalog, name, at, 1, iter(lambda: draw(Split.TRAIN, rng), -1))
        if not drawn:
            raise ExhaustedError(f"{name} has no training task of level {at}", hint="try another level")
        [(number, draft)] = drawn
    task = catalog.task_of(draft, name, at, number)
    given = text_of(file, "--file").strip("\n") if file is not None else answer
    if given is not None and task.form is AnswerForm.WORLD:
        raise UsageError(f"the answer of {name} is the state of its world", "omit --answer and --file")
    with target_for((kind_of(task.spec),)).checker(jobs=1) as checker:

        def judge(text: str) -> bool:
            marked = final_answer(text, task.form).answer  # with its box or its fence, as the question asks for it
            verdict = checker.check(task.spec, text if marked is None else marked)
            show_verdict(verdict, evidence=True)
            return verdict.outcome is Outcome.PASS

        def ask() -> None:
            show_line(f"{name}, level {at}, seed {number}, {draft.topic}")
            show_draft(draft)

        if given is not None:
            passed = judge(given)
        else:
            ask()
            passed = _work(task, judge, ask)
    raise typer.Exit(ExitCode.OK if passed else ExitCode.FAILED_VERDICT)


def _work(task: Task, judge: Judge, ask: Callable[[], None]) -> bool:
    """Takes a person's commands on a task until an answer passes or the person leaves; returns True if one passed."""
    from appliance.cli.curriculum.try_item import opening
    from appliance.cli.sandbox.shell import Shell, read_line, read_piped

    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with _commands(task, judge, ask) as commands:
        if at_terminal:
            for line in opening(task):
                show_line(line)
        Shell(commands, read_line if at_terminal else read_piped, at_terminal=at_terminal).serve()
        if commands.passed is None:
            show_line(f"no answer given; repeat this task with --level {task.level} --seed {task.seed}")
        return commands.passed is True


@contextlib.contextmanager
def _commands(task: Task, judge: Judge, ask: Callable[[], None]) -> Iterator[TryCommands]:
    """Opens the sandboxes that a person's work on the task needs, configured as for the model. Yields the commands that
    use them."""
    from appliance.cli.curriculum.try_item import PYTHON, TryCommands
    from appliance.cli.sandbox.repl_commands import ReplCommands
    from appliance.cli.sandbox.repl_session import ReplSession
    from appliance.cli.sandbox.run import CALLER
    from appliance.cli.shell.broker_target import for_code, sessions
    from appliance.text.printable import printable
    from curriculum.environments import ENVIRONMENTS
    from curriculum.worlds.world import World
    from runtime.sandbox import Priority

    def say(text: str) -> None:
        typer.echo(printable(text, lines=True))

    def warn(text: str) -> None:
        typer.echo(f"[{printable(text)}]", err=True)

    environment = ENVIRONMENTS.get(task.environment)
    with contextlib.ExitStack() as opened:
        world, python = None, None
        if environment is not None or PYTHON in task.tools:
            settings = for_code(None).settings
            pool = opened.enter_context(sessions(settings))
            if environment is not None:
                world = World.open(pool, environment, task.world, caller=CALLER, priority=Priority.JOB)
                opened.callback(world.close)
                world.begun.result()
            if PYTHON in task.tools:
                box = pool.sandbox(settings.limits, caller=CALLER, priority=Priority.JOB)
                python = ReplCommands(pool, settings.limits, ReplSession(pool, settings.limits, box, warn), say)
                opened.callback(python.close)
                for name, text in task.files.items():
                    box.write(f"/work/{name}", text.encode())
        yield TryCommands(task, python, world, judge, ask, say)
