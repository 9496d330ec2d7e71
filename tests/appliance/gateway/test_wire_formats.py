"""Messages and Responses, as the real `anthropic` and `openai` clients have them: answers, streams, tools, refusals."""

from __future__ import annotations

import contextlib
import json
import time
import tracemalloc
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from chat_models import text_and_calls
from gateway_kit import SLOTS
from hypothesis import given, settings
from hypothesis import strategies as st
from property_budget import FROM_STRANGERS
from pydantic import ValidationError

from appliance.gateway.anthropic_messages import MessagesRequest
from appliance.gateway.chat_request import ChatRequest, ClientTool
from appliance.gateway.openai_responses import ResponsesRequest
from appliance.gateway.replies import GatewayError
from appliance.rendering.renderer import ToolRequest

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ClientTool(name="getWeather", description="Says how the weather is.", parameters=SCHEMA)
THEIR_TOOL = {"name": "getWeather", "description": WEATHER.description, "input_schema": SCHEMA}
OUR_TOOL = {"type": "function", "name": "getWeather", "description": WEATHER.description, "parameters": SCHEMA}
CALL = ToolRequest(tool="getWeather", arguments={"city": "Ulm"})


def claude(gateway: Any, token: str = "plain") -> Anthropic:
    return Anthropic(
        base_url=f"http://127.0.0.1:{gateway.port}", api_key=gateway.secrets.get(token, token), max_retries=0
    )


def said(gateway: Any, content: Any = "hi", token: str = "plain", **fields: Any) -> Any:
    messages = fields.pop("messages", [{"role": "user", "content": content}])
    given = {"model": "claude-opus-4", "max_tokens": 400, "messages": messages} | fields
    with claude(gateway, token) as client:
        return client.messages.create(**given)


def streamed(gateway: Any, token: str = "plain", **fields: Any) -> tuple[list[str], Any]:
    """Returns the kinds of the events of a stream, and the message that the client made of them."""
    given = {"model": "champion", "max_tokens": 400, "messages": [{"role": "user", "content": "hi"}]} | fields
    with claude(gateway, token) as client, client.messages.stream(**given) as stream:
        kinds = [event.type for event in stream]
        return kinds, stream.get_final_message()


def responded(gateway: Any, given: Any = "hi", token: str = "plain", **fields: Any) -> Any:
    with gateway.client(token) as client:
        return client.responses.create(model="champion", input=given, **fields)


def response_stream(gateway: Any, given: Any = "hi", token: str = "plain", **fields: Any) -> tuple[list[Any], Any]:
    with gateway.client(token) as client, client.responses.stream(model="champion", input=given, **fields) as stream:
        events = list(stream)
        return events, events[-1].response


def test_a_messages_client_gets_an_answer_in_one_piece_and_as_a_stream(gateway: Any) -> None:
    text = "first\n\nevent: message_stop\ndata: {}\n\n and \u00e9 \u2028 more" * 3
    gateway.says(gateway.renderer.answer(text))
    whole = said(gateway, system=[{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}])
    assert [block.text.strip() for block in whole.content] == [text.strip()]
    assert (whole.stop_reason, whole.model, whole.role) == ("end_turn", "champion", "assistant")
    assert whole.usage.output_tokens == len(gateway.renderer.answer(text))
    assert whole.assay["unused"] == []
    kinds, final = streamed(gateway)
    assert [block.text.strip() for block in final.content] == [text.strip()]
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.usage.input_tokens > 0
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    with claude(gateway) as client:
        assert [one.id for one in client.models.list().data] == ["champion"]


