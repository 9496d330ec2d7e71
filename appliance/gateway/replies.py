"""Reads request bodies, checks answers, and builds replies of `/v1/chat/completions` in OpenAI's shape, and errors.

Invariants: an event of a stream has one line of ASCII JSON, so that no model text can end a line of the stream.
`WireFormat` is the seam for other formats (`anthropic_messages`, `openai_responses`).

A body is bounded in bytes and in time; a verdict comes from a verifier, or from the absence of an answer, and from
nothing else.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from appliance.agent.answers import final_answer
from appliance.agent.judging import VERIFIER, VERSION
from appliance.gateway.chat_request import ChatRequest, SentCall
from appliance.gateway.keeping import CheckedAnswer
from common.bounded_models import Fault, InvalidInputError, read_model
from common.strict_json import Bounds, NotJsonError
from verifiers.contract.errors import SpecError
from verifiers.contract.kinds import AnswerForm
from verifiers.contract.verdict import Ground, Outcome, SpecProblem, Verdict
from verifiers.registry import check_spec, kind_of
from verifiers.registry.spec import Spec

PIECE = 64
"""Characters of text per chunk."""
DONE = b"data: [DONE]\n\n"
_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


MESSAGES = "/v1/messages"
"""Route whose errors have Anthropic's shape."""
TOO_LONG = "context_length_exceeded"


class GatewayError(Exception):
    """A refused or failed request to the gateway, answered in the shape of its route."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry: int | None = None,
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        """Creates an error with its HTTP status. `tokens` are those of a conversation that is too long, and the most;
        `retry` is in seconds."""
        super().__init__(message)
        self.status, self.code, self.param, self.retry, self.tokens = status, code, param, retry, tokens

    @property
    def body(self) -> dict[str, Any]:
        kind = _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    @property
    def anthropic_body(self) -> dict[str, Any]:
        """The error as Anthropic's clients read it: of a prompt that is too long they compact the conversation."""
        kind = _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "api_error")
        said = "prompt is too long: {} tokens > {} maximum".format(*self.tokens) if self.code == TOO_LONG else str(self)
        return {"type": "error", "error": {"type": kind, "message": said}}

    def response(self, path: str) -> JSONResponse:
        """Returns the HTTP response for a request of this path."""
        body = self.anthropic_body if path.startswith(MESSAGES) else self.body
        headers = {} if self.retry is None else {"retry-after": str(self.retry)}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status in (401, 403):
            headers["connection"] = "close"  # strangers keep no connection
        return JSONResponse(body, status_code=self.status, headers=headers)


@dataclass(frozen=True)
class ChatReply:
    """Model's reply to a chat request, with its token counts and verdict."""

    id: str
    created: int
    model: str
    version: str
    text: str
    calls: tuple[SentCall, ...]
    ended: Literal["stop", "length", "tool_calls"]
    prompt_tokens: int
    tokens: int
    session: str | None
    """Id of the stored session; None without consent."""
    node: int
    """Its turn in that session."""
    verdict: Verdict | None
    unused: tuple[str, ...]
    """Fields of the request that had no effect."""
    cut: str | None = None
    """Text of `stop` before which the answer was cut."""
    thoughts: str = ""
    logprobs: tuple[dict[str, Any], ...] | None = None
    """Log-probabilities of its tokens in OpenAI's shape, if asked for."""
    others: tuple[ChatReply, ...] = ()
    """Further answers to the same request."""

    @property
    def assay(self) -> dict[str, Any]:
        """Assay's extension fields of a chat reply: session, weights, verdict, and fields that had no effect."""
        verdict = None if self.verdict is None else self.verdict.model_dump(mode="json")
        return {"session": self.session, "weights": self.version, "verdict": verdict, "unused": self.unused}

    @property
    def usage(self) -> dict[str, int]:
        tokens = self.tokens + sum(one.tokens for one in self.others)
        total = self.prompt_tokens + tokens
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": tokens, "total_tokens": total}


