"""Declares tools to a chat model in the form of chat templates, and parses tool calls. Pure.

A call's arguments are hostile model output. A call that does not fit the declaration is malformed, never repaired,
except that Python code may be indented (`code_request`).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from appliance.rendering.renderer import PYTHON, TOOLS, Malformed, RenderingError, ToolRequest, code_request
from curriculum.contract.environment import ToolSchema, tools_in
from curriculum.contract.task import Task
from curriculum.environments import ENVIRONMENTS
from curriculum.worlds.tool_schema import fault_of, unusable


def tools_of(task: Task) -> tuple[ToolSchema, ...]:
    """Returns the schemas of the tools of a task. Raises RenderingError as `offered`."""
    return offered(task.environment, task.tools, task.world)


def offered(environment_name: str, names: Sequence[str], world: Mapping[str, Any]) -> tuple[ToolSchema, ...]:
    """Returns the schemas of the tools of these names. Raises RenderingError for one that neither Python nor the
    environment's world has."""
    environment = ENVIRONMENTS.get(environment_name)
    known = {tool.name: tool for tool in (PYTHON, *(tools_in(environment, world) if environment is not None else ()))}
    if unknown := [name for name in names if name not in known]:
        raise RenderingError(
            f"unknown tool {unknown[0]!r} of environment {environment_name!r}",
            hint="use tools of the environment's row in curriculum/environments/__init__.py",
        )
    return tuple(known[name] for name in names)


def declared(tools: Sequence[ToolSchema]) -> list[dict[str, Any]]:
    """Converts tool schemas to declarations in OpenAI's function calling form, which chat templates take."""
    return [{"type": "function", "function": tool.model_dump()} for tool in tools]


def mark_in(tools: Sequence[ToolSchema], marks: Sequence[str]) -> str:
    """Returns the fault of a tool declaration that spells a mark of a model's format, as a sentence; empty if none
    does. Formats write declarations unguarded, so such a mark would take effect."""
    for tool in tools:
        texts = [json.dumps(tool.model_dump(), ensure_ascii=False)]
        map_texts(tool.model_dump(), texts.append)
        text = unicodedata.normalize("NFKC", "\n".join(texts))
        spelled = next((mark for mark in marks if unicodedata.normalize("NFKC", mark) in text), None)
        if spelled is not None:
            return f"the declaration of {tool.name} spells {spelled!r}, a mark of this model's format"
    return ""


def arguments_of(request: ToolRequest) -> dict[str, Any]:
    """Returns a call's arguments by name.

    >>> arguments_of(ToolRequest("print(1)"))
    {'code': 'print(1)'}
    """
    return {"code": request.code} if request.tool == PYTHON.name else dict(request.arguments)


def read_call(name: object, arguments: object, raw: str, tools: Sequence[ToolSchema]) -> ToolRequest | Malformed:
    """Validates a well-formed call; `raw` is the model's text, `tools` the declared tools.

    >>> read_call("python", {"code": "print(1)"}, "", TOOLS)
    ToolRequest(code='print(1)', tool='python', arguments={})
    """
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return Malformed(raw, "the arguments of the call are not JSON")
    tool = next((one for one in tools or TOOLS if one.name == name), None)
    if tool is None:
        return Malformed(raw, f"there is no tool {str(name)[:40]!r}")
    if tool.name == PYTHON.name:
        if not isinstance(arguments, Mapping) or arguments.keys() != {"code"} or not isinstance(arguments["code"], str):
            return Malformed(raw, "python takes one argument, `code`, which is a text")
        code = arguments["code"]
        if unusable(code):
            return Malformed(raw, "the code is not Unicode")
        return code_request(code)
    if fault := fault_of(tool, arguments):
        return Malformed(raw, fault)
    assert isinstance(arguments, Mapping)
    return ToolRequest(tool=tool.name, arguments=dict(arguments))


def map_texts(value: Any, change: Any) -> Any:
    """Applies `change` to every string in plain JSON, including keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key) if isinstance(key, str) else key: map_texts(inner, change) for key, inner in value.items()}
    return [map_texts(inner, change) for inner in value] if isinstance(value, list | tuple) else value
