"""`/v1/responses`: OpenAI's newer format, translated to and from that of chat completions. Pure.

Invariants: a request becomes a chat request and passes all its checks. Nothing is stored between requests, so one that
refers to an earlier response is refused. Tools that run at a provider are left out and listed in `assay.unused`:
clients offer them unasked, and the model never learns of them. A custom tool is a function with one text, `input`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from appliance.gateway.chat_fields import NAME_CHARS, kind_of, supported
from appliance.gateway.chat_request import MOST_TOOLS, ChatRequest
from appliance.gateway.replies import ChatReply, GatewayError, StreamHead, WireFormat, framed, pieces

_SAME = frozenset({"model", "temperature", "top_p", "stream", "parallel_tool_calls", "top_logprobs", "seed", "assay"})
"""Fields with the name and meaning that they have in a chat request."""
_READ = frozenset({"instructions", "input", "tools", "tool_choice", "max_output_tokens", "text"})
_UNUSED = frozenset(
    {
        *("user", "metadata", "safety_identifier", "client_metadata", "service_tier"),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
        *("reasoning", "include", "truncation", "max_tool_calls", "stream_options"),
    }
)
_NOTHING = {"store": False, "background": False}
"""Fields that are refused unless they ask for nothing."""
_LOGPROBS = "message.output_text.logprobs"
_TEXTS = ("input_text", "output_text", "text")
_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_OF_A_TOOL = frozenset({"type", "name", "description", "parameters", "strict"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items with a call of the model, and the field that has its text."""
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


