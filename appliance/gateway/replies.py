"""Builds answers of `/v1/chat/completions` in OpenAI's shape, whole or streamed, and errors. Pure.

Invariants: a chunk is one line of ASCII JSON, so that no model text can end a line of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from starlette.responses import JSONResponse

from appliance.gateway.chat_request import SentCall
from verifiers.contract.verdict import Verdict

PIECE = 64
"""Characters of text per chunk."""
DONE = b"data: [DONE]\n\n"
BEAT = b": at work\n\n"
_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


class GatewayError(Exception):
    """A refused or failed request to the gateway, answered in OpenAI's shape."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, param: str | None = None, retry: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param, self.retry = status, code, param, retry

    @property
    def body(self) -> dict[str, Any]:
        kind = _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    @property
    def response(self) -> JSONResponse:
        headers = {} if self.retry is None else {"retry-after": str(self.retry)}
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status in (401, 403):
            headers["connection"] = "close"  # strangers keep no connection
        return JSONResponse(self.body, status_code=self.status, headers=headers)


@dataclass(frozen=True)
class ChatReply:
    """Model's reply to a chat request, with its token counts and verdict."""

    id: str
    created: int
    model: str
    version: str
    text: str
    call: SentCall | None
    ended: Literal["stop", "length", "tool_calls"]
    prompt_tokens: int
    tokens: int
    session: str | None
    """Id of the stored session; None without consent."""
    verdict: Verdict | None

    @property
    def assay(self) -> dict[str, Any]:
        """Assay's extension fields of a chat reply: session, weights and verdict."""
        verdict = None if self.verdict is None else self.verdict.model_dump(mode="json")
        return {"session": self.session, "weights": self.version, "verdict": verdict}

    @property
    def usage(self) -> dict[str, int]:
        total = self.prompt_tokens + self.tokens
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.tokens, "total_tokens": total}


def completion(reply: ChatReply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.call is not None:
        message |= {"content": None, "tool_calls": [reply.call.model_dump()]}
    choice = {"index": 0, "message": message, "finish_reason": reply.ended, "logprobs": None}
    head = {"id": reply.id, "object": "chat.completion", "created": reply.created, "model": reply.model}
    return {**head, "choices": [choice], "usage": reply.usage, "assay": reply.assay}


def first_chunk(name: str, created: int, model: str) -> bytes:
    return _framed(_chunk(name, created, model, {"role": "assistant", "content": ""}))


def chunks(reply: ChatReply, *, usage: bool) -> Iterator[bytes]:
    """Yields a reply as the chunks of an event stream, after the first one, up to the stream's end."""
    head = (reply.id, reply.created, reply.model)
    for start in range(0, len(reply.text), PIECE):
        yield _framed(_chunk(*head, {"content": reply.text[start : start + PIECE]}))
    if reply.call is not None:
        yield _framed(_chunk(*head, {"tool_calls": [{"index": 0, **reply.call.model_dump()}]}))
    yield _framed({**_chunk(*head, {}, reply.ended), "assay": reply.assay})
    if usage:
        yield _framed({**_chunk(*head, {}), "choices": [], "usage": reply.usage})
    yield DONE


def error_chunk(error: GatewayError) -> bytes:
    return _framed(error.body)


def _chunk(name: str, created: int, model: str, delta: dict[str, Any], ended: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": ended, "logprobs": None}
    return {"id": name, "object": "chat.completion.chunk", "created": created, "model": model, "choices": [choice]}


def _framed(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode("ascii")
