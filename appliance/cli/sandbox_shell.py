"""`assay sandbox shell`: Python in a sandbox, line by line, at a terminal or from a pipe.

What always holds: the code runs inside and nowhere else, here it is only looked at to see whether a block has ended;
Ctrl-C ends the call under way and not the shell; what comes from inside is shown with control characters made visible.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

import typer

from appliance.cli.sandbox_blocks import Blocks, as_typed, shown_value
from appliance.cli.sandbox_held import Held
from appliance.cli.sandbox_options import copy_in
from appliance.cli.sandbox_place import sessions
from appliance.cli.sandbox_run import CALLER, Pairs, complain_of, show_output, snapshot_named
from appliance.cli.sandbox_words import Words
from appliance.client.printable import printable
from appliance.errors import ExitCode, explain
from runtime.errors import InfrastructureError, SandboxError
from runtime.sandbox import CallResult, Limits, Priority
from runtime.settings import RuntimeSettings

BANNER = "Python in a sandbox; `:help` lists the words, Ctrl-C stops what runs, Ctrl-D ends."


def converse(settings: RuntimeSettings, limits: Limits, *, snapshot: str | None, files: Pairs) -> ExitCode:
    """Until the end of the input, or `:quit`. Raises what the runtime raises when there is no sandbox to be had."""
    start = None if snapshot is None else snapshot_named(snapshot)
    by_hand = sys.stdin.isatty() and sys.stdout.isatty()
    with sessions(settings.model_copy(update={"limits": limits})) as pool:
        box = pool.sandbox(limits, snapshot=start, caller=CALLER, priority=Priority.JOB)
        words = Words(pool, limits, Held(pool, limits, box, _note), _say)
        with contextlib.closing(words):
            for host, guest in files:
                copy_in(box, host, guest)
            if by_hand:
                _say(BANNER)
            Shell(words, read_line if by_hand else read_piped, by_hand=by_hand).serve()
    return ExitCode.OK


class Shell:
    def __init__(self, words: Words, read: Callable[[str], str], *, by_hand: bool) -> None:
        """`read` takes a prompt, gives a line without its end, and raises EOFError."""
        self._words, self._read, self._by_hand = words, read, by_hand
        self._blocks = Blocks(patient=not by_hand)

    def serve(self) -> None:
        while True:
            try:
                line = self._read(self._prompt())
                going_on = self._take(line)
            except EOFError:
                if self._by_hand:
                    typer.echo()
                for block in self._blocks.rest():
                    self._run(block)
                return
            except KeyboardInterrupt:
                if not self._by_hand:
                    raise
                self._blocks.drop()
                typer.echo()
                continue
            if not going_on:
                return

    def _prompt(self) -> str:
        if self._blocks.open:
            return "... "
        return f"{self._words.at}>>> " if len(self._words.held) > 1 else ">>> "

    def _take(self, line: str) -> bool:
        if line.startswith(":") and self._blocks.between:
            for block in self._blocks.rest():
                self._run(block)
            return self._word(line)
        for block in self._blocks.feed(line):
            self._run(block)
        return True

    def _word(self, line: str) -> bool:
        try:
            return self._words.do(line)
        except (SandboxError, OSError) as error:
            _complain(error)
            return True

    def _run(self, block: str) -> None:
        def show(result: CallResult) -> None:
            show_output(result, raw=False)
            sys.stdout.flush()
            complain_of(result.model_copy(update={"traceback": as_typed(result.traceback, block)}))

        self._words.now.run(shown_value(block), show)


def read_line(prompt: str) -> str:
    """With editing and history where readline is there."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - importing it is what makes input() edit
    return input(prompt)


def read_piped(_prompt: str) -> str:
    line = sys.stdin.buffer.readline()
    if not line:
        raise EOFError
    return line.decode(errors="replace").rstrip("\r\n")


def _say(text: str) -> None:
    typer.echo(printable(text, lines=True))


def _note(text: str) -> None:
    typer.echo(f"[{printable(text)}]", err=True)


def _complain(error: Exception) -> None:
    if isinstance(error, InfrastructureError):
        _note(str(error))
        return
    explained = explain(error)
    typer.echo(f"{printable(explained.message)}", err=True)
    if explained.hint:
        typer.echo(f"  {printable(explained.hint)}", err=True)
