"""Request of `/v1/chat/completions`, with the fields that have an effect.

Invariants: every field has a bound; no value is converted to another type. Other fields are refused by name or reported
as unused (`chat_fields`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from appliance.gateway.chat_fields import MOST_MESSAGES, supported
from common import strict_json
from common.bounded_models import FirstErrorModel
from common.strict_json import Bounds, NotJsonError
from curriculum.contract.environment import ToolSchema
from curriculum.worlds.tool_schema import schema_fault
from verifiers.registry.spec import Spec

MOST_CHARS = 2_000_000
"""Maximum characters of one message."""
MOST_TOOLS = 128
MOST_CHOICES = 8
"""Maximum answers to one request."""
MOST_CALLS = 32
"""Maximum calls in one message that a client sends."""
ARGUMENTS = Bounds(4 * MOST_CHARS)
DESCRIPTION_CHARS = 50_000
TOOL_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$"
CHOICES = ("auto", "none", "required")
"""Values of `tool_choice` that name no tool."""


class _Sent(FirstErrorModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class CalledFunction(_Sent):
    name: str = Field(pattern=TOOL_NAME)
    arguments: str = Field(max_length=MOST_CHARS)
    """JSON object as text."""
    parsed_arguments: Any = Field(None, exclude=True)
    """Extra field of client libraries; ignored."""

    @field_validator("arguments")
    @classmethod
    def _an_object(cls, text: str) -> str:
        try:
            found = strict_json.read(text, ARGUMENTS)
        except NotJsonError as error:
            raise ValueError(f"arguments are unusable: {error}") from None
        if not isinstance(found, dict):
            raise ValueError("arguments must be a JSON object")
        return text

    @property
    def canonical(self) -> str:
        """Arguments as JSON that is equal however a client wrote them: sorted names, no spaces, 1.0 as 1."""
        found = json.loads(self.arguments, parse_float=_number)
        return json.dumps(found, sort_keys=True, separators=(",", ":"))


def _number(text: str) -> int | float:
    found = float(text)
    return int(found) if found.is_integer() else found


class SentCall(_Sent):
    id: str | None = Field(None, max_length=100)
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = Field(None, exclude=True)


class SentMessage(_Sent):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | None = Field(None, max_length=MOST_CHARS)
    """Text; the texts of several parts are joined by line ends."""
    tool_calls: Annotated[list[SentCall], Field(max_length=MOST_CALLS)] | None = None
    tool_call_id: str | None = Field(None, max_length=100)

    @property
    def text(self) -> str:
        return self.content or ""

    @property
    def rendered_role(self) -> str:
        return "system" if self.role == "developer" else self.role

    @model_validator(mode="after")
    def _fits_its_role(self) -> SentMessage:
        if self.tool_calls and self.role != "assistant":
            raise ValueError("only an assistant message may have tool_calls")
        if self.role in ("user", "system", "developer") and self.content is None:
            raise ValueError("content is missing")
        return self


def answered_calls(messages: Sequence[SentMessage]) -> list[int]:
    """Returns, for each message, which call of the turn before it a tool message answers, by position; -1 for others.
    Clients drop and rename ids: a result whose id names no call answers the first open one. Raises ValueError for a
    result without an open call."""
    found: list[int] = []
    calls: dict[int, str | None] = {}
    for place, message in enumerate(messages):
        if message.role != "tool":
            found.append(-1)
            if message.role in ("user", "assistant"):
                calls = {number: call.id for number, call in enumerate(message.tool_calls or ())}
            continue
        named = [number for number, name in calls.items() if name and name == message.tool_call_id]
        if not calls:
            raise ValueError(f"messages.{place}: its tool_call_id names no call that waits for a result")
        found.append(named[0] if named else min(calls))
        del calls[found[-1]]
    return found


def message_digests(messages: Sequence[SentMessage]) -> list[bytes]:
    """Returns a digest for each message, equal for equal messages of one conversation in spite of renamed call ids,
    rewritten arguments, dropped thoughts, and spaces around a turn of the model."""
    found = []
    for message, answers in zip(messages, answered_calls(messages), strict=True):
        calls = [[one.function.name, one.function.canonical] for one in message.tool_calls or ()]
        text = message.text.strip() if message.role == "assistant" else message.text
        said = json.dumps([message.rendered_role, text, calls, answers])
        found.append(hashlib.blake2b(said.encode(), digest_size=16).digest())
    return found


class ClientTool(ToolSchema):
    """A tool that a gateway client offers, with a name as OpenAI allows it."""

    name: str = Field(pattern=TOOL_NAME)
    description: str = Field("", max_length=DESCRIPTION_CHARS)
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    strict: bool | None = Field(None, exclude=True)

    @field_validator("parameters")
    @classmethod
    def _a_schema(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        if fault := schema_fault(parameters):
            raise ValueError(f"a tool's parameters {fault}")
        return parameters


class SentTool(_Sent):
    type: Literal["function"]
    function: ClientTool


class AssayFields(_Sent):
    """Assay's extension of a chat request: `extra_body={"assay": {...}}` of the openai package."""

    check: Spec | None = None
    """Spec that the answer is checked against; the reply then has its verdict."""


