"""Answers that a request restricts: to a schema, to a call, to likely tokens; and what it is told of probabilities.

The model has random weights, so that nothing but the restriction makes its answers fit.
"""

from __future__ import annotations

import json
import math
from typing import Any

import anthropic
import jsonschema
import openai
import pytest
from gateway_kit import Gateway

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Rome", "Oslo"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "tags": {"type": "array", "items": {"enum": ["dry", "wet"]}, "maxItems": 3},
    },
    "required": ["city", "days", "tags"],
    "additionalProperties": False,
}
FORM: Any = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
OTHER: Any = {"type": "function", "function": {"name": "stop", "parameters": NOTHING}}
LONG = pytest.param(1_000, marks=pytest.mark.slow)


@pytest.mark.parametrize("count", [8, LONG])
def test_every_answer_fits_its_schema(drawing: Gateway, count: int) -> None:
    for seed in range(0, count, 8):
        answers = drawing.ask("Rome?", response_format=FORM, seed=seed, n=8, max_tokens=200).choices
        for one in answers:
            assert one.finish_reason == "stop"
            jsonschema.validate(json.loads(one.message.content), SCHEMA)
    assert len({one.message.content for one in answers}) > 4, "they are drawn independently"


def test_an_object_without_a_schema_is_an_object(drawing: Gateway) -> None:
    said = drawing.ask("Rome?", response_format={"type": "json_object"}, seed=3, max_tokens=60).choices[0]
    assert said.message.content.startswith("{")
    assert said.finish_reason == "length" or isinstance(json.loads(said.message.content), dict)


@pytest.mark.parametrize(
    ("tools", "choice", "names"),
    [
        ([TOOL], "required", {"weather"}),
        ([TOOL, OTHER], "required", {"weather", "stop"}),
        ([TOOL, OTHER], {"type": "function", "function": {"name": "stop"}}, {"stop"}),
    ],
)
def test_a_demanded_call_is_made(drawing: Gateway, tools: list[Any], choice: Any, names: set[str]) -> None:
    called = set()
    for seed in range(6):
        said = drawing.ask("Rome?", tools=tools, tool_choice=choice, seed=seed, max_tokens=200)
        (call,) = said.choices[0].message.tool_calls
        called.add(call.function.name)
        if call.function.name == "weather":
            jsonschema.validate(json.loads(call.function.arguments), SCHEMA)
        assert said.choices[0].finish_reason == "tool_calls"
        assert "tool_choice" not in said.assay["unused"]
    assert called == names


def test_a_restricted_turn_is_kept_and_not_trained_on(drawing: Gateway) -> None:
    for fields in ({"response_format": FORM}, {"top_p": 0.5}, {"tools": [TOOL], "tool_choice": "required"}):
        said = drawing.ask("Rome?", token="agent", seed=1, max_tokens=100, **fields)
        (drawn,) = [one for one in drawing.kept.get(said.assay["session"]).nodes if one.sampled]
        assert drawn.why == "its draws were restricted as the client asked"
        assert not drawn.trains
    free = drawing.ask("Rome?", token="agent", seed=1, max_tokens=20, logprobs=True, top_logprobs=5)
    assert [one.why for one in drawing.kept.get(free.assay["session"]).nodes if one.sampled] == [""]


def test_probabilities_are_of_the_tokens_drawn_and_sum_to_at_most_one(drawing: Gateway) -> None:
    said = drawing.ask("Rome?", seed=5, max_tokens=12, logprobs=True, top_logprobs=20)
    content = said.choices[0].logprobs.content
    assert len(content) == 12
    for one in content:
        tops = {top.token: top.logprob for top in one.top_logprobs}
        assert len(one.top_logprobs) == 20
        assert sum(map(math.exp, (top.logprob for top in one.top_logprobs))) <= 1 + 1e-5
        assert one.logprob <= max(tops.values()) + 1e-5
        known = "\ufffd" not in one.token and one.token in tops  # parts of a character look alike
        assert not known or abs(tops[one.token] - one.logprob) < 1e-4
        assert one.bytes is None or bytes(one.bytes).decode() == one.token
    assert drawing.ask("Rome?", seed=5, max_tokens=12).choices[0].logprobs is None


@pytest.mark.parametrize("fields", [{}, {"response_format": FORM}])
def test_a_temperature_near_nothing_draws_the_most_probable_token(drawing: Gateway, fields: dict[str, Any]) -> None:
    tiny, greedy = (
        drawing.ask("Rome?", temperature=one, top_p=0.5, max_tokens=60, **fields).choices[0].message.content
        for one in (1e-40, 0)
    )
    assert tiny == greedy


