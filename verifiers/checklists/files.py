"""Checklists in files: TOML for people, JSON for programs.

    question = "Describe the water cycle for children, in about 120 words."
    [[items]]
    item = "length"
    target = 120
    [[items]]
    item = "words"
    required = ["evaporation", "rain"]
    [[items]]
    item = "soft"
    point = "A child of eight can follow it."

An item without a name is called by its place and kind (`2 words`). A JSON schema may be written as a table, and a
source may name a file beside the list (`file = "report.txt"`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from common import strict_json
from common.bounded_models import first_fault
from common.errors import reading
from common.strict_json import Bounds, NotJsonError
from common.toml_files import TomlError, read_toml
from verifiers.checklists.hard import HardVerifier
from verifiers.checklists.spec import ChecklistSpec
from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped

MAX_BYTES = 4 << 20
BOUNDS = Bounds(2 * MAX_BYTES)
HINT = "See docs/verifiers/checklist.md for the items of a checklist."


def checklist_from(text: str, folder: Path) -> ChecklistSpec:
    """Parses a checklist; source files are relative to `folder`. Raises SpecError, with a hint."""
    try:
        content = strict_json.read(text, BOUNDS) if text.lstrip().startswith("{") else read_toml(text)
    except NotJsonError as error:
        raise SpecError(f"the checklist is unusable JSON: {escaped(str(error))}", hint=HINT) from error
    except TomlError as error:
        raise SpecError(f"the checklist is not TOML: {escaped(str(error))}", hint=HINT) from error
    if not isinstance(content, dict) or not isinstance(content.get("items"), list):
        raise SpecError(
            "the checklist has no items", hint="Begin each item with [[items]] and say its kind: item = ..."
        )
    try:
        items = [_item(place, item) for place, item in enumerate(content["items"], 1)]
        sources = [_source(source, folder) for source in content.get("sources", ())]
        spec = ChecklistSpec.model_validate({**content, "items": items, "sources": sources})
    except ValidationError as error:
        raise SpecError(f"the checklist cannot be used: {first_fault(error)}", hint=HINT) from error
    except (TypeError, AttributeError, RecursionError) as error:
        raise SpecError("the checklist has another value where a table is required", hint=HINT) from error
    HardVerifier().check(spec)
    return spec


def _item(place: int, item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise TypeError("an item is a table")
    named = {"name": f"{place} {item.get('item', '')}".strip(), **item}
    if isinstance(named.get("rules"), dict):
        named["rules"] = json.dumps(named["rules"])
    return named


def _source(source: Any, folder: Path) -> dict[str, Any]:
    if not isinstance(source, dict):
        raise TypeError("a source is a table")
    if "file" not in source:
        return source
    name = source["file"]
    if not isinstance(name, str):
        raise TypeError("the name of a file is text")
    content = {key: value for key, value in source.items() if key != "file"}
    return {**content, "text": _text(folder / name)}


def _text(path: Path) -> str:
    with reading(escaped(str(path)), SpecError, "Name a text file."):
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise SpecError(f"{escaped(str(path))} is larger than {MAX_BYTES >> 20} MiB", hint="Use a smaller file.")
        return data.decode("utf-8-sig")
