"""Renders a client's conversation as tokens, parses the model's turn, and finds the session that a request continues.

Invariants: in a known session the model's sampled tokens stay as drawn, and the next input extends them exactly or
begins a new sample, as in a rollout. Client text is rendered as outside text, so that marks in it have no effect; a
tool whose declaration contains a mark of the format is refused, because formats render declarations unguarded.

A conversation that continues in two ways is two sessions; sessions and their tokens are bounded. A forgotten session
restarts as a branch of the stored session with its turns: that link is remembered longer, across tools and models, so
that a deleted session does not come back.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from appliance.gateway.chat_request import ChatRequest, ClientTool, SentCall, SentMessage
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

MOST_LIVE = 256
MOST_LIVE_TOKENS = 8 << 20
MOST_WRITTEN = 1 << 16
"""Maximum number of conversations whose session id is remembered without tokens."""


@dataclass(frozen=True)
class OpenConversation:
    """A gateway session up to a turn of the model."""

    id: str
    version: str
    nodes: tuple[Message, ...]
    turns: tuple[OwnTurn, ...]
    """The model's turns, in order."""
    places: tuple[int, ...]
    """Indices of these turns among the conversation's messages."""
    calls: bool
    """True if the last turn called a tool."""
    created: str
    recorded: bool
    """True if the session was written to disk."""
    branch_of: str = ""
    """Stored session that it branched from, if any."""

    @property
    def tokens(self) -> int:
        return sum(len(node.ids) for node in self.nodes)

    @property
    def context(self) -> Ids:
        """Tokens that the model has read and written since the conversation was last rendered anew."""
        start = max(place for place, node in enumerate(self.nodes) if node.parent is None)
        return tuple(token for node in self.nodes[start:] for token in node.ids)


@dataclass
class OpenConversations:
    """Gateway sessions in memory that can be continued; thread-safe."""

    _known: OrderedDict[str, OpenConversation] = field(default_factory=OrderedDict)
    _continued: set[str] = field(default_factory=set)
    """Keys of `_known` that were already continued."""
    _written: OrderedDict[str, str] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, key: str) -> OpenConversation | None:
        """Returns the open session with that conversation, under a new id if it was already continued otherwise."""
        with self._lock:
            found = self._known.get(key)
            if found is None:
                return None
            self._known.move_to_end(key)
            if key in self._continued:
                left = found.id if found.recorded else found.branch_of
                return replace(found, id=new_id(), recorded=False, branch_of=left)
            self._continued.add(key)
            return found

    def put(self, key: str, session: OpenConversation) -> None:
        with self._lock:
            self._known[key] = session
            while len(self._known) > MOST_LIVE or sum(one.tokens for one in self._known.values()) > MOST_LIVE_TOKENS:
                self._continued.discard(self._known.popitem(last=False)[0])

    def wrote(self, turns: Sequence[str], session: str) -> None:
        """Remembers which session has the conversation with these `turn_keys`; the newest counts."""
        with self._lock:
            self._written[turns[-1]] = session
            self._written.move_to_end(turns[-1])
            while len(self._written) > MOST_WRITTEN:
                self._written.popitem(last=False)

    def written(self, turns: Sequence[str]) -> str:
        """Returns the id of the session with the longest of these conversation prefixes; empty if none is known."""
        with self._lock:
            return next((self._written[key] for key in reversed(turns) if key in self._written), "")


def new_id() -> str:
    return f"gs-{secrets.token_hex(8)}"


def key_of(token: str, tools: Sequence[ClientTool], messages: Sequence[SentMessage]) -> str:
    """Returns a conversation's key: the same for equal token, tools and messages, ignoring other fields."""
    said = [token, [one.model_dump() for one in tools], [one.identity for one in messages]]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def turn_keys(token: str, messages: Sequence[SentMessage]) -> list[str]:
    """Returns the conversation's key up to each turn of the model, independent of tools; ascending."""
    found, so_far = [], hashlib.sha256(token.encode())
    for one in messages:
        so_far.update(json.dumps(one.identity).encode() + b"\n")
        if one.role == "assistant":
            found.append(so_far.hexdigest())
    return found


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
        messages = [_rendered(one, renderer, asked.offered) for _, one in _single_calls(asked.messages)]
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
        own[place] if place in own else _rendered(one, renderer, tools) for place, one in _single_calls(asked.messages)
    ]
    node = Message(parent=None, role=Role.USER, ids=renderer.prompt(messages, tools), sampled=False)
    return WrittenPrompt(node.ids, (*session.nodes, node), session.turns, session)


def _single_calls(messages: Sequence[SentMessage]) -> Iterator[tuple[int, SentMessage]]:
    """Yields the messages with their places. Several calls of one message become one call a message, each followed by
    its result, as this model would have called. Raises ConversationError for a call without a result."""
    place = 0
    while place < len(messages):
        one, start = messages[place], place
        place += 1
        if len(calls := one.tool_calls or []) < 2:
            yield start, one
            continue
        results: dict[str | None, SentMessage] = {}
        while place < len(messages) and messages[place].role == "tool":
            results[messages[place].tool_call_id] = messages[place]
            place += 1
        if {call.id for call in calls} != results.keys() or len(calls) != place - start - 1:
            said = "several calls in one message need one tool message each, directly after it"
            raise ConversationError(said, hint="send a result for every call")
        for number, call in enumerate(calls):
            yield start, one.model_copy(update={"tool_calls": [call], "content": None if number else one.content})
            yield start, results[call.id]


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
        said = renderer.plain(f"{message.text}\n") if message.text else ()
        return OwnTurn(ids=(*said, *renderer.request(request_of(message.tool_calls[0]), tools)), before=())
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
