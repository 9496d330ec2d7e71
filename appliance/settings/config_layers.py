"""Configuration layers: reads each, merges them, and reports errors with the layer at fault.

Every key is checked against the model before any value is validated, so an unknown key is reported with its layer and
the nearest known key.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from appliance.text.printable import printable
from common.errors import HintedError
from common.plugins.allowed import VARIABLE
from common.toml_files import MOST_BYTES, TomlError, beginning, read_toml

ETC = Path("/etc/assay")
FILE = "config.toml"
PREFIX = "ASSAY_"
INSTALLER = frozenset({"ASSAY_BIN", "ASSAY_PYTHON", "ASSAY_TORCH_INDEX", "ASSAY_RUNSC_URL"})
"""Variables of install.sh, which may still be set when it calls this program."""
SECRETS = frozenset({"ASSAY_TEACHER_KEY", "ASSAY_ENGINE_KEY"})
"""Variables that contain a secret and are not configuration."""
OWN = frozenset({VARIABLE})
"""Variables by which processes of this program tell their children."""

LONGEST = 200
"""Characters of a wrong value shown in messages."""

Origins = dict[str, str]
"""Maps each dotted key to the place that set it."""


class ConfigError(HintedError):
    """The configuration is unusable; the message names the key, and the file, variable or flag that set it."""

    exit_code = 2


@dataclass(frozen=True)
class Layer:
    name: str
    values: Mapping[str, Any]
    spelling: str = ""
    """Format of a key in this layer, for messages; empty to name the layer itself."""

    def place(self, key: str) -> str:
        if self.spelling == "--{}":
            return f"--{key.replace('.', '-').replace('_', '-')}"
        return variable_of(key) if self.spelling else self.name

    def value(self, given: Any, shape: Any) -> Any:
        """Converts a configuration value as given to the form it has in a file. Variables are text, and compound values
        are parsed as TOML."""
        if not (self.spelling.startswith(PREFIX) and isinstance(given, str) and _is_written(shape)):
            return given
        try:
            found = read_toml(f"value = {given}")
        except (TomlError, UnicodeError):
            return given
        return found["value"] if len(found) == 1 else given


def variable_of(key: str) -> str:
    """Returns the name of the environment variable that sets a configuration key."""
    return PREFIX + key.replace(".", "__").upper()


def read_layers(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    etc_dir: Path = ETC,
    xdg_dir: Path | None = None,
) -> list[Layer]:
    """Reads all configuration layers, the weakest first. Raises ConfigError. `flags` may be nested or have dotted keys;
    None values count as not given. `etc_dir` and `xdg_dir` are the folders of config.toml."""
    environ = os.environ if environ is None else environ
    return [
        Layer("default", {"data": str(_home(environ, "XDG_DATA_HOME", ".local/share") / "assay")}),
        file_layer(etc_dir / FILE),
        file_layer(user_file(environ) if xdg_dir is None else xdg_dir / FILE),
        environment_layer(environ),
        Layer("flag", _nested(flags or {}), "--{}"),
    ]


def file_in_use(environ: Mapping[str, str] | None = None) -> Path:
    """Returns the configuration file to edit: the user's, or the machine's if only that one exists."""
    own, whole = user_file(environ), ETC / FILE
    return whole if whole.exists() and not own.exists() else own


def user_file(environ: Mapping[str, str] | None = None) -> Path:
    """Returns the path of the current user's configuration file."""
    return _home(os.environ if environ is None else environ, "XDG_CONFIG_HOME", ".config") / "assay" / FILE