class StreamOptions(_Sent):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class SentSchema(_Sent):
    name: str | None = Field(None, max_length=128)
    description: str | None = Field(None, max_length=DESCRIPTION_CHARS)
    strict: bool | None = None
    of: dict[str, Any] = Field(alias="schema")

    @field_validator("of")
    @classmethod
    def _a_schema(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if fault := schema_fault(schema):
            raise ValueError(f"the contents of schema {fault}")
        return schema


class SentForm(_Sent):
    """Form of the answer, the field `response_format`."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: SentSchema | None = None

    @model_validator(mode="after")
    def _has_its_schema(self) -> SentForm:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("a json_schema is needed for the type json_schema, and only there")
        return self

    @property
    def schema_(self) -> dict[str, Any] | None:
        """Schema that the answer fits; None for any text."""
        if self.json_schema is not None:
            return self.json_schema.of
        return {"type": "object"} if self.type == "json_object" else None


class ChatRequest(_Sent):
    names: ClassVar[Mapping[str, str]] = {}
    """Names of this format for those of the chat format."""
    renumbered: ClassVar[str] = ""
    """Lists of the chat format whose items have other places in this format, as a pattern."""

    model: str = Field(min_length=1, max_length=256)
    messages: list[SentMessage] = Field(min_length=1, max_length=MOST_MESSAGES)
    tools: list[SentTool] = Field([], max_length=MOST_TOOLS)
    tool_choice: str = Field("auto", max_length=128)
    """`auto`, `none`, `required`, or the name of the one tool that is offered and demanded."""
    parallel_tool_calls: bool = True
    """False to get only the first call of a turn."""
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    max_tokens: int | None = Field(None, ge=1, le=1 << 20)
    max_completion_tokens: int | None = Field(None, ge=1, le=1 << 20)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    top_p: float = Field(1.0, gt=0, le=1)
    n: int = Field(1, ge=1, le=MOST_CHOICES)
    logprobs: bool = False
    top_logprobs: int = Field(0, ge=0, le=20)
    response_format: SentForm = SentForm()
    seed: int | None = Field(None, ge=-(1 << 63), lt=1 << 63)
    stop: list[Annotated[str, Field(min_length=1, max_length=256)]] = Field([], max_length=16)
    """Texts before which the answer is cut."""
    assay: AssayFields = AssayFields()
    unused: tuple[str, ...] = ()
    """Fields of the request that have no effect, for the reply."""

    @model_validator(mode="before")
    @classmethod
    def _only_supported(cls, value: Any) -> Any:
        return supported(value, cls.model_fields.keys() - {"unused"})

    @classmethod
    def own_names(cls, fault: str) -> str:
        """Returns a fault of a chat request with the names of this format."""
        if cls.renumbered:
            fault = re.sub(rf"\b({cls.renumbered})\.\d+", r"\1", fault)
            fault = re.sub(r"\.(tool_calls\.\d+|function)\b", "", fault)
        return re.sub(r"\w+", lambda word: cls.names.get(word[0], word[0]), fault)

    @property
    def offered(self) -> tuple[ClientTool, ...]:
        """Client's tools that are shown to the model: all, none, or the one it chose."""
        if self.tool_choice == "none":
            return ()
        chosen = tuple(one.function for one in self.tools)
        free = self.tool_choice in ("auto", "required")
        return chosen if free else tuple(one for one in chosen if one.name == self.tool_choice)

    @property
    def demands_call(self) -> bool:
        return self.tool_choice not in ("auto", "none")

    @property
    def chars(self) -> int:
        """Number of characters that the model would read."""
        calls = sum(len(one.function.arguments) for message in self.messages for one in message.tool_calls or ())
        return calls + sum(len(one.text) for one in self.messages)

    @model_validator(mode="after")
    def _ends_with_a_message_to_the_model(self) -> ChatRequest:
        if self.messages[-1].role == "assistant" or not any(one.role in ("user", "tool") for one in self.messages):
            raise ValueError("the last message must be one to the model, and not all may have the role system")
        answered_calls(self.messages)
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs are given only with logprobs")
        names = [one.function.name for one in self.tools]
        if len(set(names)) < len(names):
            raise ValueError("two tools have the same name")
        if reserved := set(names) & set(CHOICES):
            raise ValueError(f"a tool must not be called {min(reserved)}")
        if self.tool_choice not in ("auto", "none", *names) and not (self.tool_choice == "required" and names):
            raise ValueError("tool_choice names a tool that is not among the tools")
        return self


class VerdictRequest(_Sent):
    """Request for a verdict on the last answer of a gateway session."""

    check: Spec
