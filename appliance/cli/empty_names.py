"""An empty name is an error, and not the folder that the command happens to run in or the newest of all.

In a script it is a variable that was never set. What may be empty is text: an answer, a reason, a question.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import typer

NAMES = {"--as", "--backend", "--before", "--cycle", "--digest", "--explain", "--family", "--from", "--job", "--tier"}
"""Options that name something; arguments and paths always do."""


def refuse_empty_names(command: Any) -> None:
    """Has every parameter of the command, and of those below it, refuse an empty name with a usage error."""
    for below in filter(None, getattr(command, "commands", {}).values()):
        refuse_empty_names(below)
    for parameter in command.params:
        if _names_something(parameter):
            parameter.process_value = _refusing(parameter.process_value, parameter)


def _names_something(parameter: Any) -> bool:
    kind = parameter.type_descriptor.annotation
    paths = any(isinstance(one, type) and issubclass(one, Path) for one in (kind, *get_args(kind)))
    return paths or parameter.param_type_name == "argument" or not NAMES.isdisjoint(parameter.opts)


def _refusing(process: Callable[[Any, Any], Any], parameter: Any) -> Callable[[Any, Any], Any]:
    def process_value(context: Any, value: Any) -> Any:
        given = value if isinstance(value, list | tuple) else (value,)
        is_default = value == parameter.default
        if "" in given and not is_default:
            raise typer.BadParameter("the name is empty", ctx=context, param=parameter)
        return process(context, value)

    return process_value
