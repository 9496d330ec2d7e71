"""Checks the arguments of a tool call: plain JSON, bounded, and valid by the tool's schema. Pure.

Arguments are the model's: hostile data. A violation is reported to the model in a sentence; nothing is repaired.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from curriculum.contract.environment import ToolSchema

DEPTH = 8
"""Nesting limit of lists and objects."""
BYTES = 16_384
"""Size limit of a call's arguments, in bytes of JSON."""
LARGEST = 2**53
"""Largest integer that every JSON reader represents exactly."""
PATTERN_STEPS = 10_000
"""Backtracking limit of a schema's pattern per text."""
TOLD = 200
"""Length limit of an error message, in characters."""


def fault_of(tool: ToolSchema, arguments: object) -> str:
    """Checks a tool call's arguments. Returns their fault, as a sentence for the model, which may quote them; empty if
    valid."""
    return printable(_fault_of(tool, arguments))


def printable(text: str) -> str:
    """Replaces control characters other than newline by question marks."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def _fault_of(tool: ToolSchema, arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        return f"the arguments of {tool.name} are a JSON object"
    if wrong := unusable(arguments):
        return f"the arguments of {tool.name} {wrong}"
    text = json.dumps(arguments)
    if len(text) > BYTES:
        return f"the arguments of {tool.name} have more than {BYTES} bytes"
    wanted = set(tool.parameters.get("properties", {}))
    if unknown := sorted(arguments.keys() - wanted):
        takes = ", ".join(f"`{name}`" for name in tool.parameters.get("properties", {})) or "no arguments"
        return f"{tool.name} has no argument `{unknown[0][:40]}`; it takes {takes}"
    for error in schema_validator(json.dumps(tool.parameters)).iter_errors(json.loads(text)):
        where = ".".join(str(step) for step in error.instance_path)
        return f"{tool.name}{f': `{where}`' if where else ''}: {error.message}"[:TOLD]
    return ""


def unusable(value: object, depth: int = DEPTH) -> str:
    """Returns why a value is not plain JSON, as the end of a sentence; empty if it is."""
    if isinstance(value, str):
        return "" if _is_text(value) else "hold text that is not Unicode"
    if isinstance(value, bool | None):
        return ""
    if isinstance(value, int):
        return "" if abs(value) <= LARGEST else "hold an integer that is too large"
    if isinstance(value, float):
        return "" if math.isfinite(value) else "hold a number that is not finite"
    if depth == 0:
        return f"are nested more than {DEPTH} deep"
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return "hold a name that is no text"
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        return "are not JSON"
    return next((wrong for part in inner if (wrong := unusable(part, depth - 1))), "")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(maxsize=256)
def schema_validator(schema: str) -> Any:
    """Compiles a JSON Schema; fetches nothing, and limits backtracking to `PATTERN_STEPS`. Raises the library's error
    for an invalid schema."""
    import jsonschema_rs  # only calls need it, not listing tools

    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=PATTERN_STEPS)
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=patterns)
