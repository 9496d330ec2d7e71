"""Renders a client's conversation as tokens, parses the model's turn, and says whether training may learn from it.

Invariants: a prompt is the tokens of a node of the session, as read and drawn, and forced tokens behind them. If the
format or the client rewrote earlier messages, only the nodes whose tokens begin the new prompt stay. Client text is
rendered as outside text, so that marks in it have no effect; a tool whose declaration contains a mark of the format is
refused, because formats render declarations unguarded.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from appliance.gateway.chat_request import (
    MOST_CALLS,
    ChatRequest,
    ClientTool,
    SentCall,
    SentMessage,
    answered_calls,
    message_digests,
)
from appliance.gateway.message_tree import (
    MOST_QUOTES,
    QUOTE,
    Continuation,
    History,
    MessageTree,
    OpenSessions,
    SampledTurn,
)
from appliance.inference.engine import Turn
from appliance.records.rollouts import Message, Role, ToolCall, ToolStatus
from appliance.rendering.markers import TextMessage
from appliance.rendering.renderer import PYTHON, ChatMessage, Ids, OwnTurn, Renderer, RenderingError, ToolRequest
from appliance.rendering.tools import arguments_of, mark_in
from common.errors import HintedError

SUBAGENT = "it is a sub-agent's"
REMINDER = "<system-reminder>\n{}\n</system-reminder>"
"""User message in place of a system message that is not the first."""
MOST_OUTPUT = 100_000
"""Maximum characters of a tool's output stored as text; its tokens are stored whole."""


class ConversationError(HintedError):
    """A client's conversation cannot be rendered for this model."""

    exit_code = 2


@dataclass(frozen=True)
class ReadReply:
    """A model's turn as its client gets it."""

    text: str
    calls: tuple[SentCall, ...] = ()
    thoughts: str = ""
    whole: bool = True
    """False if the turn has more calls than the client takes."""


@dataclass(frozen=True)
class WrittenPrompt:
    """Prompt tokens for the model, with their place in a session."""

    ids: Ids
    forced: Message
    """Tokens behind those of its parent, or all."""
    history: History
    match: Continuation
    why: str
    """Reason why the turn behind it is not trained on; empty if it is."""


def history_of(token: str, messages: Sequence[SentMessage]) -> History:
    """Returns the digests of the messages that the token with this hash sent."""
    digests, so_far = message_digests(messages), [token.encode()]
    for digest in digests:
        so_far.append(_behind(so_far[-1], digest))
    calls = {
        place: tuple(call.id for call in one.tool_calls or ())
        for place, one in enumerate(messages)
        if one.role == "assistant"
    }
    question = next((one.text for one in messages if one.role == "user"), "").strip()
    return History(token, tuple(digests), tuple(so_far[1:]), calls, question)


def _behind(so_far: bytes, message: bytes) -> bytes:
    return hashlib.blake2b(so_far + message, digest_size=16).digest()


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


def write(
    asked: ChatRequest, history: History, match: Continuation, renderer: Renderer, temperature: float
) -> WrittenPrompt:
    """Renders a chat request as prompt tokens, continuing its session. `temperature` is that of training. Raises
    ConversationError."""
    node = None if match.turn is None else match.turn.node
    asked = asked.model_copy(update={"messages": _in_call_order(asked.messages)})
    try:
        forced, call = _followed(asked, match, renderer)
        if forced is None:
            ids = renderer.prompt([*_rewritten(asked, match, renderer)], asked.offered)
            node = None if match.tree is None else match.tree.shared(ids, node)
    except RenderingError as error:
        raise ConversationError(str(error), hint=error.hint) from error
    before = () if match.tree is None else match.tree.context(node)
    forced = ids[len(before) :] if forced is None else forced
    role = Role.TOOL if call is not None else Role.USER
    made = Message(parent=node, role=role, ids=forced, sampled=False, call=call)
    return WrittenPrompt((*before, *forced), made, history, match, _why_not(asked, history, match, temperature))


def _followed(asked: ChatRequest, match: Continuation, renderer: Renderer) -> tuple[Ids | None, ToolCall | None]:
    """Returns the forced tokens that exactly extend the turn that the client continues, None if it must be rewritten,
    and the first call in it, whose result they begin with."""
    tree, turn, new = match.tree, match.turn, asked.messages[match.place + 1 :]
    if tree is None or turn is None or match.place < 0 or any(one.role == "assistant" for one in new):
        return None, None
    own = tree.own_turn(turn.node)
    calls = renderer.parts(own.ids, own.before, asked.offered).calls if new[0].role == "tool" else ()
    call = _recorded(calls[0], new[0].text) if calls else None
    if not turn.whole or turn.tools != tools_digest(asked.offered):
        return None, call
    return renderer.follow(own.before, own.ids, [_outside(one, 1) for one in new], asked.offered), call


def _rewritten(asked: ChatRequest, match: Continuation, renderer: Renderer) -> Iterator[ChatMessage]:
    """Yields the whole conversation, the session's own turns as they were drawn."""
    own = {place: turn.node for place, turn in match.own.items() if turn.whole}
    for place, one in _single_calls(asked.messages, own.keys()):
        if match.tree is not None and place in own:
            yield match.tree.own_turn(own[place])
        else:
            yield _rendered(one, place, renderer, asked.offered)


def _why_not(asked: ChatRequest, history: History, match: Continuation, temperature: float) -> str:
    """Returns why training may not learn from the answer to a request; empty if it may."""
    foreign = [place for place in history.calls if place not in match.own]
    if foreign:
        return f"message {min(foreign) + 1} is a turn that this session's model did not write"
    if match.subagent:
        return SUBAGENT
    drawn = 1.0 if asked.temperature is None else asked.temperature
    return "" if drawn == temperature else f"drawn at temperature {drawn:g}; training uses {temperature:g}"