def test_a_messages_client_calls_a_tool_and_sends_its_result_back(gateway: Any) -> None:
    gateway.says(gateway.renderer.request(CALL, (WEATHER,)))
    messages: list[Any] = [{"role": "user", "content": "weather in Ulm?"}]
    whole = said(gateway, messages=messages, tools=[THEIR_TOOL])
    kinds, final = streamed(gateway, messages=messages, tools=[THEIR_TOOL])
    for one in (whole, final):
        (block,) = one.content
        assert (one.stop_reason, block.type, block.name, block.input) == (
            "tool_use", "tool_use", "getWeather", {"city": "Ulm"},
        )  # fmt: skip
    assert "input_json" in kinds
    gateway.says(gateway.renderer.answer("It rains."))
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    messages += [
        {"role": "assistant", "content": [thought, *[one.model_dump() for one in whole.content]]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "and tomorrow?"},
                {"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "rain"}]},
            ],
        },
    ]
    done = said(gateway, messages=messages, tools=[THEIR_TOOL], tool_choice={"type": "auto"})
    assert done.content[0].text.strip() == "It rains."
    assert done.assay["unused"] == ["messages.content.thinking"]


TWO = [ToolRequest(tool="getWeather", arguments={"city": city}) for city in ("Ulm", "Bern")]
OPENAI_TOOL = {"type": "function", "function": {name: OUR_TOOL[name] for name in ("name", "description", "parameters")}}


def asked_in_chat(gateway: Any, stream: bool, messages: list[Any], **fields: Any) -> tuple[str, list[Any], list[Any]]:
    """Returns text and calls of an answer, and the messages of a client that has run them."""
    fields |= {"model": "champion", "messages": messages, "tools": [OPENAI_TOOL]}
    with gateway.client("agent") as client:
        if stream:
            with client.chat.completions.stream(**fields) as events:
                said = events.get_final_completion().choices[0].message
        else:
            said = client.chat.completions.create(**fields).choices[0].message
    calls = said.tool_calls or []
    results = [{"role": "tool", "tool_call_id": one.id, "content": f"in {one.id}"} for one in calls]
    return said.content, [json.loads(one.function.arguments) for one in calls], [*messages, said, *results[::-1]]


