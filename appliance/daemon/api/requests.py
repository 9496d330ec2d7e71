"""Reads requests to the control API by the table of endpoints.

Invariants: a request is read and fully validated before anything happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from appliance.client.endpoints import Endpoint, Parameter, SentIn
from appliance.daemon.contract.errors import RequestError

MAX_LIMIT = 1000
"""Largest `limit` of any list."""
MAX_NUMBER = 2**62

M = TypeVar("M", bound=BaseModel)


def arguments(endpoint: Endpoint, path: Mapping[str, str], query: Mapping[str, str], body: bytes) -> list[Any]:
    """Returns the handler's arguments, in the table's order. Raises RequestError for an invalid request."""
    require_known(query, query_names(endpoint))
    return [_argument(one, path, query, body) for one in endpoint.parameters]


def largest(name: str) -> int:
    """Returns the largest value of a numeric query parameter."""
    return MAX_LIMIT if name == "limit" else MAX_NUMBER


def query_names(endpoint: Endpoint) -> list[str]:
    """Returns the names of the allowed query parameters."""
    names: list[str] = []
    for one in endpoint.parameters:
        if one.place is SentIn.FILTER:
            names += one.type.model_fields
        elif one.place is SentIn.QUERY:
            names.append(one.name)
    return names


def require_known(query: Mapping[str, str], names: list[str]) -> None:
    """Raises RequestError for an unknown query parameter: a mistyped filter would filter nothing."""
    for name in query:
        if name not in names:
            hint = f"use {', '.join(names)}, or no query" if names else "leave the query out"
            raise RequestError(f"unknown query parameter {name[:80]!r}", hint=hint)


def number(name: str, text: str, default: int) -> int:
    """Parses a numeric query parameter's value. Raises RequestError if `text` is not a whole number from 0 to the
    parameter's maximum; the hint suggests `default`."""
    high = largest(name)
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) <= high):
        raise RequestError(f"{name}: not a whole number from 0 to {high}", hint=f"write {name}={default}")
    return int(text)


def utf8(text: str) -> bytes:
    """Encodes client text for a signature check, which refuses lone surrogates as the client's fault."""
    return text.encode("utf-8", "surrogatepass")


def _argument(one: Parameter, path: Mapping[str, str], query: Mapping[str, str], body: bytes) -> Any:
    if one.place is SentIn.PATH:
        return path[one.name]
    if one.place is SentIn.BODY:
        shape = one.type
        return body if shape is bytes else _validated(shape, lambda: shape.model_validate_json(body or b"{}"), "body")
    if one.place is SentIn.FILTER:
        shape, given = one.type, {name: value for name, value in query.items() if name in one.type.model_fields}
        return _validated(shape, lambda: shape.model_validate_strings(given), "query")
    text = query.get(one.name)
    if one.required and not text:
        raise RequestError(f"missing query parameter {one.name}", hint=f"add ?{one.name}=")
    if text is None:
        return one.default
    return number(one.name, text, one.default or 0) if one.type is int else text


def _validated(shape: type[M], made: Callable[[], M], whole: str) -> M:
    try:
        return made()
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in fault["loc"]) or f"the {whole}"
        raise RequestError(f"{where}: {fault['msg']}", hint=f"send a {shape.__name__}") from error
