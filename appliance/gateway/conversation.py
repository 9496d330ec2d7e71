"""Renders a client's conversation as tokens for the model, and parses the model's turn.

Invariants: in a known session the model's sampled tokens stay as drawn, and the next input extends them exactly or
begins a new sample, as in a rollout. Client text is rendered as outside text, so that marks in it have no effect; a
tool whose declaration contains a mark of the format is refused, because formats render declarations unguarded.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.gateway.chat_request import ChatRequest, ClientTool, SentCall, SentMessage
from appliance.gateway.open_conversations import OpenConversation, new_id
from appliance.inference.engine import Turn
from appliance.records.rollouts import Message, Role, ToolCall, ToolStatus
from appliance.rendering.renderer import (
    PYTHON,
    ChatMessage,
    Ids,
    Malformed,
    OwnTurn,
    Renderer,
    RenderingError,
    ToolRequest,
)
from appliance.rendering.tools import arguments_of, mark_in
from common.errors import HintedError

MOST_OUTPUT = 100_000
"""Maximum characters of a tool's output stored as text; its tokens are stored whole."""


class ConversationError(HintedError):
    """A client's conversation cannot be rendered for this model."""

    exit_code = 2


@dataclass(frozen=True)
class OutsideText:
    """A message that is rendered as outside text, so that marks of the format in it have no effect."""

    role: str
    text: str


@dataclass(frozen=True)
class WrittenPrompt:
    """Prompt tokens for the model, with the session they continue."""

    ids: Ids
    nodes: tuple[Message, ...]
    """Nodes including the new forced one, which is last."""
    turns: tuple[OwnTurn, ...]
    session: OpenConversation | None


def require_tools(tools: Sequence[ClientTool], renderer: Renderer, marks: Sequence[str]) -> None:
    """Raises ConversationError for client tools that the model's format cannot call, or that contain its marks."""
    if not tools:
        return
    if why := renderer.refuses(tools):
        raise ConversationError(why, hint="leave the tools out, or put a model into service that can call them")
    for tool in tools:
        if tool.name == PYTHON.name and set(tool.parameters.get("properties", {})) != {"code"}:
            raise ConversationError("the tool python takes one argument, `code`", hint="rename your tool")
    if why := mark_in(tools, marks):
        raise ConversationError(why, hint="describe the tool in other words")


def write(asked: ChatRequest, session: OpenConversation | None, renderer: Renderer) -> WrittenPrompt:
    """Renders a chat request as prompt tokens, continuing `session` if given. Raises ConversationError."""
    try:
        if session is not None:
            return _continued(asked, session, renderer)
        messages = [_rendered(one, renderer, asked.offered) for one in asked.messages]
        first = Message(parent=None, role=Role.USER, ids=renderer.prompt(messages, asked.offered), sampled=False)
    except RenderingError as error:
        raise ConversationError(str(error), hint=error.hint) from error
    return WrittenPrompt(first.ids, (first,), (), None)


def _continued(asked: ChatRequest, session: OpenConversation, renderer: Renderer) -> WrittenPrompt:
    tools, last = asked.offered, session.turns[-1]
    new = asked.messages[asked.model_turns :]
    if session.calls and len(new) == 1 and new[0].role == "tool":
        forced = renderer.follow(last.before, last.ids, new[0].text, tools)
        if forced is not None:
            call = _recorded(renderer.read(last.ids, last.before, tools), new[0].text)
            node = Message(parent=len(session.nodes) - 1, role=Role.TOOL, ids=forced, sampled=False, call=call)
            return WrittenPrompt(session.context + forced, (*session.nodes, node), session.turns, session)
    # Not an exact extension in every format: begin a new sample, with the model's turns unchanged.
    own = dict(zip(session.places, session.turns, strict=True))
    messages = [
        own[place] if place in own else _rendered(one, renderer, tools) for place, one in enumerate(asked.messages)
    ]
    node = Message(parent=None, role=Role.USER, ids=renderer.prompt(messages, tools), sampled=False)
    return WrittenPrompt(node.ids, (*session.nodes, node), session.turns, session)


def _recorded(read: ToolRequest | Malformed | str, output: str) -> ToolCall | None:
    """Returns the record of a tool call that the client ran, with the output that the client reports; None if the turn
    has no call."""
    if not isinstance(read, ToolRequest):
        return None
    said = output[:MOST_OUTPUT]
    return ToolCall(code=read.code, tool=read.tool, arguments=dict(read.arguments), status=ToolStatus.OK, output=said)


def _rendered(message: SentMessage, renderer: Renderer, tools: Sequence[ClientTool]) -> ChatMessage:
    """Renders a client's message as outside text; an assistant message of the client becomes a turn of the model."""
    if message.tool_calls:
        return OwnTurn(ids=renderer.request(request_of(message.tool_calls[0]), tools), before=())
    if message.role == "assistant":
        return OwnTurn(ids=renderer.answer(message.text), before=())
    return OutsideText(message.rendered_role, message.text)


def request_of(call: SentCall) -> ToolRequest:
    """Parses a tool call that the client attributes to the assistant. Raises ConversationError."""
    arguments = json.loads(call.function.arguments)
    if call.function.name == PYTHON.name:
        code = arguments.get("code")
        if not isinstance(code, str):
            raise ConversationError("a call of python needs a string `code`", hint="send back the calls unchanged")
        try:
            code.encode()
        except UnicodeEncodeError:
            said = "the `code` of a call has a lone surrogate"
            raise ConversationError(said, hint="send back the calls unchanged") from None
        return ToolRequest(code)
    return ToolRequest(tool=call.function.name, arguments=arguments)


def after_turn(
    prompt: WrittenPrompt, turn: Turn, *, place: int, version: str, calls: bool, created: str, left: str
) -> OpenConversation:
    """Returns the open session extended by the sampled turn, the conversation's message at `place`. `left` is the
    stored session that a new one branches from, if any."""
    node = Message(
        parent=len(prompt.nodes) - 1,
        role=Role.ASSISTANT,
        ids=turn.ids,
        sampled=True,
        logprobs=turn.logprobs,
        weights=turn.weights,
    )
    known = prompt.session
    return OpenConversation(
        id=new_id() if known is None else known.id,
        version=version,
        nodes=(*prompt.nodes, node),
        turns=(*prompt.turns, OwnTurn(ids=turn.ids, before=prompt.ids)),
        places=(*(() if known is None else known.places), place),
        calls=calls,
        created=created if known is None else known.created,
        recorded=known is not None and known.recorded,
        branch_of=left if known is None else known.branch_of,
    )


def read_turn(
    turn: Turn, prompt: WrittenPrompt, renderer: Renderer, tools: Sequence[ClientTool]
) -> tuple[str, SentCall | None]:
    """Returns the text of a model's turn, or its tool call. An unparsable turn is returned as raw text."""
    if turn.ended != "stop":
        return _said(renderer.read((*turn.ids, renderer.stop), prompt.ids, tools)), None
    found = renderer.read(turn.ids, prompt.ids, tools)
    if isinstance(found, ToolRequest) and any(one.name == found.tool for one in tools):
        function = {"name": found.tool, "arguments": json.dumps(arguments_of(found), ensure_ascii=False)}
        call = {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}
        return "", SentCall.model_validate(call)
    return _said(found), None


def _said(found: ToolRequest | Malformed | str) -> str:
    if isinstance(found, ToolRequest):
        return found.code or json.dumps(dict(found.arguments))
    return found.code if isinstance(found, Malformed) else found
