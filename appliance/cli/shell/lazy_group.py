"""A command group as a table: each command's help line, and the place it is imported from on use.

Invariants: showing a group's help or completions loads none of its commands. Every parameter that names something
rejects an empty name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import typer
from typer.core import TyperCommand, TyperGroup

PLAIN: Mapping[str, str] = {
    "int_parsing": "not a whole number",
    "int_from_float": "not a whole number",
    "float_parsing": "not a number",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "greater_than": "must be more than {gt}",
    "less_than": "must be less than {lt}",
}
"""Messages by pydantic's type of error."""
SHOWN = 40
"""Characters shown of the value."""


METAVARS: Mapping[Any, str] = {int: "N", list[int]: "N", float: "X", str: "TEXT", list[str]: "TEXT"}
"""Placeholders in help of options that name none of their own."""
NAMES = {"--as", "--backend", "--before", "--cycle", "--digest", "--explain", "--family", "--from", "--job", "--tier"}
"""Options that name something; arguments and paths always do."""


def speak_plainly(command: Any) -> None:
    """Makes parameters of the command and its subcommands report invalid values in plain words, and those that name
    something reject an empty name."""
    for below in filter(None, getattr(command, "commands", {}).values()):
        speak_plainly(below)
    for parameter in command.params:
        parameter.process_value = _plain(parameter.process_value, parameter)
        named = parameter.type_descriptor.annotation
        if parameter.param_type_name == "argument":
            if not parameter.type_descriptor.is_choice:
                parameter.display_type = lambda context: ""
        elif parameter.metavar is None:
            parameter.metavar = METAVARS.get(named)


def _plain(process: Callable[[Any, Any], Any], parameter: Any) -> Callable[[Any, Any], Any]:
    named = _names_something(parameter)

    def process_value(context: Any, value: Any) -> Any:
        given = value if isinstance(value, list | tuple) else (value,)
        if named and "" in given and value != parameter.default:
            raise typer.BadParameter("the name is empty", ctx=context, param=parameter)
        try:
            return process(context, value)
        except typer.BadParameter as error:
            said = in_words(error.__cause__)
            if not said:
                raise
            raise typer.BadParameter(said, ctx=context, param=parameter) from error

    return process_value


def in_words(error: BaseException | None) -> str:
    """Returns a plain message for the first of pydantic's validation errors; empty if none is defined for its type."""
    from appliance.text.printable import printable

    faults = getattr(error, "errors", None)
    if faults is None:
        return ""
    fault = faults(include_url=False)[0]
    if fault["type"] == "value_error":
        return printable(str(fault["msg"]).removeprefix("Value error, "))
    if fault["type"] not in PLAIN:
        return ""
    given = printable(str(fault["input"]), limit=SHOWN)
    return f"{given!r}: {PLAIN[fault['type']].format(**fault.get('ctx', {}))}"


def _names_something(parameter: Any) -> bool:
    kind = parameter.type_descriptor.annotation
    paths = any(isinstance(one, type) and issubclass(one, Path) for one in (kind, *get_args(kind)))
    return paths or parameter.param_type_name == "argument" or not NAMES.isdisjoint(parameter.opts)


class CommandRow(NamedTuple):
    """Import place of a command ("module:attribute" below `appliance.cli`) and its line in `--help`."""

    place: str
    help: str


class GroupRow(NamedTuple):
    """Table of a command group's commands, and its line in `--help`."""

    rows: Mapping[str, CommandRow]
    help: str


def lazy_group(
    rows: Mapping[str, CommandRow | GroupRow], sections: Mapping[str, str] | None = None, **settings: Any
) -> typer.Typer:
    """Returns a command group that imports each of these commands only when it is used. `sections` divides them in
    `--help`: headings by the first command below each; all are below one otherwise."""

    class LazyGroup(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands = cast(dict[str, Any], dict.fromkeys(rows))  # their names, for "did you mean"

        def list_commands(self, ctx: Any) -> list[str]:
            return list(rows)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return loaded_command(cmd_name, rows[cmd_name]) if cmd_name in rows else None

        def shell_complete(self, ctx: Any, incomplete: str) -> Any:
            lines: dict[str, Any] = {name: TyperCommand(name, help=row.help) for name, row in rows.items()}
            ctx.command = TyperGroup(name=self.name, params=self.params, commands=lines)
            return ctx.command.shell_complete(ctx, incomplete)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            below: dict[str, list[tuple[str, str]]] = {}
            heading = "Commands"
            for name, row in rows.items():
                heading = (sections or {}).get(name, heading)
                below.setdefault(heading, []).append((name, row.help))
            for heading, lines in below.items():
                with formatter.section(heading):
                    formatter.write_dl(lines)

    return _typer(no_args_is_help=True, cls=LazyGroup, **settings)


def loaded_command(name: str, row: CommandRow | GroupRow) -> Any:
    """Returns the command, or group, that a table's row leads to."""
    if isinstance(row, GroupRow):
        found: Any = lazy_group(row.rows, help=row.help)
    else:
        module, _, attribute = row.place.partition(":")
        found = getattr(importlib.import_module(f"appliance.cli.{module}"), attribute)
    holder = _typer()
    holder.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    command = typer.main.get_group(holder).commands[name]
    speak_plainly(command)
    return command


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, **{"add_completion": False} | settings)
