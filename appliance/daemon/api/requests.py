"""Reads requests to the control API by the table of endpoints, and writes its OpenAPI 3.1 document from the same table.

Invariants: a request is read and fully validated before anything happens.

Every endpoint is included, with the types of its body and answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from appliance import __version__
from appliance.client.connection import Failure
from appliance.client.endpoints import SEGMENT, Endpoint, Parameter, SentIn
from appliance.daemon.contract import RequestError
from common.bounded_models import InvalidInputError, read_model, validated
from common.strict_json import Bounds, NotJsonError

MAX_LIMIT = 1000
"""Largest `limit` of any list."""
MAX_NUMBER = 2**62

M = TypeVar("M", bound=BaseModel)


def arguments(
    endpoint: Endpoint, path: Mapping[str, str], query: Mapping[str, str], body: bytes, bounds: Bounds
) -> list[Any]:
    """Returns the handler's arguments, in the table's order. Raises RequestError for an invalid request."""
    require_known(query, query_names(endpoint))
    return [_argument(one, path, query, body, bounds) for one in endpoint.parameters]


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


def _argument(one: Parameter, path: Mapping[str, str], query: Mapping[str, str], body: bytes, bounds: Bounds) -> Any:
    if one.place is SentIn.PATH:
        return path[one.name]
    if one.place is SentIn.BODY:
        if one.type is bytes:
            return body
        return _readable(one.type, lambda: read_model(one.type, body or b"{}", bounds), "body")
    if one.place is SentIn.FILTER:
        given = {name: value for name, value in query.items() if name in one.type.model_fields}
        return _readable(one.type, lambda: validated(one.type, given, strings=True), "query")
    text = query.get(one.name)
    if one.required and not text:
        raise RequestError(f"missing query parameter {one.name}", hint=f"add ?{one.name}=")
    if text is None:
        return one.default
    return number(one.name, text, one.default or 0) if one.type is int else text


def _readable(shape: type[M], read: Callable[[], M], whole: str) -> M:
    try:
        return read()
    except InvalidInputError as error:
        fault = error.fault
        raise RequestError(f"{fault.where or f'the {whole}'}: {fault.what}", hint=f"send a {shape.__name__}") from error
    except NotJsonError as error:
        raise RequestError(f"the {whole} is unusable: {error}", hint=f"send a {shape.__name__} as JSON") from error


REF = "#/components/schemas/{model}"
NUMBER = {"type": "integer", "minimum": 0}
LAST_SEEN = {"name": "Last-Event-ID", "in": "header", "required": False, "schema": NUMBER}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Returns the document as plain JSON data."""
    listed = list(endpoints)
    answers = {one.answer for one in listed if one.answer is not str} | {Failure}
    bodies = {one.body for one in listed if one.body not in (None, bytes)}
    schemas, defined = _schemas(answers, bodies)
    paths: dict[str, Any] = {}
    for one in listed:
        paths.setdefault(SEGMENT.sub(r"{\1}", one.path), {})[one.method.lower()] = _operation(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Assay control API",
            "version": __version__,
            "description": "JSON over HTTP on a Unix socket that only its owner may use.",
        },
        "servers": [{"url": "http://assay"}],
        "paths": paths,
        "components": {"schemas": defined},
    }


def _schemas(answers: Iterable[Any], bodies: Iterable[Any]) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Returns the schema of each type, and shared definitions. Bodies use validation schemas, answers serialization
    schemas."""
    found: dict[Any, Any] = {}
    defined: dict[str, Any] = {}
    for shape, mode in [*((one, "serialization") for one in answers), *((one, "validation") for one in bodies)]:
        schema = TypeAdapter(shape).json_schema(ref_template=REF, mode=mode)  # type: ignore[arg-type]
        suffix = "" if mode == "serialization" else "-Input"
        schema = _renamed(schema, suffix)
        for name, one in schema.pop("$defs", {}).items():
            defined[f"{name}{suffix}"] = one
        if isinstance(shape, type) and issubclass(shape, BaseModel) and "$ref" not in schema:
            defined[f"{shape.__name__}{suffix}"] = schema
            schema = {"$ref": REF.format(model=f"{shape.__name__}{suffix}")}
        found[mode, shape] = schema
    return found, defined


def _renamed(value: Any, suffix: str) -> Any:
    """Returns the schema with the suffix on every reference."""
    if isinstance(value, dict):
        made = {name: _renamed(one, suffix) for name, one in value.items()}
        if isinstance(made.get("$ref"), str):
            made["$ref"] += suffix
        if isinstance(mapping := made.get("mapping"), dict) and "propertyName" in made:
            made["mapping"] = {name: f"{one}{suffix}" for name, one in mapping.items()}
        return made
    return [_renamed(one, suffix) for one in value] if isinstance(value, list) else value


def _operation(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    success = "Success."
    if endpoint.answer is str:
        content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    elif endpoint.streams:
        event = endpoint.answer.__name__
        success = f"Server-sent events: `id` is the event's number, `data` the event as {event}."
        content = {"text/event-stream": {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": schemas["serialization", endpoint.answer]}}
    failure = {"application/json": {"schema": schemas["serialization", Failure]}}
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", endpoint.method.lower() + SEGMENT.sub(r"by_\1", endpoint.path)),
        "summary": endpoint.about,
        "responses": {
            "200": {"description": success, "content": content},
            "default": {"description": "Reason of the refusal, with a hint.", "content": failure},
        },
    }
    parameters = [schema for one in endpoint.parameters for schema in _parameters(one)]
    if endpoint.streams:
        parameters.append(LAST_SEEN)
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is bytes:
        operation["requestBody"] = {"required": True, "content": {"application/octet-stream": {"schema": {}}}}
    elif endpoint.body is not None:
        schema = schemas["validation", endpoint.body]
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _parameters(one: Parameter) -> list[dict[str, Any]]:
    """Returns the path and query parameters that an endpoint's parameter consists of."""
    if one.place is SentIn.BODY:
        return []
    if one.place is SentIn.FILTER:
        _, schemas = models_json_schema([(one.type, "validation")], ref_template="{model}")
        fields = schemas["$defs"][one.type.__name__]["properties"]
        listed = {name: _inlined(field, schemas["$defs"]) for name, field in fields.items()}
        return [{"name": name, "in": "query", "required": False, "schema": field} for name, field in listed.items()]
    schema: dict[str, Any] = {"type": "string"}
    if one.type is int:
        schema = {**NUMBER, "maximum": MAX_LIMIT} if one.name == "limit" else NUMBER
    return [{"name": one.name, "in": one.place.value, "required": one.required, "schema": schema}]


def _inlined(value: Any, defined: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if isinstance(name := value.get("$ref"), str):
            return _inlined(defined[name], defined)
        return {name: _inlined(one, defined) for name, one in value.items()}
    return [_inlined(one, defined) for one in value] if isinstance(value, list) else value
