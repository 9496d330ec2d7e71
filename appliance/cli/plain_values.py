"""What is wrong with an option's value, in words for a person instead of those of the library that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer

PLAIN: Mapping[str, str] = {
    "int_parsing": "this is no whole number",
    "int_from_float": "this is no whole number",
    "float_parsing": "this is no number",
    "greater_than_equal": "it must be {ge} or more",
    "less_than_equal": "it must be {le} or less",
    "greater_than": "it must be more than {gt}",
    "less_than": "it must be less than {lt}",
}
"""By pydantic's type of error."""
SHOWN = 40
"""Characters of the value."""


def speak_plainly(command: Any) -> None:
    """Has every parameter of the command, and of those below it, say so."""
    for below in filter(None, getattr(command, "commands", {}).values()):
        speak_plainly(below)
    for parameter in command.params:
        parameter.process_value = _plain(parameter.process_value, parameter)


def _plain(process: Callable[[Any, Any], Any], parameter: Any) -> Callable[[Any, Any], Any]:
    def process_value(context: Any, value: Any) -> Any:
        try:
            return process(context, value)
        except typer.BadParameter as error:
            said = in_words(error.__cause__)
            if not said:
                raise
            raise typer.BadParameter(said, ctx=context, param=parameter) from error

    return process_value


def in_words(error: BaseException | None) -> str:
    """The first thing that pydantic found; empty where it is nothing that has words here."""
    from appliance.printable import printable

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
