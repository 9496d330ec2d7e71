"""The packages openai and anthropic read every answer and every stream, whatever fields a request has."""

from __future__ import annotations

from itertools import product
from typing import Any

import anthropic
import pytest
from gateway_kit import Gateway

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
MESSAGES: list[Any] = [{"role": "user", "content": "Rome?"}]
CHAT: list[dict[str, Any]] = [
    {},
    {"seed": 3, "temperature": 0, "stop": ["x", "y"]},
    {"top_p": 0.3, "user": "me", "metadata": {"a": "b"}},
    {"logprobs": True, "top_logprobs": 3},
    {"n": 3, "logprobs": True},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}},
    {"response_format": {"type": "json_object"}, "presence_penalty": 0, "service_tier": "auto"},
    {"parallel_tool_calls": False, "reasoning_effort": "low", "store": False},
    {"messages": [{"role": "developer", "content": "Be brief."}, *MESSAGES], "verbosity": "low"},
    {"messages": [*MESSAGES, {"role": "assistant", "content": "Where?"}, {"role": "user", "content": "Here."}]},
    {"prompt_cache_key": "k", "safety_identifier": "s", "modalities": ["text"]},
]
RESPONSES: list[dict[str, Any]] = [
    {},
    {"instructions": "Be brief.", "temperature": 0.5, "top_p": 0.5},
    {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
    {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
    {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
    {"reasoning": {"effort": "low"}, "metadata": {"a": "b"}, "parallel_tool_calls": False},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": "Rome?"}]}], "truncation": "auto"},
]
ANTHROPIC: list[dict[str, Any]] = [
    {},
    {"system": "Be brief.", "extra_body": {"temperature": 0}},
    {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "extra_body": {"top_p": 1e-9},
    },
    {"stop_sequences": ["x"], "metadata": {"user_id": "me"}},
    {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    {"thinking": {"type": "disabled"}, "service_tier": "auto"},
    {"messages": [*MESSAGES, {"role": "assistant", "content": [{"type": "text", "text": "Where?"}]}, *MESSAGES]},
]
FUNCTION: dict[str, Any] = {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}
CHOICES = (None, "auto", "required")


def test_there_are_120_requests() -> None:
    assert len(CHAT) * 3 * 2 + len(RESPONSES) * 2 * 2 + len(ANTHROPIC) * 2 * 2 >= 120


@pytest.mark.parametrize(("fields", "choice"), list(product(CHAT, CHOICES)))
def test_the_package_openai_reads_every_chat(drawing: Gateway, fields: dict[str, Any], choice: str | None) -> None:
    tools = {} if choice is None else {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": choice}
    asked = {"messages": MESSAGES, "seed": 1, "max_tokens": 24, **fields, **tools}
    whole = drawing.ask(**asked)
    assert [one.index for one in whole.choices] == list(range(fields.get("n", 1)))
    with drawing.client() as client:
        stream = client.chat.completions.create(
            model="champion", stream=True, stream_options={"include_usage": True}, **asked
        )
        chunks = list(stream)
    texts = dict.fromkeys(range(len(whole.choices)), "")
    calls: dict[int, list[str]] = {}
    for choice_ in (one for chunk in chunks for one in chunk.choices):
        texts[choice_.index] += choice_.delta.content or ""
        calls.setdefault(choice_.index, []).extend(call.function.name for call in choice_.delta.tool_calls or ())
    for one in whole.choices:
        assert texts[one.index] == (one.message.content or "")
        assert calls[one.index] == [call.function.name for call in one.message.tool_calls or ()]
    assert chunks[-1].usage == whole.usage
    if choice == "required":
        assert all(one.finish_reason in ("tool_calls", "length") for one in whole.choices)


@pytest.mark.parametrize(("fields", "tools"), list(product(RESPONSES, (False, True))))
def test_the_package_openai_reads_every_response(drawing: Gateway, fields: dict[str, Any], tools: bool) -> None:
    offered = {"tools": [{"type": "function", **FUNCTION}], "tool_choice": "required"} if tools else {}
    asked: dict[str, Any] = {"input": "Rome?", "store": False, "max_output_tokens": 24, **fields, **offered}
    with drawing.client() as client:
        whole = client.responses.create(model="champion", extra_body={"seed": 1}, **asked)
        with client.responses.stream(model="champion", extra_body={"seed": 1}, **asked) as stream:
            final: Any = list(stream)[-1]
    assert final.type == f"response.{whole.status}"
    final = final.response
    shapes = [[(item.type, getattr(item, "name", "")) for item in one.output] for one in (whole, final)]
    assert shapes[0] == shapes[1]
    assert (whole.output_text, whole.status) == (final.output_text, final.status)


@pytest.mark.parametrize(("fields", "tools"), list(product(ANTHROPIC, (False, True))))
def test_the_package_anthropic_reads_every_message(drawing: Gateway, fields: dict[str, Any], tools: bool) -> None:
    tool = {"name": "weather", "description": "Tells it.", "input_schema": SCHEMA}
    offered = {"tools": [tool], "tool_choice": {"type": "any"}} if tools else {}
    asked: dict[str, Any] = {"messages": MESSAGES, "max_tokens": 24, "extra_body": {"temperature": 0}}
    asked |= fields | offered
    url, key = f"http://127.0.0.1:{drawing.port}", drawing.secrets["plain"]
    with anthropic.Anthropic(base_url=url, api_key=key, max_retries=0) as client:
        whole = client.messages.create(model="claude-sonnet", **asked)
        with client.messages.stream(model="claude-sonnet", **asked) as stream:
            final = stream.get_final_message()
    assert [one.type for one in whole.content] == [one.type for one in final.content]
    assert (whole.stop_reason, whole.usage.output_tokens) == (final.stop_reason, final.usage.output_tokens)
    if tools:
        assert whole.stop_reason in ("tool_use", "max_tokens")