def test_a_call_by_a_schema_that_nothing_can_be_drawn_by_stays_a_wish(drawing: Gateway) -> None:
    tool = {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 1999993}}, "required": ["a"]}
    said = drawing.ask(
        "Rome?",
        tools=[{"type": "function", "function": {"name": "odd", "parameters": tool}}],
        tool_choice="required",
        response_format=FORM,
        max_tokens=5,
    )
    assert said.assay["unused"] == ["tool_choice", "response_format"]


def test_likely_tokens_alone_are_drawn_and_share_the_probability(drawing: Gateway) -> None:
    said = drawing.ask("Rome?", seed=5, max_tokens=20, top_p=1e-6, logprobs=True, top_logprobs=2)
    for one in said.choices[0].logprobs.content:
        assert (one.logprob, len(one.top_logprobs)) == (0.0, 1), "the most probable token alone is left"
    greedy = drawing.ask("Rome?", temperature=0, max_tokens=20)
    assert said.choices[0].message.content == greedy.choices[0].message.content


def test_neighbours_of_a_restricted_answer_are_drawn_as_ever(drawing: Gateway) -> None:
    alone = drawing.ask("Oslo?", seed=9, max_tokens=30).choices[0].message.content
    with (
        drawing.client() as client,
        client.chat.completions.create(
            model="champion", messages=[{"role": "user", "content": "Rome?"}], response_format=FORM, stream=True, n=4
        ) as stream,
    ):
        assert drawing.ask("Oslo?", seed=9, max_tokens=30).choices[0].message.content == alone
        parts: dict[int, str] = {}
        for chunk in stream:
            for choice in chunk.choices:
                parts[choice.index] = parts.get(choice.index, "") + (choice.delta.content or "")
    for text in parts.values():
        jsonschema.validate(json.loads(text), SCHEMA)
    assert sorted(parts) == [0, 1, 2, 3]


def test_the_other_formats_are_bound_too(drawing: Gateway) -> None:
    with drawing.client() as client:
        said = client.responses.create(
            model="champion",
            input="Rome?",
            store=False,
            include=["message.output_text.logprobs"],
            max_output_tokens=200,
            text={"format": {"type": "json_schema", "name": "weather", "schema": SCHEMA}},
        )
    jsonschema.validate(json.loads(said.output_text), SCHEMA)
    part: Any = said.output[0]
    assert "".join(one.token for one in part.content[0].logprobs).strip() == said.output_text
    with anthropic.Anthropic(
        base_url=f"http://127.0.0.1:{drawing.port}", api_key=drawing.secrets["plain"], max_retries=0
    ) as client:
        asked: Any = [{"role": "user", "content": "Rome?"}]
        config: Any = {"format": {"type": "json_schema", "schema": SCHEMA}}
        told = client.messages.create(model="champion", max_tokens=200, messages=asked, output_config=config)
        jsonschema.validate(json.loads(told.content[0].text), SCHEMA)
        tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
        called = client.messages.create(
            model="champion", max_tokens=200, messages=asked, tools=tools, tool_choice={"type": "any"}
        )
    jsonschema.validate(called.content[0].input, SCHEMA)
    assert called.stop_reason == "tool_use"


def form(schema: dict[str, Any]) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", **schema}}}


ENDLESS = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"response_format": {"type": "json_schema"}}, "json_schema is needed"),
        ({"response_format": {"type": "yaml"}}, "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": ENDLESS}}},
            "too many steps",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}},
            "JSON Schema",
        ),
        (
            {"response_format": form({"properties": {"a": {"type": "integer", "multipleOf": 1999993}}})},
            "response_format: it is too complex",
        ),
        ({"response_format": form({"patternProperties": {f"^p{at:03}": {} for at in range(700)}})}, "too complex"),
        ({"response_format": form({"properties": {f"p{at}": {} for at in range(800)}})}, "too complex|simpler schema"),
        ({"response_format": form({"properties": {"a": {"not": {}}}, "required": ["a"]})}, "response_format: "),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"top_p": 0}, "top_p"),
        ({"n": 9}, "n"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 2}, "top_logprobs are given only with logprobs"),
    ],
)
def test_what_nothing_can_be_drawn_by_is_refused(drawing: Gateway, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(openai.BadRequestError, match=said):
        drawing.ask("Rome?", max_tokens=50, **fields)
    assert drawing.ask("Rome?", max_tokens=3).choices
