r"""Format of six markers around turns, calls and results: the seedling's, and ChatML without tools.

  <|user|>gcd of 12 and 18?<|end|><|assistant|>     forced
  <|tool|>import math\nprint(math.gcd(12,18))<|end|>  sampled: a call, when the turn begins with the tool marker
  <|result|>6<|end|><|assistant|>                   forced
  \boxed{6}<|end|>                                  sampled: a turn without the tool marker is the last one

The only tool is `python`; a call is its code. A system message's text precedes the first question, and for a chat model
so does `TELL`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tokenizers import Tokenizer

from appliance.rendering.guarded import GuardedTokenizer
from appliance.rendering.renderer import (
    PYTHON,
    SAY_IT,
    TOOLS,
    ChatMessage,
    Ids,
    Malformed,
    OwnTurn,
    RenderingError,
    ToolRequest,
    TurnParts,
    code_request,
    single_part,
)
from curriculum.contract.environment import ToolSchema


@dataclass(frozen=True)
class Markers:
    """Marker strings of a chat format. `end` is a single token; the others are any text the tokenizer can write."""

    user: str
    assistant: str
    tool: str
    result: str
    end: str
    """End of a turn; its single token is the stop token."""
    pad: str


SEEDLING = Markers("<|user|>", "<|assistant|>", "<|tool|>", "<|result|>", "<|end|>", "<|pad|>")
CHATML = Markers(
    user="<|im_start|>user\n",
    assistant="\n<|im_start|>assistant\n",
    tool="<tool_call>",
    result="\n<|im_start|>tool\n",
    end="<|im_end|>",
    pad="<|endoftext|>",
)


TELL = (
    "You can run Python code in a sandbox: begin a turn with <tool_call> and write only code behind it. "
    "The next message is its output. For example:\n<tool_call>print(6 * 7)\n"
)
"""Declaration of the tool in ChatML."""


def only_python(tools: Sequence[ToolSchema]) -> str:
    """Returns the reason that a marker format cannot call these tools; empty if Python is the only one."""
    unknown = sorted({tool.name for tool in tools} - {PYTHON.name})
    return f"this model's format has no way to call {', '.join(unknown)}" if unknown else ""


class TextMessage(NamedTuple):
    """Message of a conversation as text, by default a user's."""

    text: str
    role: str = "user"


class MarkerRenderer:
    """Renderer for the chat format with marker strings around messages; see `Renderer`."""

    def __init__(
        self, tokenizer: Tokenizer, markers: Markers, name: str = "markers", ends: Ids = (), *, chat: bool = False
    ) -> None:
        """Creates the renderer of a chat format with markers; `ends` are more end tokens, and a `chat` model is told of
        its tool. Raises RenderingError if the tokenizer lacks the end marker."""
        self.markers = markers
        self.chat = chat
        self.name = name
        self.omits = ""
        """Text that the model's own chat template writes before a conversation, but this format does not."""
        self._tokenizer = tokenizer
        stop = tokenizer.token_to_id(markers.end)
        if stop is None:
            raise RenderingError(
                f"the tokenizer lacks the end token {markers.end!r} of the model's format", hint=SAY_IT
            )
        self.stop: int = stop
        self.other_stops: Ids = tuple(one for one in ends if one != stop)
        self._guarded = GuardedTokenizer({}, tokenizer)
        later = "\n" * chat + markers.user
        texts = (markers.user, later, markers.assistant, markers.tool, markers.result, markers.end, markers.user + TELL)
        self._user, self._later, self._assistant, self._tool, self._result, self._end, self._telling = (
            tuple(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts
        )

    def refuses(self, tools: Sequence[ToolSchema]) -> str:
        return only_python(tools)

    def prompt(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        """Encodes a conversation up to the model's next turn. Accepts roles in order: optionally `system` first, then
        `user`, `assistant` and `tool` in any order; the last is not the model's. An assistant turn is written
        unchanged, its tool marker as the marker. Raises RenderingError."""
        self._require_callable(tools)
        if not messages or messages[-1].role not in ("user", "tool"):
            raise RenderingError("a conversation for the model must end with a user or tool message")
        ids: Ids = ()
        before, begin = "", self._telling if self.chat and tools else self._user
        for place, message in enumerate(messages):
            if message.role == "system" and place == 0 and len(messages) > 1 and messages[1].role == "user":
                before = message.text + "\n"
            elif message.role == "user":
                ids += begin + self.plain(before + message.text) + self._end
                before, begin = "", self._later
            elif message.role == "tool" and ids:
                ids += self._shown(message.text)
            elif isinstance(message, OwnTurn) and ids:
                ids += self._assistant + message.ids
            elif message.role == "assistant" and ids:
                ids += self._assistant + self._turn(message.text)
            else:
                raise RenderingError(f"a message with role {message.role!r} is not allowed at position {place + 1}")
        return ids + self._assistant

    def question(self, text: str) -> Ids:
        return self.prompt((TextMessage(text),), ())

    def follow(
        self, before: Ids, turn: Ids, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS
    ) -> Ids | None:
        ids: Ids = ()
        for one in messages:
            ids += self._shown(one.text) if one.role == "tool" else self._later + self.plain(one.text) + self._end
        return ids + self._assistant

    def result(self, text: str) -> Ids:
        """Encodes a tool's result, as the tokens after any turn that called the tool."""
        return self._shown(text) + self._assistant

    def _shown(self, text: str) -> Ids:
        return self._result + self.plain(text) + self._end

    def call(self, code: str) -> Ids:
        return self._tool + self.plain(code) + self._end

    def request(self, request: ToolRequest, tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        self._require_callable(tools)
        return self.call(request.code)

    def answer(self, text: str) -> Ids:
        return self.plain(text) + self._end

    def _require_callable(self, tools: Sequence[ToolSchema]) -> None:
        if why := self.refuses(tools):
            raise RenderingError(
                why, hint="give the task only the tool `python`, or use a model whose format declares tools"
            )

    def _turn(self, text: str) -> Ids:
        marker = self.markers.tool
        return self.call(text[len(marker) :]) if text.startswith(marker) else self.answer(text)

    def plain(self, text: str) -> Ids:
        return tuple(self._guarded.plain(text, behind=True))

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def read(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> ToolRequest | Malformed | str:
        text, markers = self.text(turn[:-1]), self.markers
        body = text.lstrip()
        if body.startswith(markers.tool):
            code = body[len(markers.tool) :]
            if any(one.strip() in code for one in (markers.tool, markers.user, markers.assistant, markers.result)):
                return Malformed(code, "a marker inside the code")
            return code_request(code)
        if markers.tool in body:
            return Malformed(body, "a call must begin the turn")
        return text

    def parts(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> TurnParts:
        return single_part(self.read(turn, before, tools), raw=self.text(turn[:-1]))
