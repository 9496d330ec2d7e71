"""Reads a server's tool list into descriptions that a model may see. Pure.

Invariants: a list is accepted whole or refused, naming the tool and what to change; nothing is repaired except control
characters. Names are normalized (`getSum` to `getsum`, `read-file` to `read_file`), and the server's own is kept too.
Schemas are bounded, refer to nothing outside, and are checked in bounded time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from curriculum.contract.environment import ToolSchema
from curriculum.contract.errors import CurriculumError
from curriculum.worlds.tool_schema import printable, schema_fault, unusable
from runtime.model import FrozenModel

MOST_TOOLS = 64
CALLED_CHARS = 64
DESCRIPTION_CHARS = 2_000
SCHEMA_CHARS, SCHEMA_DEPTH = 6_000, 16
WHOLE_CHARS = 32_000
"""Characters of all descriptions of one server."""
TAKEN = ("python", "list_served_tools")
"""Reserved tool names."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
CALLED = re.compile(rf"[A-Za-z][A-Za-z0-9_./-]{{0,{CALLED_CHARS - 1}}}")
MARK = re.compile(r"<[|\uff5c]|[|\uff5c]>")
"""Delimiters of chat formats. A model's own format is checked where the model is known."""


class ServedTool(FrozenModel):
    name: str = Field(pattern=rf"^{NAME.pattern}$")
    called: str = Field(pattern=rf"^{CALLED.pattern}$")
    """Name at the server."""
    description: str = Field(max_length=DESCRIPTION_CHARS)
    parameters: dict[str, Any]

    @property
    def as_schema(self) -> ToolSchema:
        return ToolSchema(name=self.name, description=self.description, parameters=self.parameters)


class ServerListing(NamedTuple):
    tools: tuple[ServedTool, ...]
    digest: str
    """SHA-256 of the server's complete list, which its world compares."""


class _Said(FrozenModel):
    name: str
    description: str
    parameters: dict[str, Any]


class ListedPage(FrozenModel):
    """Page of an MCP server's tool list as the guest reports it: hostile text."""

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    count: int = Field(ge=1, le=MOST_TOOLS)
    tools: list[_Said] = Field(min_length=1, max_length=MOST_TOOLS)


_PAGE = TypeAdapter(ListedPage)


def read_page(text: str) -> ListedPage:
    """Parses a page of an MCP server's tool list. Raises CurriculumError if it is not a list of tools."""
    try:
        return _PAGE.validate_json(text)
    except ValidationError as error:
        raise CurriculumError(f"the server's tool list is unusable: {error.errors()[0]['msg']}") from error


def listing_of(pages: Sequence[ListedPage]) -> ServerListing:
    """Joins the pages of an MCP server's tool list. Raises CurriculumError for a list that no model may see, or one
    that changed between pages."""
    said = [tool for page in pages for tool in page.tools]
    if len({(page.digest, page.count) for page in pages}) != 1 or len(said) != pages[0].count:
        raise CurriculumError("the server's tool list is unusable: it changes while it is read")
    tools = tuple(_served(one) for one in said)
    names = [tool.name for tool in tools]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise CurriculumError(
            f"the server has two tools named {twice!r}", hint="use names that differ in more than case and signs"
        )
    if sum(len(tool.model_dump_json()) for tool in tools) > WHOLE_CHARS:
        raise CurriculumError(
            f"the server's tools take more than {WHOLE_CHARS:,} characters", hint="shorten the descriptions"
        )
    return ServerListing(tools, pages[0].digest)


def _served(said: _Said) -> ServedTool:
    if not CALLED.fullmatch(said.name):
        raise CurriculumError(
            f"invalid tool name {said.name[:40]!a}",
            hint=f"use at most {CALLED_CHARS} letters, digits, `_`, `-`, `.` and `/`, a letter first",
        )
    name = re.sub(r"[^a-z0-9_]", "_", said.name.lower())
    described = printable(said.description).strip()
    if len(described) > DESCRIPTION_CHARS:
        raise _refused(said.name, f"has a description of more than {DESCRIPTION_CHARS:,} characters")
    try:
        tool = ServedTool(name=name, called=said.name, description=described, parameters=said.parameters)
    except ValidationError as error:
        raise _refused(said.name, f"cannot be used: {error.errors()[0]['msg']}") from error
    if why := fault_in(tool):
        raise CurriculumError(why, hint="change the server, or remove this tool")
    return tool


def _refused(name: str, why: str) -> CurriculumError:
    return CurriculumError(f"the server's tool {name[:40]!a} {why}", hint="change the server's description of it")


def fault_in(tool: ServedTool) -> str:
    """Returns the reason why a model may not see this tool of an MCP server; empty if it may."""
    what = f"the server's tool {tool.called[:40]!a}"
    if tool.name in TAKEN:
        return f"{what} has a reserved name"
    if why := unusable(tool.parameters, SCHEMA_DEPTH) or unusable(tool.description):
        return f"{what}: its parameters {why}"
    text = json.dumps(tool.parameters, ensure_ascii=False)
    if len(text) > SCHEMA_CHARS:
        return f"{what}: its parameters have more than {SCHEMA_CHARS:,} characters"
    if MARK.search(tool.description) or MARK.search(text):
        return f"{what} has a chat format's delimiter in its description, such as <|"
    if any(printable(one) != one for one in _texts(tool.parameters)):
        return f"{what}: its parameters contain control characters"
    if why := schema_fault(tool.parameters):
        return f"{what}: its parameters {' '.join(printable(why).split())}"
    return ""


def _texts(value: Any) -> Iterator[str]:
    """Yields every string in plain JSON, keys included."""
    if isinstance(value, str):
        yield value
    for inner in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)