def file_layer(path: Path) -> Layer:
    """Reads a TOML file as a configuration layer; a missing file is empty. Raises ConfigError if unreadable."""
    try:
        content = beginning(path, MOST_BYTES)
        if len(content) > MOST_BYTES:
            raise ConfigError(
                f"{path} is larger than {MOST_BYTES} bytes", hint="shorten it; `assay config show` lists all keys"
            )
        return Layer(str(path), read_toml(content.decode()))
    except (FileNotFoundError, NotADirectoryError):
        return Layer(str(path), {})
    except TomlError as error:
        raise ConfigError(
            f"{path} is not TOML: {error}", hint="correct that line: put text in quotes and section names in [brackets]"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text in UTF-8", hint="save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", hint="make it readable for the user that runs Assay"
        ) from error


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Reads ASSAY_* environment variables as a configuration layer; an empty one counts as not set. Raises ConfigError
    if two contradict."""
    tree: dict[str, Any] = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name in INSTALLER | SECRETS | OWN or not environ[name]:
            continue
        clash = ConfigError(
            f"{name} contradicts another variable", hint="one of the two is a section and the other a value: unset one"
        )
        _put(tree, name.removeprefix(PREFIX).lower().split("__"), environ[name], clash)
    return Layer("environment", tree, PREFIX + "{}")


def _nested(flags: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flags.items():
        if value is not None:
            clash = ConfigError(f"--{key} contradicts another flag", hint="remove one of the two")
            _put(tree, key.split("."), _nested(value) if isinstance(value, Mapping) else value, clash)
    return tree


def _put(tree: dict[str, Any], key: Sequence[str], value: Any, clash: ConfigError) -> None:
    """Sets a nested key of a configuration tree. Raises `clash` if a parent of the key is already a value."""
    for section in key[:-1]:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise clash
    tree[key[-1]] = value


def _home(environ: Mapping[str, str], variable: str, otherwise: str) -> Path:
    named = environ.get(variable, "")
    if Path(named).is_absolute():
        return Path(named)
    return Path(environ["HOME"] if environ.get("HOME") else Path.home()) / otherwise


def merged(layers: Iterable[Layer], shape: type[BaseModel]) -> tuple[dict[str, Any], Origins]:
    """Merges configuration layers, later ones over earlier ones. Returns the values and the origin of each. Raises
    ConfigError."""
    values: dict[str, Any] = {}
    origins: Origins = {}
    for layer in layers:
        _lay(layer, layer.values, shape, values, origins, "")
    return values, origins


def refused(error: ValidationError, origins: Origins) -> ConfigError:
    """Converts the first validation error of the configuration to a ConfigError that names the key and its origin."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    reason = str(first["msg"]).removeprefix("Value error, ").replace("valid tuple", 'list, such as ["a", "b"]')
    place = next((place for name, place in origins.items() if f"{key}.".startswith(f"{name}.")), "the configuration")
    value = printable(repr(first["input"]), limit=LONGEST)
    named = key if place.startswith(("--", PREFIX)) else f"{key} = {value}"
    given = f" ({value})" if named == key else ""
    return ConfigError(
        f"{place}: {named}: {reason}{given}", hint=f"correct {key} there; `assay config show` lists all keys"
    )


def _lay(
    layer: Layer,
    given: Mapping[str, Any],
    shape: type[BaseModel],
    values: dict[str, Any],
    origins: Origins,
    prefix: str,
) -> None:
    for key, value in given.items():
        dotted = f"{prefix}{key}"
        field = shape.model_fields.get(key)
        if field is None:
            raise _unknown(layer, dotted, key, shape, prefix)
        section = field.annotation
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            if isinstance(value, Mapping):
                raise ConfigError(
                    f"{layer.place(dotted)}: {dotted} is a value, not a section", hint=f"write {dotted} = ... instead"
                )
            values[key] = layer.value(value, section)
            origins[dotted] = layer.place(dotted)
        elif isinstance(value, Mapping):
            _lay(layer, value, section, values.setdefault(key, {}), origins, f"{dotted}.")
        else:
            raise ConfigError(
                f"{layer.place(dotted)}: {dotted} is a section, not a value",
                hint=f"set one of its keys: {', '.join(section.model_fields)}",
            )


def _is_written(shape: Any) -> bool:
    """True if values of this type are lists or one of some numbers, which a plain word never is."""
    origin, inner = get_origin(shape), get_args(shape)
    if origin in (Union, UnionType):
        return any(_is_written(one) for one in inner)
    return origin is tuple or (origin is Literal and not all(isinstance(one, str) for one in inner))


def _unknown(layer: Layer, dotted: str, key: str, shape: type[BaseModel], prefix: str) -> ConfigError:
    near = difflib.get_close_matches(key, shape.model_fields, n=1, cutoff=0.5)
    meant = (
        f"did you mean {prefix}{near[0]}?" if near else f"use one of its keys: {', '.join(sorted(shape.model_fields))}"
    )
    return ConfigError(f"{layer.place(dotted)}: unknown key {dotted}", hint=meant)
