"""Syntaxes of tool calls in chat templates, and parsing of calls in them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from appliance.rendering.renderer import TOOLS, Malformed, ToolRequest
from appliance.rendering.tools import read_call
from curriculum.contract.environment import ToolSchema

_IDS = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Accepted ids from the model's own calls."""


@dataclass(frozen=True)
class CallSyntax:
    """Syntax of tool calls in a chat template: JSON between two texts."""

    begin: str
    """Text before the JSON, stripped; empty if a call is only JSON."""
    end: str
    arguments: str
    """Key of the arguments beside `name`; empty if the JSON is the arguments, with the name in `begin`."""
    between: str = ""
    """Text between two calls, stripped; empty if a turn has one call."""

    opens = "{"

    def named(self, text: str) -> str:
        """Returns the id of the tool call in a turn's text; empty without one."""
        try:
            value, _ = json.JSONDecoder().raw_decode(text.partition(self.begin)[2].lstrip() if self.begin else text)
        except (ValueError, RecursionError):
            return ""
        name = value.get("id") if isinstance(value, dict) else None
        return name if isinstance(name, str) and _IDS.fullmatch(name) else ""

    def end_of(self, text: str, at: int) -> int:
        """Returns the place behind the JSON that begins at `at`; -1 without one."""
        try:
            return json.JSONDecoder().raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            return -1

    def read(self, text: str, tools: Sequence[ToolSchema]) -> ToolRequest | Malformed | None:
        """Parses the tool call in a turn's text; None without a call."""
        start = text.find(self.begin) if self.begin else 0
        body = text[start + len(self.begin) :].lstrip()
        if start < 0 or (not self.begin and not body.startswith("{")):
            return None
        try:
            value, length = json.JSONDecoder().raw_decode(body)
        except (ValueError, RecursionError):
            return Malformed(text, "the call is not JSON") if self.begin else None
        if not self.begin and not (isinstance(value, dict) and value.keys() >= {"name", self.arguments}):
            return None
        if self.begin and self.begin in body[length:]:
            return Malformed(text, "one call at a time")
        if body[length:].strip() != self.end:
            return Malformed(text, "the call does not end as the model's format ends it")
        if not self.arguments:
            return read_call("python", value, text, tools)
        if not isinstance(value, dict):
            return Malformed(text, "the call is no table")
        return read_call(value.get("name"), value.get(self.arguments), text, tools)


_PARAMETER = re.compile(r"\s*<parameter=([^<>\n]{1,64})>\n?(.*?)\n?</parameter>", re.DOTALL)
_FUNCTION = re.compile(r"\s*<function=([^<>\n]{1,64})>")
_CLOSED = re.compile(r"\s*</function>")


@dataclass(frozen=True)
class TaggedSyntax:
    """Syntax of tool calls in a chat template: `<function=NAME>` with a tag for each argument, as Qwen3-Coder has it.
    Arguments that the tool does not declare as texts are JSON."""

    begin: str
    """Text before the function's tag, stripped."""
    end: str
    arguments: str = "parameter"
    between: str = ""

    opens = "<function="

    def named(self, text: str) -> str:
        """Returns no id: these calls have none."""
        return ""

    def end_of(self, text: str, at: int) -> int:
        """Returns the place behind the function that begins at `at`; -1 without one."""
        found = _FUNCTION.match(text, at)
        while found is not None:
            at, found = found.end(), _PARAMETER.match(text, found.end())
        closed = _CLOSED.match(text, at)
        return -1 if closed is None else closed.end()

    def read(self, text: str, tools: Sequence[ToolSchema]) -> ToolRequest | Malformed | None:
        """Parses the tool call in a turn's text; None without a call."""
        start = text.find(self.begin)
        if start < 0:
            return None
        called = _FUNCTION.match(text, start + len(self.begin))
        if called is None:
            return Malformed(text, "the call names no function")
        tool = next((one for one in tools or TOOLS if one.name == called[1]), None)
        declared_as = tool.parameters.get("properties", {}) if tool is not None else {}
        arguments: dict[str, Any] = {}
        at = called.end()
        while (given := _PARAMETER.match(text, at)) is not None:
            if given[1] in arguments:
                return Malformed(text, "the call gives an argument twice")
            arguments[given[1]] = given[2]
            schema = declared_as.get(given[1])
            if isinstance(schema, Mapping) and "string" not in schema.get("type", "string"):
                with suppress(ValueError, RecursionError):
                    arguments[given[1]] = json.loads(given[2])
            at = given.end()
        if "".join(text[at:].split()) != "</function>" + "".join(self.end.split()):
            return Malformed(text, "the call does not end as the model's format ends it")
        return read_call(called[1], arguments, text, tools)


def split_calls(syntax: CallSyntax | TaggedSyntax, text: str) -> tuple[str, list[str]]:
    """Splits a turn's text into the text before its calls, and a text for each call as a turn of its own would have
    it. Anything unexpected behind a call stays in the last text."""
    start = text.find(syntax.begin)
    if start < 0:
        return text, []
    between = r"\s*".join(["", *map(re.escape, syntax.between.split()), ""])
    another = re.compile(f"{between}(?={re.escape(syntax.opens)})")
    at, calls = start + len(syntax.begin), []
    while syntax.between and (body := text.find(syntax.opens, at)) >= 0 and not text[at:body].strip():
        end = syntax.end_of(text, body)
        behind = another.match(text, end) if end >= 0 else None
        if behind is None:
            break
        calls.append(syntax.begin + text[at:end] + syntax.end)
        at = behind.end()
    return text[:start], [*calls, syntax.begin + text[at:]]