def asked_in_messages(
    gateway: Any, stream: bool, messages: list[Any], **fields: Any
) -> tuple[str, list[Any], list[Any]]:
    fields |= {"messages": messages, "tools": [THEIR_TOOL], "token": "agent"}
    content = (streamed(gateway, **fields)[1] if stream else said(gateway, **fields)).content
    calls = [one for one in content if one.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": one.id, "content": f"in {one.id}"} for one in calls]
    more = [
        {"role": "assistant", "content": [one.model_dump() for one in content]},
        {"role": "user", "content": results},
    ]
    assert [one.type for one in content] == ["text"] + ["tool_use"] * len(calls)
    return content[0].text, [one.input for one in calls], [*messages, *more]


def asked_in_responses(
    gateway: Any, stream: bool, messages: list[Any], **fields: Any
) -> tuple[str, list[Any], list[Any]]:
    fields |= {"tools": [OUR_TOOL], "token": "agent"}
    final = response_stream(gateway, messages, **fields)[1] if stream else responded(gateway, messages, **fields)
    calls = [one for one in final.output if one.type == "function_call"]
    results = [{"type": "function_call_output", "call_id": one.call_id, "output": f"in {one.id}"} for one in calls]
    assert [one.type for one in final.output] == ["message"] + ["function_call"] * len(calls)
    assert len({one.id for one in final.output}) == len(final.output)
    back = [one.model_dump(exclude_none=True) for one in final.output]
    return final.output_text, [json.loads(one.arguments) for one in calls], [*messages, *back, *results]


FORMATS = [asked_in_chat, asked_in_messages, asked_in_responses]


def newest_prompt(gateway: Any) -> tuple[int, ...]:
    prompt: tuple[int, ...] = gateway.engine.requests[max(gateway.engine.requests)].prompt
    return prompt


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("asked", FORMATS)
def test_text_and_several_calls_reach_the_client_and_its_next_request_extends_the_turn(
    gateway: Any, asked: Any, stream: bool
) -> None:
    turn = text_and_calls(gateway.renderer, "I look.", *TWO, tools=(WEATHER,))
    gateway.says(turn)
    text, calls, messages = asked(gateway, stream, [{"role": "user", "content": f"where does it rain? {stream}"}])
    assert (text, calls) == ("I look.", [{"city": "Ulm"}, {"city": "Bern"}])
    sampled = newest_prompt(gateway) + turn
    gateway.says(gateway.renderer.answer("In Ulm."))
    text, calls, _ = asked(gateway, stream, messages)
    assert (text.strip(), calls) == ("In Ulm.", [])
    assert newest_prompt(gateway)[: len(sampled)] == sampled
    (kept,) = [one for one in gateway.kept.all() if one.nodes[1].ids == turn and one.nodes[0].ids + turn == sampled][:1]
    assert [node.why for node in kept.nodes if node.sampled] == ["", ""]
    assert kept.nodes[2].call.arguments == {"city": "Ulm"}


@pytest.mark.parametrize(
    ("asked", "single"),
    [
        (asked_in_chat, {"parallel_tool_calls": False}),
        (asked_in_messages, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        (asked_in_responses, {"parallel_tool_calls": False}),
    ],
)
def test_a_client_that_takes_one_call_gets_the_first_and_is_never_read_the_other(
    gateway: Any, asked: Any, single: dict[str, Any]
) -> None:
    gateway.says(text_and_calls(gateway.renderer, "I look.", *TWO, tools=(WEATHER,)))
    text, calls, messages = asked(gateway, False, [{"role": "user", "content": "where is it dry?"}], **single)
    assert (text, calls) == ("I look.", [{"city": "Ulm"}])
    gateway.says(gateway.renderer.answer("In Ulm."))
    asked(gateway, False, messages, **single)
    prompt = gateway.renderer.text(newest_prompt(gateway))
    assert "Bern" not in prompt
    assert prompt.index("I look.") < prompt.index("Ulm")


@pytest.mark.parametrize("asked", FORMATS)
def test_a_turn_with_a_call_of_no_tool_or_a_broken_one_is_text(gateway: Any, asked: Any) -> None:
    for wrong in (ToolRequest(tool="other", arguments={}), ToolRequest(tool="getWeather", arguments={"town": 3})):
        tools = (WEATHER, ClientTool(name="other"))
        gateway.says(text_and_calls(gateway.renderer, "I look.", CALL, wrong, tools=tools))
        text, calls, _ = asked(gateway, False, [{"role": "user", "content": "hi"}])
        assert calls == []
        assert text.startswith("I look.\n<tool_call>")
        assert text.count("<tool_call>") == 2


def test_a_stop_text_before_a_call_ends_the_answer_there(gateway: Any) -> None:
    gateway.says(text_and_calls(gateway.renderer, "I look. END", CALL, tools=(WEATHER,)))
    text, calls, _ = asked_in_chat(gateway, False, [{"role": "user", "content": "hi"}], stop=["END"])
    assert (text, calls) == ("I look. ", [])


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_are_beside_the_answer_of_a_chat(gateway: Any, stream: bool) -> None:
    gateway.says((*gateway.renderer._tokenizer.encode("<think>\nHow?\n</think>\n\n"), *gateway.renderer.answer("So.")))
    with gateway.client() as client:
        given = {"model": "champion", "messages": [{"role": "user", "content": "hi"}]}
        if stream:
            deltas = [one.choices[0].delta for one in client.chat.completions.create(stream=True, **given)]
            assert "".join(getattr(one, "reasoning_content", None) or "" for one in deltas) == "How?"
            assert "".join(one.content or "" for one in deltas).strip() == "So."
        else:
            message = client.chat.completions.create(**given).choices[0].message
            assert (message.reasoning_content, message.content.strip()) == ("How?", "So.")


def test_a_conversation_in_messages_is_one_session_and_is_continued_in_any_format(gateway: Any) -> None:
    gateway.says(gateway.renderer.request(CALL, (WEATHER,)))
    question = {"role": "user", "content": "weather in Ulm, please, as always?"}
    first = said(gateway, token="agent", messages=[question], tools=[THEIR_TOOL])
    (block,) = first.content
    gateway.says(gateway.renderer.answer("It rains."))
    items = [
        {"type": "message", **question},
        {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": '{ "city" : "Ulm" }'},
        {"type": "function_call_output", "call_id": block.id, "output": "rain"},
    ]
    second = responded(gateway, items, token="agent", tools=[OUR_TOOL])
    assert second.assay["session"] == first.assay["session"] is not None
    kept = gateway.kept.get(first.assay["session"])
    turns = [node for node in kept.nodes if node.sampled]
    assert [node.why for node in turns] == ["", ""]
    assert len({node.parent for node in kept.nodes}) == len(kept.nodes)  # one path


@pytest.mark.parametrize("stream", [False, True])
def test_limits_and_stop_texts_end_an_answer_with_their_own_reasons(gateway: Any, stream: bool) -> None:
    gateway.says(gateway.renderer.answer("one two three"))

    def ended(**fields: Any) -> Any:
        return streamed(gateway, **fields)[1] if stream else said(gateway, **fields)

    cut = ended(stop_sequences=["never", "two"])
    assert (cut.stop_reason, cut.stop_sequence, cut.content[0].text.strip()) == ("stop_sequence", "two", "one")
    assert ended(max_tokens=1).stop_reason == "max_tokens"
    if stream:
        events, final = response_stream(gateway, max_output_tokens=1)
        assert events[-1].type == "response.incomplete"
    else:
        final = responded(gateway, max_output_tokens=1)
    assert (final.status, final.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_the_tokens_of_a_prompt_are_counted_as_they_are_read(gateway: Any) -> None:
    messages: list[Any] = [{"role": "user", "content": "weather in Ulm?"}]
    with claude(gateway) as client:
        counted = client.messages.count_tokens(model="claude-x", messages=messages, tools=[THEIR_TOOL], system="hi")
    assert counted.input_tokens == said(gateway, messages=messages, tools=[THEIR_TOOL], system="hi").usage.input_tokens


def test_a_refusal_has_the_shape_of_its_format_and_a_long_prompt_says_what_clients_compact_on(gateway: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > \d+ maximum") as caught:
        said(gateway, "word " * SLOTS)
    assert caught.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]
    with pytest.raises(anthropic.AuthenticationError, match="token is missing"):
        said(gateway, token="wrong")
    with pytest.raises(anthropic.NotFoundError, match="unknown model"):
        said(gateway, model="gpt-5")
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    with pytest.raises(anthropic.BadRequestError, match=r"not supported here: .*messages.content.image"):
        said(gateway, [picture])
    with pytest.raises(openai.BadRequestError, match="previous_response_id") as refused:
        responded(gateway, previous_response_id="resp_1")
    assert refused.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.web_search_20250305"),
        ({"output_config": {"format": {"type": "xml"}}}, "output_config.format"),
        ({"extra_body": {"top_k": 5}}, "top_k"),
        ({"extra_body": {"mcp_servers": [{"type": "url", "url": "http://x", "name": "x"}]}}, "mcp_servers"),
        ({"extra_body": {"n": 1}}, "n"),
    ],
)
def test_what_messages_cannot_have_here_is_refused_by_name(gateway: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=rf"not supported here: {named}\b"):
        said(gateway, **fields)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"text": {"format": "json"}}, "text.format"),
        ({"given": [{"type": "item_reference", "id": "msg_1"}]}, "input.item_reference"),
        ({"given": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input_image"),
    ],
)
def test_what_responses_cannot_have_here_is_refused_by_name(gateway: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(openai.BadRequestError, match=rf"not supported here: .*{named}\b"):
        responded(gateway, **fields)


CALLED = {"type": "tool_use", "id": "a", "name": "getWeather", "input": {}}
NO_SCHEMA = {"type": "object", "$ref": "http://x/"}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"messages": [{"role": "user", "content": [CALLED]}]}, r"messages: only an assistant .* tool_use"),
        ({"messages": [{"role": "user", "content": 7}]}, r"messages.content: must be text"),
        ({"messages": [{"role": "assistant", "content": [CALLED | {"input": 7}]}]}, r"messages.input: input must be"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]},
            r"messages: its tool_use_id names no call",
        ),
        ({"tools": [THEIR_TOOL, THEIR_TOOL | {"input_schema": NO_SCHEMA}]}, r"tools.1.input_schema: a tool's input_"),
        ({"stop_sequences": [""]}, r"stop_sequences.0: "),
        ({"system": 7}, r"system must be text"),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": 3}}, r"tool_choice.disable_parallel_tool_use: "),
        ({"extra_body": {"parallel_tool_calls": True}}, r"not supported here: parallel_tool_calls"),
    ],
)
def test_a_fault_in_messages_names_its_own_field(gateway: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match=named):
        said(gateway, **fields)


