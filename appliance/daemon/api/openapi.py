"""Generates the OpenAPI 3.1 document of the control API from the table of endpoints. Pure.

Invariants: every endpoint is included, with the types of its body and answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import models_json_schema

from appliance import __version__
from appliance.client.connection import Failure
from appliance.client.endpoints import SEGMENT, Endpoint, Parameter, SentIn
from appliance.daemon.api.requests import MAX_LIMIT

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
    """Returns the path and query parameters that an endpoint's parameter stands for."""
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
