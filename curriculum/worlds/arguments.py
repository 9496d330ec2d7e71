"""Says whether the arguments of a tool call can be used: plain JSON, bounded, and as the tool's schema asks. Pure.

Arguments are the model's: hostile data. What does not fit is told to the model in a sentence; nothing is repaired.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from curriculum.contract.environment import ToolSchema

DEPTH = 8
"""Lists and tables within one another."""
BYTES = 16_384
"""Of the arguments of one call, in JSON."""
LARGEST = 2**53
"""Integers beyond it are not the same everywhere that JSON is read."""
PATTERN_STEPS = 10_000
"""That a pattern of a schema may go back for each text."""
TOLD = 200
"""Characters of a complaint."""


def fault_of(tool: ToolSchema, arguments: object) -> str:
    """What is wrong with the arguments, as a sentence for the model; empty when nothing is. It may quote them."""
    return printable(_fault_of(tool, arguments))


def printable(text: str) -> str:
    """The text with a question mark for each control character but the end of a line."""
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
    """Why a value is no plain JSON that can be passed on, as the end of a sentence; empty where it is."""
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
    """Compiles a JSON Schema; nothing is fetched for it, and a pattern goes back no more than `PATTERN_STEPS` times.
    Raises what the library does for what is none."""
    import jsonschema_rs  # by whoever asks for a call, not by whoever lists tools

    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=PATTERN_STEPS)
    return jsonschema_rs.validator_for(schema, offline=True, pattern_options=patterns)
