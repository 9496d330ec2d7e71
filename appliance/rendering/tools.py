"""Declares the tools to a chat model in the form that chat templates take, and reads what a call of one asks for. Pure.

A call's arguments are the model's: hostile data. What does not fit the declaration is a malformed call, never repaired.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from appliance.rendering.renderer import Malformed, RenderingError, ToolRequest

PYTHON = {
    "type": "function",
    "function": {
        "name": "python",
        "description": "Runs Python code in a sandbox and returns what it prints. Names are kept from call to call.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The code to run."}},
            "required": ["code"],
        },
    },
}
DECLARED: dict[str, dict[str, Any]] = {"python": PYTHON}
"""By name, as JSON schemas (the form of OpenAI's function calling, which chat templates take)."""


def declared(tools: Sequence[str]) -> list[dict[str, Any]]:
    """Lists the declarations of these tools. Raises RenderingError for one that is not declared."""
    if unknown := set(tools) - DECLARED.keys():
        raise RenderingError(
            f"this model's format has no way to call {', '.join(sorted(unknown))}",
            hint="give the task the tool `python` alone",
        )
    return [DECLARED[name] for name in tools]


def read_call(name: object, arguments: object, raw: str, tools: Sequence[str]) -> ToolRequest | Malformed:
    """Reads a call that was written well; `raw` is what the model wrote, `tools` what it was told of.

    >>> read_call("python", {"code": "print(1)"}, "", ("python",))
    ToolRequest(code='print(1)', tool='python')
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return Malformed(raw, "the arguments of the call are not JSON")
    if not isinstance(name, str) or name not in (tools or DECLARED):
        return Malformed(raw, f"there is no tool {str(name)[:40]!r}")
    if not isinstance(arguments, Mapping) or arguments.keys() != {"code"} or not isinstance(arguments["code"], str):
        return Malformed(raw, f"{name} takes one argument, `code`, which is a text")
    code = arguments["code"]
    return ToolRequest(code, name) if code.strip() else Malformed(code, "empty call")
