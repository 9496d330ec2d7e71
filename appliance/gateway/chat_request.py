"""Request of `/v1/chat/completions`, limited to the supported fields.

Invariants: every field has a bound; a field that would change the sampled distribution, or cannot be honoured, is
refused by name and never silently ignored. Null means absent, as with OpenAI; no value is converted to another type.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from curriculum.contract.environment import ToolSchema
from curriculum.worlds.tool_schema import schema_fault
from verifiers.registry.spec import Spec

MOST_MESSAGES = 1_000
MOST_CHARS = 2_000_000
"""Maximum characters of one message."""
MOST_TOOLS = 128
MOST_DEPTH = 64
"""Maximum nesting of a call's arguments."""
DESCRIPTION_CHARS = 50_000
TOOL_NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TextPart(_Sent):
    type: Literal["text"]
    text: str = Field(max_length=MOST_CHARS)


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
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ValueError("arguments must be a JSON object")
        if _deeper(found, MOST_DEPTH):
            raise ValueError(f"arguments are nested deeper than {MOST_DEPTH}")
        return text


class SentCall(_Sent):
    id: str = Field(max_length=100)
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = Field(None, exclude=True)


class SentMessage(_Sent):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[str, Field(max_length=MOST_CHARS)] | Annotated[list[TextPart], Field(max_length=100)] | None = (
        None
    )
    name: str | None = Field(None, max_length=100)
    tool_calls: Annotated[list[SentCall], Field(max_length=1)] | None = None
    """At most one call: this model calls one tool at a time."""
    tool_call_id: str | None = Field(None, max_length=100)
    refusal: None = None
    audio: None = None
    function_call: None = None
    parsed: Any = None
    """Extra field of client libraries; ignored."""
    annotations: Annotated[list[Any], Field(max_length=0)] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""

    @property
    def rendered_role(self) -> str:
        return "system" if self.role == "developer" else self.role

    @property
    def identity(self) -> list[Any]:
        """Values that are equal for two equal messages, ignoring everything else that a client adds."""
        called = [[one.id, one.function.name, one.function.arguments] for one in self.tool_calls or ()]
        return [self.rendered_role, self.text, called, self.tool_call_id or ""]

    @model_validator(mode="after")
    def _fits_its_role(self) -> SentMessage:
        if self.tool_calls and self.role != "assistant":
            raise ValueError("only an assistant message may have tool_calls")
        if self.tool_calls and self.text:
            raise ValueError("an assistant message has text or a tool call, not both")
        if self.role == "tool" and not self.tool_call_id:
            raise ValueError("a tool message needs tool_call_id")
        if self.role in ("user", "system", "developer") and self.content is None:
            raise ValueError("content is missing")
        return self


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


class ChatRequest(_Sent):
    model: str = Field(min_length=1, max_length=256)
    messages: list[SentMessage] = Field(min_length=1, max_length=MOST_MESSAGES)
    tools: Annotated[list[SentTool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Literal["auto", "none"] = "auto"
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1, le=1 << 20)
    max_completion_tokens: int | None = Field(None, ge=1, le=1 << 20)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(None, ge=-(1 << 63), lt=1 << 63)
    user: str | None = Field(None, max_length=256)
    metadata: Annotated[dict[str, Annotated[str, Field(max_length=512)]], Field(max_length=16)] | None = None
    store: Literal[False] | None = None
    n: Literal[1] | None = None
    top_p: Literal[1] | None = None
    presence_penalty: Literal[0] | None = None
    frequency_penalty: Literal[0] | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: None = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    service_tier: None = None
    reasoning_effort: None = None
    verbosity: None = None
    modalities: None = None
    prediction: None = None
    audio: None = None
    stop: Annotated[list[str], Field(max_length=0)] | None = None
    response_format: dict[Literal["type"], Literal["text"]] | None = None
    assay: AssayFields = AssayFields()

    @property
    def offered(self) -> tuple[ClientTool, ...]:
        """Client's tools that are shown to the model; none if it chose `none`."""
        return () if self.tool_choice == "none" else tuple(one.function for one in self.tools or ())

    @property
    def model_turns(self) -> int:
        """Number of messages up to and including the assistant's newest turn."""
        return max((place + 1 for place, one in enumerate(self.messages) if one.role == "assistant"), default=0)

    @model_validator(mode="after")
    def _ends_with_a_message_to_the_model(self) -> ChatRequest:
        if self.messages[-1].role not in ("user", "tool"):
            raise ValueError("the last message must have the role user or tool")
        names = [one.function.name for one in self.tools or ()]
        if len(set(names)) < len(names):
            raise ValueError("two tools have the same name")
        return self


class VerdictRequest(_Sent):
    """Request for a verdict on the last answer of a gateway session."""

    check: Spec


def _deeper(value: Any, most: int) -> bool:
    """True if lists and tables in this value are nested deeper than `most`."""
    level = [value]
    for _ in range(most + 1):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True
