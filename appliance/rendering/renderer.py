"""A renderer is the seam between text and tokens: it writes a conversation for a model and reads its turns.

A conversation grows at its end: `prompt`, then a sampled turn, then what `follow` writes behind it, and so on. Tokens
that are there stay as they are, so each next input extends the one before exactly. Where a format cannot do that (it
would write an earlier turn anew), `follow` says so, and the caller begins a new training sample with `prompt`. Text
from outside (questions, tool output, an earlier turn that is written anew) has no power: a program that prints a marker
gets ordinary characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from curriculum.contract.environment import ToolSchema
from runtime.errors import HintedError

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
"""The tool that every format can call."""
TOOLS = (PYTHON,)
"""What a model may call unless a task says otherwise."""
NO_TOKENIZER = (
    "copy it from where the model comes from; for an older model AutoTokenizer of transformers writes it, with "
    "save_pretrained"
)
"""What to do where a model has no tokenizer.json."""
SAY_IT = "say how the model writes a conversation in rendering.json of its folder; docs/training.md has an example"


class ChatMessage(Protocol):
    """Is a message of a task; every record with these two fields will do."""

    @property
    def role(self) -> str:
        """Is `system`, `user`, `assistant` or `tool`."""

    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class OwnTurn:
    """Is a turn that the model sampled, where a conversation is written anew: its text is read of its tokens."""

    ids: Ids
    before: Ids
    """What stood before it when it was sampled."""
    role: str = "assistant"
    text: str = ""


@dataclass(frozen=True)
class ToolRequest:
    """Is a turn that asks for code to be run, or for a tool of the task's world."""

    code: str = ""
    """Of the tool `python`; empty for another one."""
    tool: str = PYTHON.name
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Of another tool: plain JSON that fits its schema."""


@dataclass(frozen=True)
class Malformed:
    """Is a call that cannot be run."""

    code: str
    reason: str


class RenderingError(HintedError):
    """Says that a conversation cannot be written, or that a folder's format is not known; `hint` says what to do."""


class Renderer(Protocol):
    """Writes and reads conversations as one family of models does."""

    @property
    def stop(self) -> int:
        """Is the token that ends a turn of the model; it is part of the turn."""

    @property
    def other_stops(self) -> Ids:
        """Lists further tokens that end a turn."""

    @property
    def name(self) -> str:
        """Names the format for people, and says how it was found."""

    def refuses(self, tools: Sequence[ToolSchema]) -> str:
        """Says why these tools cannot be called in this format, in a sentence; empty when they can."""

    def prompt(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        """Writes a conversation up to where the model goes on; a message may be an `OwnTurn`.

        Raises RenderingError for one that it cannot write."""

    def question(self, text: str) -> Ids:
        """Writes the prompt of a conversation that is one question of a person."""

    def follow(self, before: Ids, turn: Ids, result: str, tools: Sequence[ToolSchema] = TOOLS) -> Ids | None:
        """Writes what is forced behind a finished turn that called a tool: its result, up to where the model goes on.

        None where the next input is no exact extension of `before` and `turn`."""

    def call(self, code: str) -> Ids:
        """Writes a turn that calls `python`, as the model should write it."""

    def request(self, request: ToolRequest, tools: Sequence[ToolSchema] = TOOLS) -> Ids:
        """Writes a turn that calls any of these tools likewise. Raises RenderingError where the format has no way."""

    def answer(self, text: str) -> Ids:
        """Writes a last turn, as the model should write it."""

    def plain(self, text: str) -> Ids:
        """Writes text from outside: no marker in it has any power."""

    def text(self, ids: Sequence[int]) -> str:
        """Reads what stands there, markers included."""

    def read(self, turn: Ids, before: Ids = (), tools: Sequence[ToolSchema] = TOOLS) -> ToolRequest | Malformed | str:
        """Reads a finished turn, its stop token included: a call, one that cannot be run, or a last turn's text.

        `before` is what stood before it, which may have begun the model's thoughts. The text of a last turn is without
        thoughts where the format tells them apart, and without control tokens."""
