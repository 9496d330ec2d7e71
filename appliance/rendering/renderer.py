"""Renderer interface between text and tokens: writes a conversation for a model and parses its turns.

A conversation grows at its end: `prompt`, then a sampled turn, then the tokens of `follow`, and so on. Existing tokens
never change, so each input exactly extends the previous one. If a format cannot do that (it would rewrite an earlier
turn), `follow` returns None, and the caller begins a new training sample with `prompt`. Outside text (questions, tool
output, a rewritten turn) has no power: a program that prints a marker gets ordinary characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.errors import HintedError
from curriculum.contract.environment import ToolSchema

Ids = tuple[int, ...]
PYTHON = ToolSchema(
    name="python",
    description="Runs Python code in a sandbox and returns what it prints. Names are kept from call to call.",
    parameters={
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The code to run."}},
        "required": ["code"],
    },
)
"""Tool that every format can call."""
TOOLS = (PYTHON,)
"""Default tools of a task."""
NO_TOKENIZER = (
    "copy it from the model's source; for an older model write it with AutoTokenizer of transformers and "
    "save_pretrained"
)
"""Hint for a model without tokenizer.json."""
SAY_IT = "describe the model's format in rendering.json in its folder; docs/training.md has an example"


class ChatMessage(Protocol):
    """Message of a task; any record with these two fields."""

    @property
    def role(self) -> str:
        """Role of the message's author: `system`, `user`, `assistant` or `tool`."""

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class OwnTurn:
    """Turn that the model sampled, in a rewritten conversation; its text is decoded from its tokens."""

    ids: Ids
    before: Ids
    """Tokens before the turn when it was sampled."""
    role: str = "assistant"
    text: str = ""


_INDENTED = re.compile(r"\s*?^([ \t]+)\S", re.MULTILINE)


@dataclass(frozen=True)
class ToolRequest:
    """Model's call to run code, or of a tool of the task's world."""

    code: str = ""
    """Code of the tool `python`; empty for another tool."""
    tool: str = PYTHON.name
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of another tool: plain JSON that fits its schema."""


def code_request(code: str) -> ToolRequest | Malformed:
    """Returns the call of Python code that a model wrote. Tokenizers that put a blank before each word make models
    begin with one, which no Python program may: the first line's indentation is removed from each line that has it."""
    if not code.strip():
        return Malformed(code, "empty call")
    indented = _INDENTED.match(code)
    return ToolRequest(re.sub(f"(?m)^{indented[1]}", "", code) if indented else code)


@dataclass(frozen=True)
class Malformed:
    """Invalid tool call of the model."""

    code: str
    reason: str


@dataclass(frozen=True)
class TurnParts:
    """Turn of the model in parts, for a client that takes text beside calls and several calls."""

    text: str
    """Text beside the calls, without thoughts; the raw turn if any part of it is malformed."""
    calls: tuple[ToolRequest, ...] = ()
    thoughts: str = ""
    """Thoughts, if the format marks them."""
    raw: str = field(default="", compare=False)
    """The turn as written, calls included, without thoughts and stop token."""


def single_part(read: ToolRequest | Malformed | str, thoughts: str = "", raw: str = "") -> TurnParts:
    """Returns the parts of a turn that has one call, or none."""
    if isinstance(read, ToolRequest):
        return TurnParts("", (read,), thoughts, raw)
    return TurnParts(read if isinstance(read, str) else raw, (), thoughts, raw)


class RenderingError(HintedError):
    """Conversation that cannot be written, or unknown format of a folder; `hint` names the remedy."""


class Renderer(Protocol):
    """Writes and parses conversations in one chat format."""

    @property
    def stop(self) -> int:
        """Token that ends a turn of the model; part of the turn."""

    @property
    def other_stops(self) -> Ids:
        """More tokens that end a turn of the model."""

    @property
    def name(self) -> str:
        """Name of the chat format for people, with how it was found."""

    @property
    def chat(self) -> bool:
        """True for the format of a chat model from elsewhere, which must be told the answer form."""

    def refuses(self, tools: Sequence[ToolSchema]) -> str:
        """Returns the reason that this chat format cannot call these tools, as a sentence; empty if it can."""

    def prompt(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        """Encodes a conversation up to the model's next turn; a message may be an `OwnTurn`. Raises RenderingError if
        it cannot be written."""

    def question(self, text: str) -> Ids:
        """Encodes the prompt of a conversation with one user question."""

    def follow(
        self, before: Ids, turn: Ids, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS
    ) -> Ids | None:
        """Returns the forced tokens after a turn: the result of its call, questions or both, up to the model's next
        turn. None if the next input would not exactly extend `before` and `turn`, or if the format then drops earlier
        thoughts. Results come in the order of the turn's calls (`parts`), here as in `prompt`."""

    def call(self, code: str) -> Ids:
        """Encodes a turn that calls `python` with this code, as the model should write it."""

    def request(self, request: ToolRequest, tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        """Encodes a turn that calls one of these tools, as the model should write it. Raises RenderingError if the
        format cannot."""

    def answer(self, text: str) -> Ids:
        """Encodes a conversation's last turn with this text, as the model should write it."""

    def plain(self, text: str) -> Ids:
        """Encodes text from outside, in which markers have no power."""

    def text(self, ids: Sequence[int]) -> str:
        """Decodes tokens to text, including markers."""

    def read(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> ToolRequest | Malformed | str:
        """Parses a finished turn of the model with its stop token: a call, an invalid call, or a last turn's text.
        `before` are the previous tokens, which may have opened the model's thoughts. A last turn's text excludes
        control tokens, and thoughts if the format marks them."""

    def parts(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> TurnParts:
        """Parses a finished turn as `read`, with all its calls and the text beside them, as far as the format has
        them."""