@dataclass(frozen=True)
class StreamHead:
    """Facts about a reply that are known when its stream begins."""

    id: str
    created: int
    model: str
    prompt_tokens: int


@dataclass(frozen=True)
class WireFormat:
    """Format in which a client asks and is answered: the seam of the gateway's routes."""

    request: type[ChatRequest]
    """Shape of a request's body, which translates it to a chat request."""
    id: str
    """Beginning of a reply's id."""
    whole: Callable[[ChatReply, ChatRequest], dict[str, Any]]
    """Returns the body of an answer that is not streamed."""
    begin: Callable[[StreamHead], bytes]
    """Returns the first events of a stream."""
    rest: Callable[[ChatReply, ChatRequest], Iterator[bytes]]
    """Returns the events after them, up to the stream's end."""
    failed: Callable[[GatewayError, StreamHead], bytes]
    """Returns the event that ends a stream with an error."""
    beat: bytes
    """Event without a meaning, which keeps a stream alive."""


def completion(reply: ChatReply, _request: ChatRequest) -> dict[str, Any]:
    choices = []
    for index, one in enumerate((reply, *reply.others)):
        message: dict[str, Any] = {"role": "assistant", "content": one.text, "refusal": None}
        if one.calls:
            message |= {"content": one.text or None, "tool_calls": [call.model_dump() for call in one.calls]}
        if one.thoughts:
            message |= {"reasoning_content": one.thoughts}
        choice = {"index": index, "message": message, "finish_reason": one.ended, "logprobs": _logprobs(one)}
        choices.append(choice if one is reply else {**choice, "assay": one.assay})
    head = {"id": reply.id, "object": "chat.completion", "created": reply.created, "model": reply.model}
    return {**head, "choices": choices, "usage": reply.usage, "assay": reply.assay}


def _logprobs(reply: ChatReply) -> dict[str, Any] | None:
    return None if reply.logprobs is None else {"content": list(reply.logprobs), "refusal": None}


def _first_chunk(head: StreamHead) -> bytes:
    return framed(_chunk(head.id, head.created, head.model, {"role": "assistant", "content": ""}))


def _chunks(reply: ChatReply, request: ChatRequest) -> Iterator[bytes]:
    head = (reply.id, reply.created, reply.model)
    for index, one in enumerate((reply, *reply.others)):
        for name, text in (("reasoning_content", one.thoughts), ("content", one.text)):
            for piece in pieces(text):
                yield framed(_chunk(*head, {name: piece}, index=index))
        for place, call in enumerate(one.calls):
            yield framed(_chunk(*head, {"tool_calls": [{"index": place, **call.model_dump()}]}, index=index))
        if one.logprobs is not None:
            yield framed(_chunk(*head, {}, index=index, logprobs=_logprobs(one)))
        yield framed({**_chunk(*head, {}, one.ended, index), "assay": one.assay})
    if request.stream_options.include_usage:
        yield framed({**_chunk(*head, {}), "choices": [], "usage": reply.usage})
    yield DONE


