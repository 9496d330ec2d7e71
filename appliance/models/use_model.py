"""Writes recommended settings of a model into a configuration file.

Invariants: only the named keys change; comments, order and all other keys of the file stay. The new text is a valid
configuration before it is written. A file is replaced in one step.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Item, Table

from appliance.learning.checkpoints import model_files
from appliance.learning.folders import Content, write_folder
from appliance.models.import_model import RECORD, alone_in
from appliance.models.local_models import BASES
from appliance.readiness.model import UnusableModelError, try_text
from appliance.rendering.model_files import FORMAT
from appliance.settings.config_layers import ConfigError


def with_values(text: str, values: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the text of a TOML file with these values by dotted key, and those that were not there. Raises
    ConfigError for a key whose section is a value, or if the text is not TOML.

    >>> text = "[model]\\n# mine\\npath = '/a'  # old\\n"
    >>> print(with_values(text, {"model.path": "/b", "recipe.training.steps": 5})[0])
    [model]
    # mine
    path = "/b"  # old
    <BLANKLINE>
    [recipe.training]
    steps = 5
    <BLANKLINE>
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"the file is not TOML: {error}", hint="correct that line") from error
    changed = {}
    for key, value in values.items():
        *sections, name = key.split(".")
        place: Container | Table | Any = document
        for depth, section in enumerate(sections):
            if section not in place:
                place.add(section, tomlkit.table(is_super_table=depth + 1 < len(sections)))
            place = place[section]
            if not isinstance(place, Mapping):
                raise ConfigError(f"{'.'.join(sections)} is not a section", hint=f"write [{'.'.join(sections)}]")
        if name not in place or place[name] != value:
            place[name] = _beside(place.get(name), value)
            changed[key] = value
    return tomlkit.dumps(document), changed


def _beside(before: object, value: object) -> Item:
    """Returns a value as TOML, with the comment of the one that it replaces."""
    item = tomlkit.item(value)
    if isinstance(before, Item):
        item.trivia.comment, item.trivia.comment_ws = before.trivia.comment, before.trivia.comment_ws
    return item


def difference(before: str, after: str, path: Path) -> list[str]:
    """Returns the changed lines of a file, each with + or -, and the lines around them."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), n=1, lineterm="")
    return list(lines)


def in_format(base: Path, data: Path, chosen: str) -> Path:
    """Returns the registered copy of a base model that names this conversation format, `NAME-FORMAT`; makes it if it
    does not exist. Raises ModelError if the model cannot be used in that format, UnusableModelError if the name has
    other files, and CheckpointError if they cannot be written."""
    try_text(base, format=chosen)
    named = (json.dumps({"format": chosen}) + "\n").encode()
    target = data / BASES / f"{base.name}-{chosen}"
    if target.exists():
        if (target / FORMAT).read_bytes() != named:
            raise UnusableModelError(f"base model {target.name} exists already", hint="give the base another name")
        return target
    files: dict[str, Content] = {**model_files(base), FORMAT: named}
    if (record := base / RECORD).is_file():
        known = {**json.loads(record.read_bytes()), "name": target.name}
        files[RECORD] = (json.dumps(known, indent=1, sort_keys=True) + "\n").encode()
    with alone_in(target.parent):
        write_folder(target, files)
    return target