def tools_digest(tools: Sequence[ClientTool]) -> bytes:
    said = json.dumps([one.model_dump() for one in tools], sort_keys=True)
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _in_call_order(messages: Sequence[SentMessage]) -> list[SentMessage]:
    """Returns the messages, with the results of several calls in the order of the calls: formats without ids have no
    other sign. Raises ConversationError for one of several calls without a result."""
    made, answers = list(messages), answered_calls(messages)
    for place, one in enumerate(messages):
        if len(calls := one.tool_calls or ()) < 2:
            continue
        results = range(place + 1, min(place + 1 + len(calls), len(messages)))
        if len(results) < len(calls) or any(messages[at].role != "tool" for at in results):
            said = "several calls in one message need one tool message each, directly after it"
            raise ConversationError(said, hint="send a result for every call")
        made[results.start : results.stop] = [messages[at] for at in sorted(results, key=answers.__getitem__)]
    return made


def _single_calls(messages: Sequence[SentMessage], own: Set[int]) -> Iterator[tuple[int, SentMessage]]:
    """Yields the messages with their places. Several calls of one message become one call a message, each followed by
    its result, but in the session's `own` turns."""
    split = 0
    for place, one in enumerate(messages):
        calls = one.tool_calls or []
        if len(calls) < 2 or place in own:
            if not split:
                yield place, one
            split = max(split - 1, 0)
            continue
        split = len(calls)
        for number, call in enumerate(calls):
            yield place, one.model_copy(update={"tool_calls": [call], "content": None if number else one.content})
            yield place + 1 + number, messages[place + 1 + number]


def _recorded(read: ToolRequest, output: str) -> ToolCall:
    """Returns the record of a tool call that the client ran, with the output that the client reports."""
    said = output[:MOST_OUTPUT]
    return ToolCall(code=read.code, tool=read.tool, arguments=dict(read.arguments), status=ToolStatus.OK, output=said)


def _rendered(message: SentMessage, place: int, renderer: Renderer, tools: Sequence[ClientTool]) -> ChatMessage:
    """Renders a client's message as outside text; an assistant message of the client becomes a turn of the model."""
    if message.tool_calls:
        said = renderer.plain(f"{message.text}\n") if message.text else ()
        return OwnTurn(ids=(*said, *renderer.request(request_of(message.tool_calls[0]), tools)), before=())
    if message.role == "assistant":
        return OwnTurn(ids=renderer.answer(message.text), before=())
    return _outside(message, place)


def _outside(message: SentMessage, place: int) -> TextMessage:
    """Returns a client's message as outside text; formats have a system message only at the beginning."""
    if place and message.rendered_role == "system":
        return TextMessage(REMINDER.format(message.text))
    return TextMessage(message.text, message.rendered_role)


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


def append_turn(
    sessions: OpenSessions,
    asked: ChatRequest,
    prompt: WrittenPrompt,
    turn: Turn,
    answer: SentMessage,
    *,
    version: str,
    created: str,
    whole: bool,
) -> tuple[MessageTree, SampledTurn]:
    """Appends a sampled turn to its session, or to a new one. `answer` is the turn as the client has it, `whole` if
    that is all of it but thoughts."""
    match, history, (digest,) = prompt.match, prompt.history, message_digests([answer])
    tree = match.tree or MessageTree(history.token, version, created, match.branch_of)
    arguments = [json.loads(one.function.arguments) for one in answer.tool_calls or ()]
    texts = [text.strip() for text in _texts(arguments or answer.text)]
    sampled = Message(
        parent=None,
        role=Role.ASSISTANT,
        ids=turn.ids,
        sampled=True,
        logprobs=turn.logprobs,
        weights=turn.weights,
        why=prompt.why,
    )
    added = SampledTurn(
        message=digest,
        so_far=_behind(history.so_far[-1], digest),
        tools=tools_digest(asked.offered),
        calls=tuple(one.id for one in answer.tool_calls or ()),
        quotes=tuple(text for text in texts if len(text) >= QUOTE)[:MOST_QUOTES],
        whole=whole,
        subagent=match.subagent,
    )
    return tree, sessions.add(tree, match, history, prompt.forced, sampled, added)


def _texts(value: Any) -> Iterator[str]:
    """Yields the texts in plain JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def read_turn(turn: Turn, prompt: WrittenPrompt, renderer: Renderer, asked: ChatRequest) -> ReadReply:
    """Parses a model's turn. An unparsable one is returned as raw text, and so is one with a call of another tool."""
    tools, ended = asked.offered, turn.ended == "stop"
    ids = turn.ids if ended else (*turn.ids, renderer.stop)
    found = renderer.parts(ids, prompt.ids, tools)
    if not found.calls:
        return ReadReply(found.text, (), found.thoughts)
    offered = {one.name for one in tools}
    if not ended or len(found.calls) > MOST_CALLS or any(one.tool not in offered for one in found.calls):
        return ReadReply(found.raw, (), found.thoughts)
    calls = found.calls if asked.parallel_tool_calls else found.calls[:1]
    return ReadReply(found.text, tuple(map(_sent, calls)), found.thoughts, len(calls) == len(found.calls))


def _sent(request: ToolRequest) -> SentCall:
    function = {"name": request.tool, "arguments": json.dumps(arguments_of(request), ensure_ascii=False)}
    call = {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}
    return SentCall.model_validate(call)
