"""A task in a person's hands: Python in a sandbox, the tools of its world, an answer and its verdict.

Invariants: typed code runs where the model's code would run, and tool calls pass the same checks as a model's. The
task's own check judges the answer and is not shown before.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from appliance.cli.curriculum.view import FILE_LINES
from appliance.cli.sandbox.repl_commands import ReplCommands, help_lines
from appliance.cli.shell.inputs import text_of
from appliance.cli.show.printing import show_line
from appliance.errors import UsageError
from appliance.text.printable import printable
from runtime.errors import BadRequestError
from verifiers.contract.kinds import AnswerForm

if TYPE_CHECKING:
    from appliance.cli.sandbox.repl_session import ReplSession
    from curriculum.contract.task import Task
    from curriculum.worlds.world import World

Say = Callable[[str], None]
Judge = Callable[[str], bool]
"""Shows the verdict on an answer; returns True if it passed."""
PYTHON = "python"
EDITORS = ("VISUAL", "EDITOR")
HELP = """\
  :answer TEXT          give the answer
  :file FILE            give a file's content as the answer
  :edit                 write the answer in $EDITOR
  :done                 submit the state of the world, if that is the answer
  :tools                list the tools of this task's world with their arguments
  :tool NAME ARGUMENTS  call one: key=value ..., or one JSON object
  :show FILE            show a whole file of the task
  :task                 show the question again
  :quit                 leave; so does Ctrl-D
