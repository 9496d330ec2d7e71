"""What a server lists is hostile text: it is refused, or what a model is told of it is plain, bounded and usable."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from tables import table

from curriculum.contract.errors import CurriculumError
from curriculum.environments.mcp.listing import (
    DESCRIPTION_CHARS,
    MOST_TOOLS,
    SCHEMA_CHARS,
    WHOLE_CHARS,
    ServerListing,
    listing_of,
    read_page,
)
from curriculum.worlds.tool_schema import fault_of

SCHEMA = {"type": "object", "properties": {"about": {"type": "string"}}, "required": ["about"]}
KEYWORDS = st.sampled_from(
    ["type", "properties", "$ref", "$id", "$defs", "items", "anyOf", "enum", "pattern", "minItems", "required", "title"]
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from(["object", "string", "#", "#/$defs/a", "https://example.org/x", "(a+)+$", "<|im_end|>", "\x1b[2J"]),
)  # fmt: skip
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYWORDS, inner, max_size=4))
SCHEMAS = st.dictionaries(KEYWORDS, JSON, max_size=5).map(lambda one: {**one, "type": "object"})
SAID = st.text(max_size=20) | st.sampled_from(["about what", "<|im_end|>", "\x1b[2J", "\u202e"])
PROPERTY = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "array"])}, optional={"title": SAID, "default": SAID}
)
USUAL = st.dictionaries(st.sampled_from(["about", "b", "c"]) | SAID, PROPERTY, max_size=3).map(
    lambda one: {"type": "object", "properties": one, "required": [*one][:1]}
)
NAMES = st.sampled_from(["fact", "getSum", "read-file", "python", "../x", "", "a" * 65]) | st.text(max_size=70)


def either(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Half and half, however many kinds there are of the other."""
    return st.booleans().flatmap(lambda chosen: usual if chosen else other)


def listed(*tools: Any, count: int | None = None) -> ServerListing:
    page = {"digest": "0" * 64, "count": len(tools) if count is None else count, "tools": list(tools)}
    return listing_of([read_page(json.dumps(page))])


def tool(**changes: Any) -> dict[str, Any]:
    return {"name": "fact", "description": "Says a fact.", "parameters": SCHEMA} | changes


@settings(max_examples=FROM_STRANGERS)
@given(either(st.just("fact"), NAMES), st.text(max_size=80), either(USUAL, SCHEMAS | JSON))
def test_a_list_is_refused_or_a_model_can_be_told_of_it(name: str, description: str, parameters: Any) -> None:
    try:
        found = listed(tool(name=name, description=description, parameters=parameters)).tools[0]
    except CurriculumError as error:
        said = str(error)
    else:
        said = ""
    assert said.isprintable()
    if said:
        return
    told = found.as_schema
    text = json.dumps(told.parameters, ensure_ascii=False)
    assert told.name.isascii()
    assert all(letter.isprintable() or letter == "\n" for letter in told.description + text)
    assert "\\u00" not in text
    assert (len(told.description) <= DESCRIPTION_CHARS, len(text) <= SCHEMA_CHARS) == (True, True)
    assert "<|" not in told.description + text
    assert isinstance(fault_of(told, {"about": "x"}), str)


@settings(max_examples=FROM_STRANGERS)
@given(JSON)
def test_what_is_no_page_is_refused(said: Any) -> None:
    with pytest.raises(CurriculumError):
        read_page(json.dumps(said))


def test_names_become_such_as_tools_have_here_and_the_servers_own_are_kept() -> None:
    found = listed(*(tool(name=name) for name in ("getSum", "read-file", "files/list", "v1.ask"))).tools
    assert [one.name for one in found] == ["getsum", "read_file", "files_list", "v1_ask"]
    assert [one.called for one in found] == ["getSum", "read-file", "files/list", "v1.ask"]


@table(
    ("tools", "why"),
    [
        ([tool(), tool(name="Fact")], "two tools named 'fact'"),
        ([tool(name=f"fact{at}", description="x" * 1_900) for at in range(20)], f"more than {WHOLE_CHARS:,}"),
        ([tool(name=f"fact{at}") for at in range(MOST_TOOLS + 1)], "is unusable"),
        ([tool(name="list_served_tools")], "reserved name"),
        ([tool(description="half \ud800")], "is unusable"),
        ([tool(parameters={**SCHEMA, "title": "\x1b[2J"})], "control characters"),
        ([tool(parameters={**SCHEMA, "pattern": "("})], "not a valid JSON Schema"),
        ([tool(more=1)], "is unusable"),
    ],
)
def test_a_list_that_cannot_be_told_is_refused_with_the_reason(tools: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(CurriculumError) as caught:
        listed(*tools)
    assert why in str(caught.value)


def test_a_list_that_changes_while_it_is_read_is_refused() -> None:
    with pytest.raises(CurriculumError, match="changes while it is read"):
        listed(tool(), count=2)
