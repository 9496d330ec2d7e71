"""Splits a statement's header into its context, which a submission's file repeats, and its declarations.

Commands that hold only up to the end of their scope or file (`open`, `variable`, `set_option`, `local notation`) are
context: those in force at the theorem are put at the head of a submission's file. All others declare something, which a
submission imports compiled.

Invariants: pure. This decides only how a submission is compiled: the statement is compiled whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verifiers.lean.reading.commands import CONTEXT, Command, parts_of
from verifiers.lean.reading.lexer import TokenKind

OPENS = frozenset(("namespace", "section"))
INCLUDES = frozenset(("include", "omit"))
VARIABLES = frozenset(("universe", "variable"))


@dataclass(frozen=True)
class StatementContext:
    commands: tuple[Command, ...]
    context: tuple[Command, ...]
    """Commands in force at the theorem."""
    declares: bool

    def declared(self) -> list[Command]:
        return [command for command in self.commands if not is_context(command)]


def header_of(commands: Sequence[Command]) -> StatementContext:
    declares = any(not is_context(command) for command in commands)
    return StatementContext(tuple(commands), tuple(_in_force(commands)), declares)


def is_context(command: Command) -> bool:
    if command.attached:
        return False  # applies only to the command that follows `in`
    if command.keyword == "attribute":
        bracket = command.words[command.key + 2 : command.key + 3]
        return bool(bracket) and (bracket[0].text in ("local", "-"))
    if "local" in command.has:
        return command.keyword != "instance"
    return command.keyword in CONTEXT and command.keyword not in ("mutual", "export")


def is_scope(command: Command) -> bool:
    return command.keyword in (*OPENS, "end")


def text_of(command: Command, text: str) -> str:
    """Returns a Lean command's text with a line end, including comments."""
    return text[command.start : command.end] + "\n"


def _in_force(commands: Sequence[Command]) -> list[Command]:
    """Returns the commands that still affect the text after them, without closed scopes and their content."""
    open_: list[list[Command]] = [[]]
    names: list[int] = []
    for command in commands:
        if not is_context(command):
            continue
        if command.keyword in OPENS:
            open_.append([command])
            names.append(_names(command))
        elif command.keyword == "end":
            closing = _names(command)
            while closing > 0 and names:
                closing -= names.pop()
                open_.pop()
        else:
            open_[-1].append(command)
    return [command for scope in open_ for command in scope]


def _names(command: Command) -> int:
    """Returns the number of scopes that a Lean command opens or closes."""
    following = command.words[command.key + 1 : command.key + 2]
    if not following or following[0].kind is not TokenKind.NAME:
        return 1
    return max(1, len(parts_of(following[0].text)))