@pytest.mark.parametrize(
    ("fields", "named", "param"),
    [
        ({"given": [{"role": "user", "content": 7}]}, r"input.content: must be text", "input.content"),
        ({"given": [{"role": "assistant", "content": "x"}]}, r"the last message must be", None),
        (
            {"given": [{"type": "function_call_output", "call_id": "a", "output": "x"}]},
            r"input: its call_id names no call",
            None,
        ),
        (
            {"given": [{"type": "function_call", "call_id": "a", "name": "x", "arguments": "7"}]},
            r"input.arguments: arguments must be",
            "input.arguments",
        ),
        ({"tools": [{"type": "web_search"}, OUR_TOOL | {"parameters": NO_SCHEMA}]}, r"tools.parameters: ", None),
        ({"max_output_tokens": 0}, r"max_output_tokens: ", "max_output_tokens"),
        ({"extra_body": {"instructions": 7}}, r"instructions must be text", None),
        ({"given": "word " * SLOTS}, r"context", "input"),
        ({"extra_body": {"messages": []}}, r"not supported here: messages", None),
    ],
)
def test_a_fault_in_responses_names_its_own_field(
    gateway: Any, fields: dict[str, Any], named: str, param: str | None
) -> None:
    with pytest.raises(openai.BadRequestError, match=named) as refused:
        responded(gateway, **fields)
    assert param in (None, refused.value.param)


