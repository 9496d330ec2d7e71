"""A group of commands as a table: the line of each in `--help`, and where it is imported from once it is asked for.

What always holds: showing a group's help, or what a shell may offer after it, loads none of its commands; every
parameter that names something refuses an empty name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup

from appliance.cli.empty_names import refuse_empty_names
from appliance.cli.plain_values import speak_plainly


class CommandRow(NamedTuple):
    """Where a command is, as "module:attribute" below `appliance.cli`, and its line in the group's `--help`."""

    place: str
    help: str


def lazy_group(rows: Mapping[str, CommandRow], **settings: Any) -> typer.Typer:
    """The group with these commands."""

    class LazyGroup(TyperGroup):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.commands = cast(dict[str, Any], dict.fromkeys(rows))  # their names, for "did you mean"

        def list_commands(self, ctx: Any) -> list[str]:
            return list(rows)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _loaded(cmd_name, rows[cmd_name]) if cmd_name in rows else None

        def shell_complete(self, ctx: Any, incomplete: str) -> Any:
            lines: dict[str, Any] = {name: TyperCommand(name, help=row.help) for name, row in rows.items()}
            ctx.command = TyperGroup(name=self.name, params=self.params, commands=lines)
            return ctx.command.shell_complete(ctx, incomplete)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, row.help) for name, row in rows.items()])

    return _typer(no_args_is_help=True, cls=LazyGroup, **settings)


def _loaded(name: str, row: CommandRow) -> Any:
    module, _, attribute = row.place.partition(":")
    found = getattr(importlib.import_module(f"appliance.cli.{module}"), attribute)
    holder = _typer()
    holder.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    command = typer.main.get_group(holder).commands[name]
    refuse_empty_names(command)
    speak_plainly(command)
    return command


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, **{"add_completion": False} | settings)
