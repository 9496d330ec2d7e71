"""`assay sandbox shell`: interactive Python in a sandbox, at a terminal or from a pipe.

Invariants: code runs only inside; here it is only parsed to find the end of a block. Ctrl-C ends the current call, not
the shell. Output from inside is shown with visible control characters.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Protocol

import typer

from appliance.cli.sandbox.blocks import Blocks, as_typed, shown_value
from appliance.cli.sandbox.options import Backend, SandboxRun, copy_in, for_hours
from appliance.cli.sandbox.repl_commands import ReplCommands
from appliance.cli.sandbox.repl_session import ReplSession
from appliance.cli.sandbox.run import CALLER, Pairs, complain_of, show_output, snapshot_named
from appliance.cli.shell.broker_target import for_code, sessions
from appliance.cli.show.printing import in_data_folder
from appliance.errors import explain
from appliance.text.printable import printable
from runtime.errors import BadRequestError, InfrastructureError, SandboxError
from runtime.sandbox import CallResult, Limits, Priority
from runtime.settings import RuntimeSettings

BANNER = "Python in a sandbox; `:help` lists the commands, Ctrl-C stops the running code, Ctrl-D leaves."


@in_data_folder
def shell(asked: SandboxRun, backend: Backend = None) -> None:
    """Use Python in a sandbox interactively, with snapshots and branches; type `:help` there.

    Example: assay sandbox shell --seconds 30 --memory 512
    """
    pairs, target = asked.pairs(), for_code(backend)
    limits = asked.limits(target, for_hours(target.settings.limits, target.resources))
    converse(target.settings, limits, asked.snapshot, pairs)


def converse(settings: RuntimeSettings, limits: Limits, snapshot: str | None, files: Pairs) -> None:
    """Runs the interactive sandbox shell until the end of input or `:quit`. Raises the runtime's errors if no sandbox
    is available."""
    start = None if snapshot is None else snapshot_named(snapshot)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with sessions(settings.model_copy(update={"limits": limits})) as pool:
        box = pool.sandbox(limits, snapshot=start, caller=CALLER, priority=Priority.JOB)
        commands = ReplCommands(pool, limits, ReplSession(pool, limits, box, _warn), _write)
        with contextlib.closing(commands):
            for host, guest in files:
                copy_in(box, host, guest)
            if at_terminal:
                _write(BANNER)
            Shell(commands, read_line if at_terminal else read_piped, at_terminal=at_terminal).serve()


class ShellCommands(Protocol):
    """Handler of the sandbox shell's lines that begin with a colon, and owner of the Python session."""

    @property
    def now(self) -> ReplSession:
        """The shell's current Python session in a sandbox. Raises BadRequestError without one."""

    @property
    def number(self) -> int:
        """Number of the shell's current sandbox; 0 is the first."""

    @property
    def several(self) -> bool:
        """True if the shell has more than one sandbox."""

    def do(self, line: str) -> bool:
        """Runs a colon command of the shell; returns False to leave the shell. Raises SandboxError and OSError on
        failure."""


class Shell:
    def __init__(self, commands: ShellCommands, read: Callable[[str], str], *, at_terminal: bool) -> None:
        """Creates an interactive shell. `read` takes a prompt and returns a line without its end; raises EOFError."""
        self._commands, self._read, self._at_terminal = commands, read, at_terminal
        self._blocks = Blocks(patient=not at_terminal)

    def serve(self) -> None:
        while True:
            try:
                line = self._read(self._prompt())
                going_on = self._take(line)
            except EOFError:
                if self._at_terminal:
                    typer.echo()
                for block in self._blocks.rest():
                    self._run(block)
                return
            except KeyboardInterrupt:
                if not self._at_terminal:
                    raise
                self._blocks.drop()
                typer.echo()
                continue
            if not going_on:
                return

    def _prompt(self) -> str:
        if self._blocks.open:
            return "... "
        return f"{self._commands.number}>>> " if self._commands.several else ">>> "

    def _take(self, line: str) -> bool:
        if line.startswith(":") and self._blocks.between:
            for block in self._blocks.rest():
                self._run(block)
            return self._command(line)
        for block in self._blocks.feed(line):
            self._run(block)
        return True

    def _command(self, line: str) -> bool:
        try:
            return self._commands.do(line)
        except (SandboxError, OSError) as error:
            _complain(error)
            return True

    def _run(self, block: str) -> None:
        def show(result: CallResult) -> None:
            show_output(result, raw=False)
            sys.stdout.flush()
            complain_of(result.model_copy(update={"traceback": as_typed(result.traceback, block)}))

        try:
            session = self._commands.now
        except BadRequestError as error:
            _complain(error)
            return
        session.run(shown_value(block), show)


def read_line(prompt: str) -> str:
    """Reads a line from the terminal, with editing and history if readline is available."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - importing it is what makes input() edit
    return input(prompt)


def read_piped(_prompt: str) -> str:
    line = sys.stdin.buffer.readline()
    if not line:
        raise EOFError
    return line.decode(errors="replace").rstrip("\r\n")


def _write(text: str) -> None:
    typer.echo(printable(text, lines=True))


def _warn(text: str) -> None:
    typer.echo(f"[{printable(text)}]", err=True)


def _complain(error: Exception) -> None:
    if isinstance(error, InfrastructureError):
        _warn(str(error))
        return
    explained = explain(error)
    typer.echo(f"{printable(explained.message)}", err=True)
    if explained.hint:
        typer.echo(f"  {printable(explained.hint)}", err=True)