"""


class TryCommands:
    """Commands that a person types to work on one task, for `appliance.cli.sandbox.shell.Shell`."""

    def __init__(
        self,
        task: Task,
        python: ReplCommands | None,
        world: World | None,
        judge: Judge,
        ask: Callable[[], None],
        say: Say,
    ) -> None:
        """Sets up the commands for one task. `python` is None if the task offers no Python; `ask` shows the
        question."""
        self.task, self.world, self.judge = task, world, judge
        self._python, self._ask, self._say = python, ask, say
        self.passed: bool | None = None
        """Result of the newest answer; None before the first."""

    # what the shell asks

    @property
    def now(self) -> ReplSession:
        if self._python is None:
            raise BadRequestError("this task has no Python", hint="List the commands with `:help`.")
        return self._python.now

    @property
    def number(self) -> int:
        return self._python.number if self._python is not None else 0

    @property
    def several(self) -> bool:
        return self._python is not None and self._python.several

    def do(self, line: str) -> bool:
        """Runs a typed command; returns False once an answer passed or the person left. Raises SandboxError,
        OSError."""
        name, _, rest = line.removeprefix(":").strip().partition(" ")
        rest = rest.strip()
        known: dict[str, Callable[[], bool | None]] = {
            "answer": lambda: self._answer(rest),
            "file": lambda: self._answer(_content(rest)),
            "edit": lambda: self._answer(self._edited()),
            "done": self._submit,
            "tools": self._tools,
            "tool": lambda: self._call(rest),
            "show": lambda: self._show(rest),
            "task": self._ask,
            "help": self._help,
        }
        if name in known:
            return known[name]() is not True
        if self._python is not None:
            return self._python.do(line)
        if name in ("quit", "q", "exit"):
            return False
        raise BadRequestError(f"unknown command `:{name}`", hint="List the commands with `:help`.")

    # answers

    def _answer(self, text: str) -> bool:
        """Judges the person's answer to the task; returns True if it passed. Raises BadRequestError for an empty
        one."""
        if self.task.form is AnswerForm.WORLD:
            raise BadRequestError("the answer is the state of the world", hint="Submit it with `:done`.")
        if not text:
            raise BadRequestError("the answer is empty", hint="Use `:answer TEXT`, `:file FILE`, or `:edit`.")
        self.passed = self.judge(text)
        return self.passed

    def _submit(self) -> bool:
        if self.world is None or self.task.form is not AnswerForm.WORLD:
            raise BadRequestError("the answer of this task is a text", hint="Give it with `:answer TEXT`.")
        submission = self.world.submission()
        if submission is None:
            raise BadRequestError("the state of the world is too long to be submitted")
        self.passed = self.judge(submission)
        return self.passed

    def _edited(self) -> str:
        editor = next(filter(None, map(os.environ.get, EDITORS)), "")
        if not editor:
            raise BadRequestError("no editor is set", hint="Set EDITOR, or use `:file FILE`.")
        with tempfile.TemporaryDirectory(prefix="assay-try-") as folder:
            file = Path(folder, "answer.txt")
            file.touch(mode=0o600)
            try:
                ended = subprocess.run([*shlex.split(editor), str(file)], check=False)
            except (OSError, ValueError) as error:
                raise BadRequestError(f"{editor} cannot be started: {error}", hint="Set EDITOR to another.") from error
            if ended.returncode:
                raise BadRequestError(f"{editor} ended with {ended.returncode}", hint="Nothing was given as an answer.")
            return _content(str(file))

    # tools and files

    def _tools(self) -> None:
        if self._python is not None:
            self._say("  python: type it at the prompt")
        for schema in self._schemas():
            takes = ", ".join(schema.parameters.get("properties", {})) or "nothing"
            self._say(f"  {schema.name}: {schema.description} Takes {takes}.")
        if self._python is None and not self._schemas():
            self._say("  none")

    def _schemas(self) -> list[Any]:
        known = self.world.tools if self.world is not None else ()
        return [schema for schema in known if schema.name in self.task.tools]

    def _call(self, text: str) -> None:
        name, _, given = text.partition(" ")
        if self.world is None or name not in [schema.name for schema in self._schemas()]:
            raise BadRequestError(f"unknown tool {name!r}", hint="List the tools with `:tools`.")
        reply = self.world.call(name, arguments_of(given.strip()))
        self._say(reply.text if not reply.failed else f"refused: {reply.text}")

    def _show(self, name: str) -> None:
        if name not in self.task.files:
            listed = ", ".join(map(printable, self.task.files)) or "none"
            raise BadRequestError(f"the task has no file {name!r}", hint=f"It has: {listed}.")
        self._say(self.task.files[name])

    def _help(self) -> None:
        self._say(help_lines(HELP))
        if self._python is not None:
            show_line("Anything else is Python. Commands of the sandbox:")
            self._python.do(":help")


def arguments_of(text: str) -> dict[str, Any]:
    """Parses tool arguments that a person typed: one JSON object, or `key=value` with JSON values or plain text. Raises
    BadRequestError."""
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadRequestError(f"invalid JSON: {error}", hint='Write {"key": "value"}, or key=value.') from error
        assert isinstance(found, dict)
        return found
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise BadRequestError(f"that cannot be read: {error}", hint="Close the quotation marks.") from error
    arguments: dict[str, Any] = {}
    for word in words:
        key, found_sign, value = word.partition("=")
        if not found_sign or not key:
            raise BadRequestError(f"invalid argument {word!r}", hint="Write key=value, or one JSON object.")
        try:
            arguments[key] = json.loads(value)
        except (ValueError, RecursionError):
            arguments[key] = value
    return arguments


def _content(name: str) -> str:
    try:
        return text_of(name, ":file").strip("\n")
    except UsageError as error:
        raise BadRequestError(error.message, hint=error.hint) from error


def opening(task: Task) -> list[str]:
    """Returns the instructions below a task's question that tell a person how to work on it."""
    ways = {AnswerForm.BOXED: "`:answer TEXT` (without the box)", AnswerForm.WORLD: "`:done`"}
    answer = ways.get(task.form, "`:edit` or `:file FILE` (without a fence)")
    shown = [f"Give the answer with {answer}; `:help` lists the commands, Ctrl-D leaves."]
    if PYTHON in task.tools:
        shown.append(
            "Anything else is Python in a sandbox" + (", with the files in its folder." if task.files else ".")
        )
    if any(text.count("\n") >= FILE_LINES for text in task.files.values()):
        shown.append("`:show FILE` shows a file whole.")
    if others := [tool for tool in task.tools if tool != PYTHON]:
        shown.append(f"Tools: {', '.join(others)}; `:tools` lists their arguments.")
    return shown