def pieces(text: str) -> Iterator[str]:
    """Yields a text in the pieces of a stream."""
    yield from (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _chunk(
    name: str,
    created: int,
    model: str,
    delta: dict[str, Any],
    ended: str | None = None,
    index: int = 0,
    logprobs: dict[str, Any] | None = None,
) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": ended, "logprobs": logprobs}
    return {"id": name, "object": "chat.completion.chunk", "created": created, "model": model, "choices": [choice]}


def framed(value: dict[str, Any], event: str = "") -> bytes:
    """Returns a value as an event of a stream, with its name if it has one."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode("ascii")


CHAT = WireFormat(
    ChatRequest, "chatcmpl-", completion, _first_chunk, _chunks, lambda error, _: framed(error.body), b": at work\n\n"
)


BODY = Bounds(8 << 20)
BODY_SECONDS = 30.0
"""Time limit for receiving a request body, in seconds."""
CHECKS_AT_ONCE = 2
_WORDS = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "model_type": "must be an object",
    "dict_type": "must be an object",
}

M = TypeVar("M", bound=BaseModel)


class AnswerChecker(Protocol):
    """Interface of `verifiers.checker.Checker` that the gateway uses."""

    def check_many(
        self, pairs: Sequence[tuple[Spec, str]], seconds: float | None = None
    ) -> list[Verdict | SpecProblem]: ...


async def read_body(request: Request, shape: type[M], seconds: float = BODY_SECONDS) -> M:
    """Reads a request's JSON body and parses it into `shape`. Raises GatewayError for an invalid one."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise GatewayError(415, "send application/json")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > BODY.size:
                    raise GatewayError(413, f"the body is longer than {BODY.size} bytes")
    except TimeoutError as error:
        raise GatewayError(408, f"the body took longer than {seconds:g} seconds") from error
    except ClientDisconnect as error:
        raise GatewayError(400, "the body is incomplete") from error
    try:
        return await run_in_threadpool(read_model, shape, bytes(body), BODY)
    except NotJsonError as error:
        raise GatewayError(400, f"the body is unusable: {error}") from error
    except InvalidInputError as error:
        fault = error.fault
        own = shape.own_names if issubclass(shape, ChatRequest) else str
        said = fault.what.replace("messages.", own("messages.")) if fault.kind == "not_supported" else ""
        what = own(_plain(fault)) if fault.kind == "value_error" and '"' not in fault.what else _plain(fault)
        said = said or f"{own(fault.where) or 'the body'}: {what}"
        raise GatewayError(400, said, param=own(fault.where) or None) from error


def _plain(fault: Fault) -> str:
    """Returns what is wrong with a field, in words that need no knowledge of Python."""
    said = re.sub(r"^(Input|String|List|Dictionary|Tuple) should", "must", fault.what)
    return _WORDS.get(fault.kind) or re.sub(r" after validation, not \d+$", "", said)


def require_check(spec: Spec) -> None:
    """Raises GatewayError for a spec that cannot be used, or that judges no answer."""
    try:
        check_spec(spec)
    except SpecError as error:
        raise GatewayError(400, f"the check cannot be used: {error}: {error.hint}", param="assay.check") from error
    if kind_of(spec).answer_form(spec) is AnswerForm.WORLD:
        raise GatewayError(400, "this check judges a world, not an answer", param="assay.check")


class AnswerChecks:
    """Checks answers at the gateway against specs, `CHECKS_AT_ONCE` concurrently."""

    def __init__(self, checker: AnswerChecker) -> None:
        self._checker = checker
        self._turn = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def check(self, spec: Spec, text: str, *, complete: bool) -> CheckedAnswer:
        """Returns the final answer in a last turn's text, with its verdict; no answer or several fail without a
        verifier. Raises GatewayError for a check that turns out to be unusable."""
        final = final_answer(text, kind_of(spec).answer_form(spec))
        if not complete:
            return CheckedAnswer(None, spec, _failed("the answer was cut off at the limit of tokens"))
        if final.answer is None:
            return CheckedAnswer(None, spec, _failed(f"{final.answers} final answers where exactly one is asked for"))
        async with self._turn:
            found = (await run_in_threadpool(self._checker.check_many, [(spec, final.answer)]))[0]
        if isinstance(found, SpecProblem):
            raise GatewayError(400, f"the check cannot be used: {found.message}", param="assay.check")
        return CheckedAnswer(final.answer, spec, found)


def _failed(reason: str) -> Verdict:
    return Verdict(
        outcome=Outcome.FAIL,
        score=0.0,
        reason=reason,
        ground=Ground.UNREADABLE,
        verifier=VERIFIER,
        version=VERSION,
        seconds=0.0,
    )
