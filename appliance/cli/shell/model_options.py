"""Derives a command's options from a pydantic model: names, types, help, bounds, and given values.

A field `call_seconds` becomes the option `--call-seconds`; its description is the help. `json_schema_extra` may set
`metavar` and `flag` (another name). A tuple is a repeatable option. Every option is optional here: the model has the
defaults and the required fields.

  @prints
  def run(asked: SandboxRun, raw: bool = False) -> Output[RunDocument]: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

M = TypeVar("M", bound=BaseModel)
_BOUNDS = {"ge": "min", "le": "max"}


def parameter_name(flag: str) -> str:
    """Returns the name of the command parameter for an option's flag."""
    return flag.removeprefix("--").replace("-", "_")


def parameter(name: str, kind: Any, *, default: Any = None, **settings: Any) -> inspect.Parameter:
    """Builds the command parameter of one option. `settings` are those of `typer.Option`; `flag` is its name."""
    flag = settings.pop("flag", f"--{name.replace('_', '-')}")
    annotation = Annotated[kind, typer.Option(flag, **settings)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def parameters_of(model: type[BaseModel]) -> list[inspect.Parameter]:
    """Returns command options for the fields of a pydantic model, in their order."""
    return [_of_field(name, field) for name, field in model.model_fields.items()]


def with_options(
    options: Iterable[inspect.Parameter], *, doc: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that adds options to a command, which receives them as `**values`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command, eval_str=True)
        named = [one for one in own.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        first = [one for one in named if one.default is inspect.Parameter.empty]
        last = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in named if one not in first]
        every = [*first, *options, *last]
        command.__signature__ = own.replace(parameters=every)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in every}
        command.__doc__ = doc or command.__doc__
        return command

    return decorate


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the option values that a person gave, without None, False and empty lists."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if _is_given(value)
    }


def read_options(model: type[M], values: Mapping[str, Any], *, known: Mapping[str, Any] | None = None) -> M:
    """Builds the pydantic model of a command's options from the given values over `known`. Raises BadParameter that
    names the option."""
    try:
        return model.model_validate({**(known or {}), **given(values)})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = str(fault["loc"][0]) if fault["loc"] else ""
        field = model.model_fields.get(place)
        raise typer.BadParameter(
            fault["msg"].removeprefix("Value error, "), param_hint=_flag(place, field) if place else None
        ) from error


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value not in ([], ())


def _flag(name: str, field: FieldInfo | None) -> str:
    extra = field.json_schema_extra if field is not None else None
    named = extra.get("flag") if isinstance(extra, dict) else None
    return str(named or f"--{name.replace('_', '-')}")


def _of_field(name: str, field: FieldInfo) -> inspect.Parameter:
    kind, repeated = _kind_of(field.annotation)
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    settings: dict[str, Any] = {"help": field.description or "", "flag": _flag(name, field)}
    if "metavar" in extra:
        settings["metavar"] = extra["metavar"]
    if kind in (int, float):
        settings |= {_BOUNDS[own]: getattr(one, own) for one in field.metadata for own in _BOUNDS if hasattr(one, own)}
    if kind is bool:
        return parameter(name, bool, default=False, **settings)
    return parameter(name, list[kind] | None if repeated else kind | None, **settings)  # type: ignore[valid-type]


def _kind_of(annotation: Any) -> tuple[Any, bool]:
    """Returns the command-line type of one value of a field, and True if the option is repeatable."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        simple = [one for one in get_args(annotation) if one is not NoneType]
        return _kind_of(next((one for one in simple if one in (str, int, float, bool, Path)), simple[0]))
    if origin in (tuple, list):
        return _kind_of(get_args(annotation)[0])[0], True
    if origin is Literal:
        return str, False
    if origin is Annotated:
        return _kind_of(get_args(annotation)[0])
    return (annotation, False) if annotation in (int, float, bool, Path) else (str, False)
