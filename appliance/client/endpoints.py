"""Endpoints of the control API, declared as methods; client, server and OpenAPI document follow from the declaration.

    @post("/v1/jobs/{id}/retry")
    def retry(self, id: str) -> records.jobs.Job:
        "Retries a job with the next seed."

Parameters named in the path are its segments. In a GET, other text and numbers are query parameters, and a model is a
filter with one query parameter a field. In a POST, the other parameter is the body: a model as JSON, or bytes. A `str`
answer is plain text. The first paragraph of the docstring describes the endpoint.

Invariants: annotations are evaluated when an endpoint is first used, so declaring it loads no message.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, wraps
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args, get_type_hints
from urllib.parse import quote

from appliance.client.connection import ApiConnection
from appliance.client.failures import ApiError

F = TypeVar("F", bound=Callable[..., Any])

SEGMENT = re.compile(r"\{(\w+)(?::path)?\}")
"""A path parameter; with `:path` it may contain slashes."""
JSON = {"content-type": "application/json"}
BYTES = {"content-type": "application/octet-stream"}


class Package:
    """A package whose modules are imported when an annotation that names them is evaluated."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, module: str) -> Any:
        return importlib.import_module(f"{self._name}.{module}")


class SentIn(Enum):
    PATH = "path"
    QUERY = "query"
    FILTER = "filter"
    BODY = "body"


@dataclass(frozen=True)
class Parameter:
    name: str
    place: SentIn
    type: Any
    """Type without None."""
    default: Any
    """`inspect.Parameter.empty` if the parameter is required."""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Endpoint:
    """A method on a path, and the function that declares its parameters and answer."""

    method: Literal["GET", "POST"]
    path: str
    declaration: Callable[..., Any]
    streams: bool = False
    """True if the answer is a stream of server-sent events of the declared type."""

    @property
    def name(self) -> str:
        return self.declaration.__name__

    @property
    def about(self) -> str:
        """One sentence for people."""
        return " ".join((inspect.getdoc(self.declaration) or "").split("\n\n")[0].split())

    @cached_property
    def answer(self) -> Any:
        return self._types["return"]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        declared = list(self._signature.parameters.values())[1:]
        in_path = SEGMENT.findall(self.path)
        if missing := set(in_path) - {one.name for one in declared}:
            raise TypeError(f"{self.name}: no parameter for {', '.join(sorted(missing))} of {self.path}")
        return tuple(self._parameter(one, in_path=one.name in in_path) for one in declared)

    @property
    def body(self) -> Any:
        """Type of the body: a model, `bytes`, or None."""
        return next((one.type for one in self.parameters if one.place is SentIn.BODY), None)

    def sent_by(self, client: ApiConnection, given: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Sends one request and returns the answer, validated."""
        if self.streams:
            raise ApiError(f"{self.path} is a stream", hint="read it as server-sent events", exit_code=2)
        call = self._signature.bind(client, *given, **named)
        call.apply_defaults()
        query: dict[str, str] = {}
        body, headers = (b"{}", JSON) if self.method == "POST" else (None, None)
        for one in self.parameters:
            value = call.arguments[one.name]
            if one.place is SentIn.QUERY and value is not None:
                query[one.name] = str(value)
            elif one.place is SentIn.FILTER and value is not None:
                fields = value.model_dump(mode="json", exclude_none=True)
                query |= {name: str(field) for name, field in fields.items()}
            elif one.place is SentIn.BODY:
                raw = one.type is bytes
                body = value if raw else (one.type() if value is None else value).model_dump_json().encode()
                headers = BYTES if raw else JSON
        path = SEGMENT.sub(lambda found: quote(call.arguments[found[1]], safe=""), self.path)
        content = client.request(self.method, path, query, body, headers)
        return content.decode() if self.answer is str else client.read(content, self.answer)

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.declaration)

    @cached_property
    def _types(self) -> dict[str, Any]:
        return get_type_hints(self.declaration)

    def _parameter(self, declared: inspect.Parameter, *, in_path: bool) -> Parameter:
        kind = self._types[declared.name]
        if NoneType in get_args(kind):
            (kind,) = (one for one in get_args(kind) if one is not NoneType)
        if in_path:
            place = SentIn.PATH
        elif self.method == "POST":
            place = SentIn.BODY
        else:
            place = SentIn.QUERY if kind in (str, int) else SentIn.FILTER
        return Parameter(declared.name, place, kind, declared.default)


def get(path: str, *, streams: bool = False) -> Callable[[F], F]:
    """Declares an endpoint that changes nothing."""
    return lambda declaration: _method(Endpoint("GET", path, declaration, streams))


def post(path: str) -> Callable[[F], F]:
    """Declares an endpoint that may change something."""
    return lambda declaration: _method(Endpoint("POST", path, declaration))


def endpoints_of(api: type[ApiConnection]) -> dict[str, Endpoint]:
    """Returns the endpoints that a client declares, by name, in order."""
    found = (getattr(one, "endpoint", None) for one in vars(api).values())
    return {one.name: one for one in found if isinstance(one, Endpoint)}


def _method(endpoint: Endpoint) -> Any:
    @wraps(endpoint.declaration)
    def call(self: ApiConnection, *given: Any, **named: Any) -> Any:
        return endpoint.sent_by(self, given, named)

    vars(call)["endpoint"] = endpoint
    return cast(Any, call)
