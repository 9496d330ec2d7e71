"""`/v1/messages` and its token count: Anthropic's format, translated to and from that of chat completions. Pure.

Invariants: a request becomes a chat request and passes all its checks; a block or field that has no counterpart is
refused by name, and one without an effect is listed in `assay.unused`. Thoughts are not read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from appliance.gateway.champion import NAME
from appliance.gateway.chat_fields import NAME_CHARS, kind_of, supported
from appliance.gateway.chat_request import ChatRequest
from appliance.gateway.replies import ChatReply, StreamHead, WireFormat, framed, pieces

CLAUDE = "claude-"
"""Beginning of the model names that clients have built in; here they name the model in service."""
_SAME = frozenset({"model", "max_tokens", "temperature", "top_p", "stream", "assay"})
"""Fields with the name and meaning that they have in a chat request."""
_READ = frozenset({"system", "messages", "tools", "tool_choice", "stop_sequences"})
_UNUSED = frozenset(
    {"metadata", "service_tier", "thinking", "cache_control", "context_management", "inference_geo", "speed"}
)
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_NO_PARTS = _THOUGHTS | {"tool_use", "tool_result"}
"""Blocks that become something else than text."""
_BESIDE = ("cache_control", "citations", "is_error")
"""Fields of a block without an effect."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_ENDED = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class MessagesRequest(ChatRequest):
    """Request of `/v1/messages`, as a chat request."""

    names = {  # noqa: RUF012 - a class variable
        "stop": "stop_sequences",
        "response_format": "output_config.format",
        "arguments": "input",
        "parameters": "input_schema",
        "tool_calls": "tool_use",
        "tool_call_id": "tool_use_id",
        "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    }
    renumbered = "messages"

    thinks: bool = False
    """True if the client takes thoughts."""

    @model_validator(mode="before")
    @classmethod
    def _only_supported(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        reading = _MessagesReading()
        chat = reading.chat({name: one for name, one in value.items() if one is not None})
        read = supported(chat, ChatRequest.model_fields.keys() - {"unused"}, reading.told, reading.refused)
        thinking = value.get("thinking")
        return {**read, "thinks": isinstance(thinking, dict) and kind_of(thinking) in ("enabled", "adaptive")}


class _MessagesReading:
    """Translation of one request, with the names of what has no effect and of what is refused."""

    def __init__(self) -> None:
        self.told: set[str] = set()
        self.refused: list[str] = []

    def chat(self, given: dict[str, Any]) -> dict[str, Any]:
        self.told |= given.keys() & _UNUSED
        self.refused += [name for name in given if name not in _SAME | _READ | _UNUSED | {"output_config"}]
        chat = {name: given[name] for name in _SAME if name in given}
        chat |= self._output(given.get("output_config"))
        if isinstance(model := given.get("model"), str) and model.startswith(CLAUDE):
            chat["model"] = NAME
        messages = given.get("messages")
        chat["messages"] = messages
        if not isinstance(given.get("system", ""), str | list):
            raise PydanticCustomError("system", "system must be text or a list")
        if isinstance(messages, list):
            first = [{"role": "system", "content": self._parts(given["system"])}] if given.get("system") else []
            chat["messages"] = first + [made for one in _merged(messages) for made in self._message(one)]
        if "tools" in given:
            tools = given["tools"]
            chat["tools"] = [self._tool(one) for one in tools] if isinstance(tools, list) else tools
        if "tool_choice" in given:
            choice = given["tool_choice"]
            chat["tool_choice"] = self._choice(choice)
            alone = choice.get("disable_parallel_tool_use") if isinstance(choice, dict) else None
            if alone is not None:
                chat["parallel_tool_calls"] = not alone if isinstance(alone, bool) else alone
        if "stop_sequences" in given:
            chat["stop"] = given["stop_sequences"]
        return chat

    def _output(self, config: Any) -> dict[str, Any]:
        """Returns the form of the answer as a chat request has it."""
        if config is not None and not isinstance(config, dict):
            self.refused.append("output_config")
        given = {name: one for name, one in config.items() if one is not None} if isinstance(config, dict) else {}
        form = given.pop("format", None)
        for name in given:
            (self.told.add if name == "effort" else self.refused.append)(f"output_config.{name}")
        if isinstance(form, dict) and form.keys() == {"type", "schema"} and kind_of(form) == "json_schema":
            return {"response_format": {"type": "json_schema", "json_schema": {"schema": form["schema"]}}}
        self.refused += [] if form is None else ["output_config.format"]
        return {}

    def _message(self, message: Any) -> list[Any]:
        """Returns the chat messages of one message: results of calls come before the text beside them."""
        if not isinstance(message, dict):
            return [message]
        content, rest = message.get("content"), {name: one for name, one in message.items() if name != "content"}
        if not isinstance(content, list):
            return [message]
        kinds = [kind_of(one) if isinstance(one, dict) else "" for one in content]
        beside = {field for one in content if isinstance(one, dict) for field in _BESIDE if one.get(field)}
        self.told |= {f"messages.content.{field}" for field in beside}
        self.told |= {"messages.content.thinking"} if _THOUGHTS & set(kinds) else set()
        calls = [one for kind, one in zip(kinds, content, strict=True) if kind == "tool_use"]
        results = [one for kind, one in zip(kinds, content, strict=True) if kind == "tool_result"]
        parts = self._parts([one for kind, one in zip(kinds, content, strict=True) if kind not in _NO_PARTS])
        made: list[Any] = [
            {"role": "tool", "tool_call_id": one.get("tool_use_id"), "content": self._parts(one.get("content", ""))}
            for one in results
        ]
        if calls:
            rest["tool_calls"] = [_call(one) for one in calls]
        if parts or calls or not results:
            made.append({**rest, "content": parts if parts or calls else ""})
        return made

    def _parts(self, content: Any) -> Any:
        """Returns text, or its parts, as in a chat message."""
        if not isinstance(content, list):
            return content
        return [{"type": "text", "text": one.get("text")} if _is_text(one) else one for one in content] or ""

    def _tool(self, tool: Any) -> Any:
        if not isinstance(tool, dict):
            return tool
        if tool.get("type") is not None and (kind := kind_of(tool)) != "custom":
            self.refused.append(f"tools.{kind}")
        self.told |= {
            f"tools.{name}"[:NAME_CHARS] for name in tool.keys() - {"type", "name", "description", "input_schema"}
        }
        names = {"name": "name", "description": "description", "input_schema": "parameters"}
        function = {chat: tool[name] for name, chat in names.items() if tool.get(name) is not None}
        return {"type": "function", "function": function}

    def _choice(self, choice: Any) -> Any:
        if not isinstance(choice, dict):
            return choice
        if choice.get("type") == "tool":
            return {"type": "function", "function": {"name": choice.get("name")}}
        return _CHOICES.get(kind_of(choice), choice)


def _merged(messages: list[Any]) -> list[Any]:
    """Returns the messages, neighbours of one role as one, as Anthropic reads them."""
    made: list[Any] = []
    mergeable = None
    for one in messages:
        blocks = _blocks_of(one)
        if blocks is None:
            made.append(one)
        elif mergeable == one["role"]:
            made[-1]["content"].extend(blocks)
        else:
            made.append({"role": one["role"], "content": blocks})
        mergeable = None if blocks is None else one["role"]
    return made


def _blocks_of(message: Any) -> list[Any] | None:
    """Returns a copy of the blocks of a user's or assistant's message; None for any other value."""
    if not isinstance(message, dict) or message.keys() != {"role", "content"}:
        return None
    content = [{"type": "text", "text": text}] if isinstance(text := message["content"], str) else text
    known = message["role"] in ("user", "assistant") and isinstance(content, list)
    return list(content) if known else None


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _call(block: dict[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}


def _blocks(reply: ChatReply, request: ChatRequest) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    if reply.thoughts and isinstance(request, MessagesRequest) and request.thinks:
        made.append({"type": "thinking", "thinking": reply.thoughts, "signature": ""})
    made += [{"type": "text", "text": reply.text}] if reply.text else []
    for call in reply.calls:
        called = call.function
        made.append({"type": "tool_use", "id": call.id, "name": called.name, "input": json.loads(called.arguments)})
    return made


def _head(name: str, model: str, tokens: int) -> dict[str, Any]:
    usage = {"input_tokens": tokens, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    head = {"id": name, "type": "message", "role": "assistant", "model": model, "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}


def _ended(reply: ChatReply) -> dict[str, Any]:
    reason = _ENDED[reply.ended] if reply.cut is None else "stop_sequence"
    return {"stop_reason": reason, "stop_sequence": reply.cut}


def _whole(reply: ChatReply, request: ChatRequest) -> dict[str, Any]:
    head = _head(reply.id, reply.model, reply.prompt_tokens)
    usage = {**head["usage"], "output_tokens": reply.tokens}
    return {**head, "content": _blocks(reply, request), **_ended(reply), "usage": usage, "assay": reply.assay}


def _event(kind: str, **fields: Any) -> bytes:
    return framed({"type": kind, **fields}, kind)


def _begin(head: StreamHead) -> bytes:
    return _event("message_start", message=_head(head.id, head.model, head.prompt_tokens))


def _rest(reply: ChatReply, request: ChatRequest) -> Iterator[bytes]:
    for number, block in enumerate(_blocks(reply, request)):
        if (name := block["type"]) in ("text", "thinking"):
            yield _event("content_block_start", index=number, content_block={**block, name: ""})
            deltas = [{"type": f"{name}_delta", name: piece} for piece in pieces(block[name])]
            deltas += [{"type": "signature_delta", "signature": ""}] if name == "thinking" else []
        else:
            yield _event("content_block_start", index=number, content_block={**block, "input": {}})
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        for delta in deltas:
            yield _event("content_block_delta", index=number, delta=delta)
        yield _event("content_block_stop", index=number)
    usage = {"output_tokens": reply.tokens}
    yield _event("message_delta", delta=_ended(reply), usage=usage, assay=reply.assay)
    yield _event("message_stop")


MESSAGES_FORMAT = WireFormat(
    request=MessagesRequest,
    id="msg_",
    whole=_whole,
    begin=_begin,
    rest=_rest,
    failed=lambda error, _: framed(error.anthropic_body, "error"),
    beat=_event("ping"),
)