class ResponsesRequest(ChatRequest):
    """Request of `/v1/responses`, as a chat request."""

    names = {  # noqa: RUF012 - a class variable
        "messages": "input",
        "max_completion_tokens": "max_output_tokens",
        "response_format": "text.format",
        "tool_calls": "function_call",
        "tool_call_id": "call_id",
    }
    renumbered = "messages|tools"

    custom: tuple[str, ...] = ()
    """Names of the tools that take a text."""
    thinks: bool = False
    """True if the client takes thoughts."""
    spaces: dict[str, tuple[str, str]] = {}  # noqa: RUF012 - a field of a frozen model
    """Namespace and own name of each tool that has one, by its name here."""

    @model_validator(mode="before")
    @classmethod
    def _only_supported(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        reading = _ResponsesReading()
        chat = reading.chat({name: one for name, one in value.items() if one is not None})
        read = supported(chat, ChatRequest.model_fields.keys() - {"unused"}, reading.told, reading.refused)
        reasoning = value.get("reasoning")
        thinks = isinstance(reasoning, dict) and reasoning.get("summary") in ("auto", "concise", "detailed")
        return {**read, "custom": tuple(reading.custom), "spaces": reading.spaces, "thinks": thinks}


class _ResponsesReading:
    """Translation of one request, with the names of what has no effect, of what is refused, and of custom tools."""

    def __init__(self) -> None:
        self.told: set[str] = set()
        self.refused: list[str] = []
        self.custom: list[str] = []
        self.spaces: dict[str, tuple[str, str]] = {}

    def chat(self, given: dict[str, Any]) -> dict[str, Any]:
        self.told |= given.keys() & _UNUSED
        self.refused += [name for name in given if name not in _SAME | _READ | _UNUSED | _NOTHING.keys()]
        self.refused += [name for name, nothing in _NOTHING.items() if given.get(name, nothing) is not nothing]
        chat = {name: given[name] for name in _SAME if name in given}
        chat |= self._text(given.get("text"))
        if isinstance(given.get("include"), list) and _LOGPROBS in given["include"]:
            chat["logprobs"] = True
        elif chat.pop("top_logprobs", 0):
            self.told.add("top_logprobs")
        if "max_output_tokens" in given:
            chat["max_completion_tokens"] = given["max_output_tokens"]
        if "tools" in given:
            tools = given["tools"]
            chat["tools"] = [made for one in tools for made in self._tool(one)] if isinstance(tools, list) else tools
        if "tool_choice" in given:
            chat["tool_choice"] = self._choice(given["tool_choice"])
        chat["messages"] = self._messages(given)
        return chat

    def _text(self, text: Any) -> dict[str, Any]:
        """Returns the form of the answer as a chat request has it."""
        if text is not None and not isinstance(text, dict):
            self.refused.append("text")
        given = dict(text) if isinstance(text, dict) else {}
        form = given.pop("format", None)
        self.told |= {f"text.{name}"[:NAME_CHARS] for name in given}
        if not isinstance(form, dict):
            self.refused += [] if form is None else ["text.format"]
            return {}
        rest = {name: one for name, one in form.items() if name != "type"}
        return {"response_format": {"type": form.get("type"), **({"json_schema": rest} if rest else {})}}

    def _messages(self, given: dict[str, Any]) -> Any:
        items = given.get("input")
        if not isinstance(given.get("instructions", ""), str):
            raise PydanticCustomError("instructions", "instructions must be text")
        first: list[Any] = [{"role": "system", "content": given["instructions"]}] if given.get("instructions") else []
        if isinstance(items, str):
            return [*first, {"role": "user", "content": items}]
        if not isinstance(items, list):
            raise PydanticCustomError("input", "input must be text or a list")
        turn: dict[str, Any] | None = None
        for item in items:
            made = self._item(item)
            if made is None:
                continue
            if made.get("role") != "assistant":
                turn = None
            elif turn is not None:  # a run of the model's items is one turn
                _join(turn, made)
                continue
            else:
                turn = made
            first.append(made)
        return first

    def _item(self, item: Any) -> dict[str, Any] | None:
        """Returns an item as a chat message; None for one that is not read."""
        if not isinstance(item, dict):
            self.refused.append("input")
            return None
        kind = kind_of(item, "message" if "role" in item else "")
        if kind == "message":
            return {"role": item.get("role"), "content": _parts(item.get("content"))}
        if kind in _CALLS:
            text = item.get(_CALLS[kind])
            arguments = json.dumps({"input": text}, ensure_ascii=False) if kind == "custom_tool_call" else text
            function = {"name": _joined(item.get("namespace"), item.get("name")), "arguments": arguments}
            call = {"id": item.get("call_id"), "type": "function", "function": function}
            return {"role": "assistant", "tool_calls": [call]}
        if kind in _RESULTS:
            return {"role": "tool", "tool_call_id": item.get("call_id"), "content": _parts(item.get("output"))}
        if kind == "reasoning":
            self.told.add("input.reasoning")
        else:
            self.refused.append(f"input.{kind}")
        return None

    def _tool(self, tool: Any, space: str = "") -> list[Any]:
        """Returns a tool as chat tools, named after the namespace that it is in."""
        if not isinstance(tool, dict):
            return [tool]
        kind, own = kind_of(tool), tool.get("name")
        if kind == "namespace" and not space and isinstance(own, str) and isinstance(inner := tool.get("tools"), list):
            self.told |= {f"tools.{name}"[:NAME_CHARS] for name in tool.keys() - {"type", "name", "tools"}}
            return [made for one in inner[: MOST_TOOLS + 1] for made in self._tool(one, own[:NAME_CHARS])]
        if kind not in ("function", "custom"):
            self.told.add(f"tools.{kind}")
            return []
        name = _joined(space, own)
        if space and isinstance(name, str):
            self.spaces[name] = (space, str(own))
        self.told |= {f"tools.{field}"[:NAME_CHARS] for field in tool.keys() - _OF_A_TOOL}
        fields = ("description", "parameters", "strict")
        function = {"name": name, **{field: tool[field] for field in fields if tool.get(field) is not None}}
        if kind == "custom":
            function |= {"parameters": _INPUT}
            self.custom.append(str(name))
        return [{"type": "function", "function": function}]

    def _choice(self, choice: Any) -> Any:
        if not isinstance(choice, dict):
            return choice
        if choice.get("type") in ("function", "custom"):
            return {"type": "function", "function": {"name": choice.get("name")}}
        self.told.add("tool_choice")
        return "auto"


def _parts(content: Any) -> Any:
    """Returns text, or its parts, as in a chat message."""
    if not isinstance(content, list):
        return content
    read = [
        {"type": "text", "text": one.get("text")} if isinstance(one, dict) and one.get("type") in _TEXTS else one
        for one in content
    ]
    return read or ""


def _join(turn: dict[str, Any], more: dict[str, Any]) -> None:
    """Adds a further item of the model to its turn."""
    if more.get("tool_calls"):
        turn.setdefault("tool_calls", []).extend(more["tool_calls"])
        return
    for one in (turn, more):
        if not isinstance(one.get("content"), list):
            one["content"] = [{"type": "text", "text": one["content"]}] if one.get("content") else []
    turn["content"].extend(more["content"])


def _joined(space: Any, name: Any) -> Any:
    """Returns a tool's name with its namespace before it; a name of another type stays, and is refused later."""
    if not isinstance(name, str) or not isinstance(space, str) or not space:
        return name
    return f"{space}{name}" if space.endswith("__") else f"{space}__{name}"


def _items(reply: ChatReply, request: ChatRequest) -> list[dict[str, Any]]:
    """Returns the items of the model's turn."""
    done = "incomplete" if reply.ended == "length" else "completed"
    made: list[dict[str, Any]] = []
    assert isinstance(request, ResponsesRequest)
    if reply.thoughts and request.thinks:
        summary = [{"type": "summary_text", "text": reply.thoughts}]
        made.append({"type": "reasoning", "id": f"rs_{reply.id}", "summary": summary})
    if reply.text or not reply.calls:
        text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": list(reply.logprobs or ())}
        head: dict[str, Any] = {"type": "message", "id": f"msg_{reply.id}", "status": done, "role": "assistant"}
        made.append({**head, "content": [text]})
    for place, call in enumerate(reply.calls):
        called = call.function
        head = {"id": f"fc_{reply.id}_{place}", "call_id": call.id, "name": called.name, "status": done}
        if called.name in request.spaces:
            head["namespace"], head["name"] = request.spaces[called.name]
        if called.name in request.custom:
            text_of = json.loads(called.arguments).get("input", "")
            made.append({"type": "custom_tool_call", **head, "input": text_of})
        else:
            made.append({"type": "function_call", **head, "arguments": called.arguments})
    return made


def _response(name: str, created: int, model: str, status: str, **fields: Any) -> dict[str, Any]:
    head = {"id": name, "object": "response", "created_at": created, "status": status, "model": model, "output": []}
    nothing: dict[str, Any] = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "usage": None,
    }
    usual: dict[str, Any] = {
        "parallel_tool_calls": True,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
    }
    return {**head, **nothing, **usual, **fields}


