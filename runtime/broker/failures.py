"""Errors of the runtime as messages, and back: each class of `runtime.errors` has one name on the wire."""

from __future__ import annotations

from runtime.broker.messages import Failed
from runtime.errors import (
    BadRequestError,
    BusyError,
    InfrastructureError,
    LimitError,
    RefusedError,
    SandboxError,
)

CHARACTERS = 2_000
"""Of a message or a hint; what is longer loses its end."""


def failed(request: int, error: SandboxError) -> Failed:
    text, hint = plain(str(error)), plain(error.hint)
    match error:
        case BadRequestError():
            return Failed(request=request, error="bad_request", message=text, hint=hint)
        case LimitError():
            return Failed(request=request, error="limit", message=text, hint=hint)
        case BusyError():
            return Failed(request=request, error="busy", message=text, hint=hint)
        case RefusedError():
            return Failed(request=request, error="refused", message=text, hint=hint)
        case _:
            return Failed(request=request, error="infrastructure", message=text, hint=hint)


def plain(text: str) -> str:
    """Fit for a terminal: what a guest's program said may be quoted in it."""
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text[:CHARACTERS])


def error_of(answer: Failed) -> SandboxError:
    match answer.error:
        case "bad_request":
            return BadRequestError(answer.message, hint=answer.hint)
        case "limit":
            return LimitError(answer.message, hint=answer.hint)
        case "busy":
            return BusyError(answer.message, hint=answer.hint)
        case "refused":
            return RefusedError(answer.message, hint=answer.hint)
        case "infrastructure":
            return InfrastructureError(answer.message, hint=answer.hint)
