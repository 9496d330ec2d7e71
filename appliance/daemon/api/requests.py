"""Requests to the control API as handlers see them, and routes with their types.

Invariants: a request is read and fully validated before anything happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from appliance.client.messages import SignedStatement, ValidationEnvelope
from appliance.daemon.contract.errors import RequestError

MAX_BODY_BYTES = 1_000_000
MAX_LIMIT = 1000

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class MetricsText:
    text: str


Answer = BaseModel | Sequence[BaseModel] | Mapping[str, str | None] | MetricsText


class ApiRequest:
    """A request, read completely: path parameters, query, body."""

    def __init__(self, path: Mapping[str, str], query: Mapping[str, str], body: bytes) -> None:
        self.path = path
        self.content = body
        self._query = query

    def require_known(self, names: Sequence[str]) -> None:
        """Raises RequestError for an unknown query parameter: a mistyped filter would filter nothing."""
        for name in self._query:
            if name not in names:
                hint = f"use {', '.join(names)}, or no query" if names else "leave the query out"
                raise RequestError(f"unknown query parameter {name[:80]!r}", hint=hint)

    def text(self, name: str) -> str | None:
        return self._query.get(name)

    def needed(self, name: str) -> str:
        value = self._query.get(name)
        if not value:
            raise RequestError(f"missing query parameter {name}", hint=f"add ?{name}=")
        return value

    def number(self, name: str, default: int, *, high: int) -> int:
        """Returns an integer parameter from 0 to `high`."""
        text = self._query.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) <= high):
            raise RequestError(f"{name}: not a whole number from 0 to {high}", hint=f"write {name}={default}")
        return int(text)

    def limit(self, default: int) -> int:
        return self.number("limit", default, high=MAX_LIMIT)

    def optional_number(self, name: str) -> int | None:
        return None if self._query.get(name) is None else self.number(name, 0, high=2**62)

    def filter(self, shape: type[M]) -> M:
        """Parses the query parameters that are fields of `shape`."""
        given = {name: value for name, value in self._query.items() if name in shape.model_fields}
        return _validated(shape, lambda: shape.model_validate_strings(given), "the query")

    def envelope(self, shape: type[SignedStatement | ValidationEnvelope] = SignedStatement) -> bytes:
        """Returns the signed statement in the body."""
        return utf8(self.body(shape).envelope)

    def body(self, shape: type[M]) -> M:
        return _validated(shape, lambda: shape.model_validate_json(self.content or b"{}"), "the body")


def _validated(shape: type[M], made: Callable[[], M], whole: str) -> M:
    try:
        return made()
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or whole
        raise RequestError(f"{where}: {fault['msg']}", hint=f"send a {shape.__name__}") from error


def utf8(text: str) -> bytes:
    """Encodes client text for a signature check, which refuses lone surrogates as the client's fault."""
    return text.encode("utf-8", "surrogatepass")


Handler = Callable[[ApiRequest], Answer]


@dataclass(frozen=True)
class ApiRoute:
    """A method on a path; its types go into the OpenAPI document."""

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    answer: Any
    """Type of the answer: a message, a list of them, aliases, or `MetricsText`."""
    about: str
    """One sentence for people."""
    body: type[BaseModel] | type[bytes] | None = None
    query: Sequence[str] | type[BaseModel] = ()
    """Query parameter names, or the shape of a filter; `limit` and `after` are integers."""
    most: int = MAX_BODY_BYTES
    """Maximum size of a body, in bytes."""
    needs_query: bool = False
    """True if all query parameters are required."""
    streams: bool = False
    """True if the answer is a stream of server-sent events of that type."""

    @property
    def asked_with(self) -> Sequence[str]:
        """Names of the allowed query parameters."""
        return self.query if isinstance(self.query, Sequence) else (*self.query.model_fields, "limit")


def get(
    path: str,
    answer: Any,
    handler: Handler,
    about: str,
    query: Sequence[str] | type[BaseModel] = (),
    *,
    needs_query: bool = False,
) -> ApiRoute:
    """Declares a read-only route."""
    return ApiRoute("GET", path, handler, answer, about, query=query, needs_query=needs_query)


def post(
    path: str,
    answer: Any,
    handler: Handler,
    about: str,
    body: type[BaseModel] | type[bytes] | None = None,
    most: int = MAX_BODY_BYTES,
) -> ApiRoute:
    """Declares a route that changes something."""
    return ApiRoute("POST", path, handler, answer, about, body=body, most=most)