def _whole(reply: ChatReply, request: ChatRequest) -> dict[str, Any]:
    cut = reply.ended == "length"
    usage = {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": reply.tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.prompt_tokens + reply.tokens,
    }
    return _response(
        reply.id,
        reply.created,
        reply.model,
        "incomplete" if cut else "completed",
        output=_items(reply, request),
        incomplete_details={"reason": "max_output_tokens"} if cut else None,
        parallel_tool_calls=request.parallel_tool_calls,
        usage=usage,
        assay=reply.assay,
    )


def _event(kind: str, number: int, **fields: Any) -> bytes:
    return framed({"type": kind, "sequence_number": number, **fields}, kind)


def _begin(head: StreamHead) -> bytes:
    begun = _response(head.id, head.created, head.model, "in_progress")
    return b"".join(
        _event(f"response.{kind}", number, response=begun) for number, kind in enumerate(("created", "in_progress"))
    )


def _rest(reply: ChatReply, request: ChatRequest) -> Iterator[bytes]:
    whole = _whole(reply, request)
    events: list[tuple[str, dict[str, Any]]] = []
    for place, item in enumerate(whole["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        begun = {"output_index": place, "item": {**item, "status": "in_progress"} | _emptied(item)}
        events.append(("output_item.added", begun))
        events += [(kind, {**at, **fields}) for kind, fields in _deltas(item)]
        events.append(("output_item.done", {"output_index": place, "item": item}))
    events.append((whole["status"], {"response": whole}))
    for number, (kind, fields) in enumerate(events, 2):
        yield _event(f"response.{kind}", number, **fields)


def _emptied(item: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of an item that its events have yet to fill."""
    lists = {"message": "content", "reasoning": "summary"}
    return {lists[item["type"]]: []} if item["type"] in lists else {_CALLS[item["type"]]: ""}


def _deltas(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the events that fill an item."""
    if item["type"] == "reasoning":
        (part,) = item["summary"]
        place: dict[str, Any] = {"summary_index": 0}
        yield "reasoning_summary_part.added", {**place, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield "reasoning_summary_text.delta", {**place, "delta": piece}
        yield "reasoning_summary_text.done", {**place, "text": part["text"]}
        yield "reasoning_summary_part.done", {**place, "part": part}
        return
    if item["type"] == "message":
        (part,) = item["content"]
        at: dict[str, Any] = {"content_index": 0}
        yield "content_part.added", {**at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield "output_text.delta", {**at, "delta": piece, "logprobs": []}
        yield "output_text.done", {**at, "text": part["text"], "logprobs": []}
        yield "content_part.done", {**at, "part": part}
        return
    field = _CALLS[item["type"]]
    name = "custom_tool_call_input" if field == "input" else "function_call_arguments"
    yield f"{name}.delta", {"delta": item[field]}
    yield f"{name}.done", {field: item[field]} | ({"name": item["name"]} if field == "arguments" else {})


def _failed(error: GatewayError, head: StreamHead) -> bytes:
    why = {"code": error.code or "server_error", "message": str(error)}
    return _event("response.failed", 2, response=_response(head.id, head.created, head.model, "failed", error=why))


RESPONSES_FORMAT = WireFormat(
    request=ResponsesRequest, id="resp_", whole=_whole, begin=_begin, rest=_rest, failed=_failed, beat=b": at work\n\n"
)