def test_a_responses_client_gets_an_answer_in_one_piece_and_as_a_stream(gateway: Any) -> None:
    whole = responded(gateway, instructions="be brief", store=False, reasoning={"effort": "low"}, user="me")
    assert (whole.output_text.strip(), whole.status) == ("hello", "completed")
    assert whole.usage.output_tokens == len(gateway.renderer.answer("hello"))
    assert whole.assay["unused"] == ["reasoning", "user"]
    events, final = response_stream(gateway)
    assert final.output_text.strip() == "hello"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip


def test_a_stream_that_fails_ends_with_the_reason_in_its_own_format(
    gateway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise GatewayError(503, "another model came into service", retry=1)

    monkeypatch.setattr("appliance.gateway.app.read_turn", broken)
    events, final = response_stream(gateway)
    assert (events[-1].type, final.status, final.error.message) == (
        "response.failed", "failed", "another model came into service",
    )  # fmt: skip
    with pytest.raises(anthropic.APIStatusError, match="another model came into service"):
        streamed(gateway)


def test_a_responses_client_calls_functions_custom_tools_and_those_of_a_namespace(gateway: Any) -> None:
    custom = {"type": "custom", "name": "apply_patch", "description": "Applies a patch."}
    tools: list[Any] = [
        OUR_TOOL,
        custom,
        {"type": "namespace", "name": "home", "tools": [OUR_TOOL]},
        {"type": "web_search"},
    ]
    offered = ResponsesRequest.model_validate({"model": "champion", "input": "hi", "tools": tools}).offered
    assert [one.name for one in offered] == ["getWeather", "apply_patch", "home__getWeather"]
    patch = ToolRequest(tool="apply_patch", arguments={"input": "*** Begin"})
    inner = ToolRequest(tool="home__getWeather", arguments={"city": "Ulm"})
    cases = [
        (CALL, "function_call", '{"city": "Ulm"}'),
        (inner, "function_call", '{"city": "Ulm"}'),
        (patch, "custom_tool_call", "*** Begin"),
    ]
    for call, kind, text in cases:
        gateway.says(gateway.renderer.request(call, offered))
        whole = responded(gateway, tools=tools, tool_choice="auto")
        _, final = response_stream(gateway, tools=tools)
        for one in (whole, final):
            (item,) = one.output
            space = getattr(item, "namespace", None)
            assert (item.type, f"{space}__{item.name}" if space else item.name) == (kind, call.tool)
            assert (item.arguments if kind == "function_call" else item.input) == text
        assert whole.assay["unused"] == ["tools.web_search"]
        gateway.says(gateway.renderer.answer("done"))
        items = [{"role": "user", "content": "hi"}, item.model_dump(exclude_none=True)]
        items.append(
            {"type": f"{kind}_output", "call_id": item.call_id, "output": [{"type": "input_text", "text": "ok"}]}
        )
        assert responded(gateway, items, tools=tools).output_text.strip() == "done"


def test_a_run_of_the_models_items_is_one_turn() -> None:
    call = {"type": "function_call", "name": "getWeather", "arguments": "{}"}
    items = [
        {"role": "user", "content": "hi"},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {**call, "call_id": "a"},
        {**call, "call_id": "b"},
        {"type": "function_call_output", "call_id": "b", "output": "rain"},
        {"type": "function_call_output", "call_id": "a", "output": "sun"},
        {"role": "assistant", "content": "So"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "so."}]},
        {"role": "user", "content": "and?"},
    ]
    read = ResponsesRequest.model_validate({"model": "champion", "input": items, "tools": [OUR_TOOL]})
    roles = [(one.role, one.content, len(one.tool_calls or ())) for one in read.messages]
    assert roles == [
        ("user", "hi", 0),
        ("assistant", "I look.", 2),
        ("tool", "rain", 0),
        ("tool", "sun", 0),
        ("assistant", "So\nso.", 0),
        ("user", "and?", 0),
    ]
    assert read.unused == ("input.reasoning",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(
    ["text", "tool_use", "tool_result", "thinking", "image", "message", "function_call", "custom_tool_call",
     "function_call_output", "reasoning", "function", "custom", "namespace", "web_search", 3, None, "any", "tool"]
)  # fmt: skip
BLOCK = st.fixed_dictionaries(
    {"type": KINDS | st.lists(st.none(), max_size=1) | st.dictionaries(st.text(max_size=1), st.none(), max_size=1)},
    optional={
        **{name: st.text(max_size=4) | JSON for name in ("role", "text", "name", "id", "call_id", "tool_use_id")},
        **dict.fromkeys(("content", "input", "output", "arguments", "tools", "parameters", "input_schema"), JSON),
    },
)
FIELD = JSON | st.lists(BLOCK | JSON, max_size=4)


@pytest.mark.parametrize("shape", [MessagesRequest, ResponsesRequest])
@settings(max_examples=FROM_STRANGERS, deadline=None)
@given(
    body=st.dictionaries(
        st.sampled_from(
            ["messages", "input", "system", "instructions", "tools", "tool_choice", "text", "output_config", "store",
             "stop_sequences", "thinking", "max_tokens", "assay", "custom", "unused"]
        ),
        FIELD,
    )
)  # fmt: skip
def test_any_json_is_a_request_or_refused_and_no_client_sets_what_is_ours(
    shape: type[ChatRequest], body: dict[str, Any]
) -> None:
    whole = {"model": "champion", "messages": [{"role": "user", "content": "x"}], "input": "x"}
    whole.pop("input" if shape is MessagesRequest else "messages")
    try:
        read = shape.model_validate(whole | body)
    except ValidationError:
        return
    assert body.get("custom") is body.get("unused") is None
    json.dumps(read.model_dump(mode="json"))


def test_neighbours_of_one_role_are_one_message_and_results_find_their_calls() -> None:
    """As Anthropic describes it; clients rely on it."""

    def uses(*names: str) -> list[dict[str, Any]]:
        return [{"type": "tool_use", "id": name, "name": "getWeather", "input": {"city": name}} for name in names]

    def results(*names: str) -> list[dict[str, Any]]:
        return [{"type": "tool_result", "tool_use_id": name, "content": name, "is_error": True} for name in names]

    question = {"role": "user", "content": "hi"}
    apart = [
        question,
        {"role": "assistant", "content": uses("a")},
        {"role": "assistant", "content": uses("b")},
        {"role": "user", "content": results("b")},
        {"role": "user", "content": [*results("a"), {"type": "text", "text": "and?"}]},
    ]
    read = MessagesRequest.model_validate({"model": "champion", "messages": apart, "tools": [THEIR_TOOL]})
    assert [(one.role, one.content, len(one.tool_calls or ())) for one in read.messages] == [
        ("user", "hi", 0), ("assistant", "", 2), ("tool", "b", 0), ("tool", "a", 0), ("user", "and?", 0),
    ]  # fmt: skip
    assert read.unused == ("messages.content.is_error",)


MANY = 20_000
LARGE: list[tuple[type[ChatRequest], dict[str, Any]]] = [
    (ResponsesRequest, {"input": [{"role": "assistant", "content": "a"}] * MANY}),
    (
        ResponsesRequest,
        {"input": "x", "tools": [{"type": "namespace", "name": "n" * 10**6, "tools": [OUR_TOOL] * MANY}]},
    ),
    (MessagesRequest, {"messages": [{"role": "user", "content": [{"type": "tool_use"}, {"type": "text"}] * MANY}]}),
    (MessagesRequest, {"messages": [{"role": "user", "content": "x"}] * MANY}),
]


@pytest.mark.parametrize(("shape", "body"), LARGE)
def test_a_large_hostile_body_costs_little(shape: type[ChatRequest], body: dict[str, Any]) -> None:
    tracemalloc.start()
    begun = time.process_time()
    with contextlib.suppress(ValidationError):
        shape.model_validate({"model": "champion"} | body)
    spent, (_, peak) = time.process_time() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert spent < 10
    assert peak < 200 << 20


def test_a_turn_that_cannot_be_delivered_as_calls_is_its_text_without_thoughts_and_marks_of_its_end(
    gateway: Any,
) -> None:
    gateway.says((*gateway.renderer.plain("Let me see."), *gateway.renderer.request(CALL, (WEATHER,))))
    said = gateway.ask("Rome?").choices[0].message
    assert said.tool_calls is None
    assert said.content.startswith("Let me see.")
    assert "getWeather" in said.content
    assert "<|im_end|>" not in said.content


def test_thoughts_are_told_to_clients_of_the_other_formats_that_take_them(gateway: Any) -> None:
    gateway.says((*gateway.renderer._tokenizer.encode("<think>\nHow?\n</think>\n\n"), *gateway.renderer.answer("So.")))
    for thinking, kinds in (({"type": "enabled", "budget_tokens": 1024}, ["thinking", "text"]), (None, ["text"])):
        fields = {"thinking": thinking} if thinking else {}
        whole, (events, final) = (
            said(gateway, max_tokens=2_000, **fields),
            streamed(gateway, max_tokens=2_000, **fields),
        )
        for message in (whole, final):
            assert [one.type for one in message.content] == kinds
            assert message.content[-1].text.strip() == "So."
            assert not thinking or message.content[0].thinking == "How?"
        assert ("thinking" in events) == bool(thinking)
    for summary, kinds in (("auto", ["reasoning", "message"]), (None, ["message"])):
        fields = {"reasoning": {"effort": "low", "summary": summary}}
        whole, (events, final) = responded(gateway, **fields), response_stream(gateway, **fields)
        for response in (whole, final):
            assert [one.type for one in response.output] == kinds
            assert response.output_text.strip() == "So."
            assert not summary or response.output[0].summary[0].text == "How?"
        deltas = [one.delta for one in events if one.type == "response.reasoning_summary_text.delta"]
        assert "".join(deltas) == ("How?" if summary else "")
        again = [{"role": "user", "content": "hi"}, *final.output, {"role": "user", "content": "and?"}]
        assert responded(gateway, again).status == "completed"
