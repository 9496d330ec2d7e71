"""Says of every configuration key what it is: its type and unit, its default, what it does, and its variable.

What always holds: all of it comes from the settings model. The docstring of a field is its description; a field that
has none is an error here.

    python -m appliance.config.reference > docs/configuration.md
"""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from appliance.config.configuration import Settings
from appliance.settings.config_layers import ConfigError, read_layers, variable_of
from runtime.model import UnitName


@cache
def docstrings(shape: type[BaseModel]) -> Mapping[str, str]:
    """The docstring of each field that has one, by the field's name; a class's own counts before its parents'."""
    found: dict[str, str] = {}
    for one in reversed(shape.__mro__):
        if issubclass(one, BaseModel) and one is not BaseModel:
            found |= _below(_bodies(one.__module__).get(one.__name__, []))
    return found


@cache
def _bodies(module: str) -> Mapping[str, list[ast.stmt]]:
    """What stands in each class of a module, by the class's name."""
    source = inspect.getsource(sys.modules[module])
    return {one.name: one.body for one in ast.parse(source).body if isinstance(one, ast.ClassDef)}


def _below(body: list[ast.stmt]) -> dict[str, str]:
    found = {}
    for field, text in pairwise(body):
        named = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id
        if named and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[named] = inspect.cleandoc(str(text.value.value))
    return found


_NOWHERE = Path("/nonexistent")
_TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
_SUFFIXES = {"seconds": "seconds", "mib": "MiB", "bytes": "bytes", "chars": "characters"}
NOT_SET = "(not set)"
_COLUMNS = "| key | is | unless set | does |\n|---|---|---|---|\n"
_HEAD = """\
# Configuration

This page is generated from the settings model (`python -m appliance.config.reference > docs/configuration.md`).
`assay config show` lists the values in force, `--origin` says where each comes from, `--explain KEY` all about one.

A value comes from the last of these that has it: the default, `/etc/assay/config.toml`, `~/.config/assay/config.toml`
(or `$XDG_CONFIG_HOME/assay/config.toml`), the environment, a flag. In a file, `sandbox.pids` is the key `pids` of
`[sandbox]`; in the environment it is `ASSAY_SANDBOX__PIDS`, and a list is written as in a file:
`ASSAY_SCHEDULE__WEEKDAYS='["mon", "fri"]'`. Paths are made absolute, `~` is the home folder. An unknown key or a wrong
value is an error that names the place and the nearest key.
"""


@dataclass(frozen=True)
class ConfigKey:
    name: str
    """Dotted."""
    type: str
    unit: str
    """Empty for what is not counted."""
    default: Any
    description: str

    @property
    def variable(self) -> str:
        return variable_of(self.name)


def keys() -> dict[str, ConfigKey]:
    """All of them by name, in the order of the model."""
    home = read_layers(environ={"HOME": "~"}, etc_dir=_NOWHERE, xdg_dir=_NOWHERE)[0].values
    defaults = {**Settings(data=Path("/")).leaves(), **home}
    return {name: _key(name, field, defaults[name], docstrings(shape)) for name, field, shape in _fields(Settings)}


def as_written(value: Any) -> str:
    """A value as TOML would have it."""
    return NOT_SET if value is None else json.dumps(value)


def explained(wanted: str) -> list[ConfigKey]:
    """The key of that name, or those of the section. Raises ConfigError with the nearest names for any other."""
    known = keys()
    found = [key for name, key in known.items() if name == wanted or name.startswith(f"{wanted}.")]
    if found:
        return found
    near = [name for name in known if name.split(".")[-1] == wanted.split(".")[-1]]
    near += difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(dict.fromkeys(near))}?" if near else "`assay config show` lists all keys"
    raise ConfigError(f"there is no key {wanted}", hint=hint)


def page() -> str:
    """docs/configuration.md: a table for each section, a line for each key."""
    sections: dict[str, list[str]] = {"": []}
    for key in keys().values():
        counted = f"{key.type} ({key.unit})" if key.unit else key.type
        default = NOT_SET if key.default is None else f"`{as_written(key.default)}`".replace("|", "\\|")
        line = f"| `{key.name}` | {counted} | {default} | {key.description} |\n"
        sections.setdefault(key.name.rpartition(".")[0], []).append(line)
    titles = {holder: f"[{holder}]" if holder else "Outside of a section" for holder in sections}
    return _HEAD + "".join(f"\n## {titles[holder]}\n\n{_COLUMNS}{''.join(lines)}" for holder, lines in sections.items())


def _key(name: str, field: FieldInfo, default: Any, docs: Mapping[str, str]) -> ConfigKey:
    description = docs.get(name.rpartition(".")[2])
    if not description:
        raise ValueError(f"{name} has no docstring in the settings model")
    return ConfigKey(
        name=name,
        type=", ".join([_type(field.annotation), *_bounds(field)]),
        unit=_unit(name, field),
        default=default,
        description=" ".join(description.split()),
    )


def _fields(shape: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo, type[BaseModel]]]:
    for name, field in shape.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from _fields(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field, shape


def _type(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return " or ".join(_type(one) for one in inner if one is not type(None))
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    return _TYPES[annotation] if annotation in _TYPES else _type(inner[0])


def _bounds(field: FieldInfo) -> list[str]:
    bounds = ((words, getattr(one, name, None)) for one in field.metadata for name, words in _BOUNDS.items())
    return [
        f"{words} {bound:g}" if bound < 1e6 else f"{words} {bound:.0f}" for words, bound in bounds if bound is not None
    ]


def _unit(name: str, field: FieldInfo) -> str:
    for one in field.metadata:
        if isinstance(one, UnitName):
            return one.name
    return _SUFFIXES.get(name.rpartition(".")[2].rpartition("_")[2], "")


if __name__ == "__main__":
    sys.stdout.write(page())
