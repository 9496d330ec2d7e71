"""Generates the OpenAPI 3.1 document of the control API from its routes and their messages. Pure.

Invariants: every route is included, with the types of its handler's answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from appliance import __version__
from appliance.client.connection import Failure
from appliance.daemon.api.requests import MAX_LIMIT, ApiRoute, MetricsText

REF = "#/components/schemas/{model}"
NUMBERS = {"limit": {"type": "integer", "minimum": 0, "maximum": MAX_LIMIT}, "after": {"type": "integer", "minimum": 0}}
LAST_SEEN = {"name": "Last-Event-ID", "in": "header", "required": False, "schema": NUMBERS["after"]}
_PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")


def document(routes: Iterable[ApiRoute]) -> dict[str, Any]:
    """Returns the document as plain JSON data."""
    listed = list(routes)
    answers = {route.answer for route in listed if route.answer is not MetricsText} | {Failure}
    bodies = {route.body for route in listed if route.body not in (None, bytes)}
    schemas, defined = _schemas(answers, bodies)
    paths: dict[str, Any] = {}
    for route in listed:
        path = _PARAMETER.sub(r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, schemas)
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


def _operation(route: ApiRoute, schemas: dict[Any, Any]) -> dict[str, Any]:
    said = "Success."
    if route.answer is MetricsText:
        content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
    elif route.streams:
        said = f"Server-sent events: `id` is the event's number, `data` the event as {route.answer.__name__}."
        content = {"text/event-stream": {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": schemas["serialization", route.answer]}}
    failure = {"application/json": {"schema": schemas["serialization", Failure]}}
    named = route.method.lower() + _PARAMETER.sub(r"by_\1", route.path)
    made: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", named),
        "summary": route.about,
        "responses": {
            "200": {"description": said, "content": content},
            "default": {"description": "Reason of the refusal, with a hint.", "content": failure},
        },
    }
    if parameters := [*_in_path(route.path), *_in_query(route), *([LAST_SEEN] if route.streams else [])]:
        made["parameters"] = parameters
    if route.body is bytes:
        made["requestBody"] = {"required": True, "content": {"application/octet-stream": {"schema": {}}}}
    elif route.body is not None:
        schema = schemas["validation", route.body]
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made


def _in_path(path: str) -> list[dict[str, Any]]:
    names = _PARAMETER.findall(path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _in_query(route: ApiRoute) -> list[dict[str, Any]]:
    if isinstance(route.query, Sequence):
        listed = {name: NUMBERS.get(name, {"type": "string"}) for name in route.query}
    else:
        _, made = models_json_schema([(route.query, "validation")], ref_template="{model}")
        defined = made["$defs"]
        shape = defined[route.query.__name__]
        listed = {name: _inlined(one, defined) for name, one in shape["properties"].items()} | {
            "limit": NUMBERS["limit"]
        }
    needed = route.needs_query
    return [{"name": name, "in": "query", "required": needed, "schema": schema} for name, schema in listed.items()]


def _inlined(value: Any, defined: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if isinstance(name := value.get("$ref"), str):
            return _inlined(defined[name], defined)
        return {name: _inlined(one, defined) for name, one in value.items()}
    return [_inlined(one, defined) for one in value] if isinstance(value, list) else value
