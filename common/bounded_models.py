"""Reads JSON that somebody else wrote into a model: bounded before it is parsed, with the first error only.

Invariants: every reader of a request, frame, spec, row or bundle reads through `read_model`. Its memory is at most the
text, plus `strict_json.BYTES_PER_VALUE` for each value that the bounds allow. A list of wrong items costs one error,
because validation of a `FirstErrorModel` stops at the first wrong item; an object costs at most `Bounds.names` errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema

from common import strict_json
from common.strict_json import Bounds, NotJsonError

_SEQUENCES = ("list", "tuple", "set", "frozenset")
_NO_SCHEMAS = ("metadata", "serialization", "default", "config")
PLACE_CHARS, FAULT_CHARS = 80, 300
PLAIN = {"extra_forbidden": "unknown field", "missing": "is missing"}
"""Replacements of pydantic's messages."""

M = TypeVar("M")


class FirstErrorModel(BaseModel):
    """Base of all models of untrusted input: validation of their lists, tuples and sets stops at the first error."""

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _stop_early(handler.resolve_ref_schema(schema), cls)
        return schema


def _stop_early(schema: Any, owner: type[BaseModel]) -> None:
    """Sets `fail_fast` on the sequences of a model's core schema, in place; models inside it set their own."""
    if isinstance(schema, list | tuple):
        for part in schema:
            _stop_early(part, owner)
    elif isinstance(schema, dict):
        kind, shape = schema.get("type"), schema.get("cls")
        if kind == "model" and shape is not owner and issubclass(cast(type, shape), FirstErrorModel):
            return
        if kind in _SEQUENCES:
            schema["fail_fast"] = True
        for name, part in schema.items():
            if name not in _NO_SCHEMAS:
                _stop_early(part, owner)


@dataclass(frozen=True)
class Fault:
    """The first thing wrong with a value."""

    place: tuple[int | str, ...]
    """Names and indices that lead to it."""
    what: str
    kind: str
    """Pydantic's name of the error."""

    @property
    def where(self) -> str:
        where = ".".join(map(str, self.place))
        shown = where if len(where) <= PLACE_CHARS else where[: PLACE_CHARS - 1] + "…"
        return shown if shown.isprintable() else ascii(shown)[1:-1]

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.place else self.what


class InvalidInputError(ValueError):
    """JSON that does not fit its model. The message is the first fault, without the value."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def first_fault(error: ValidationError) -> Fault:
    """Returns pydantic's first error in plain words, without the value."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    what = PLAIN.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")[:FAULT_CHARS]
    return Fault(tuple(fault["loc"]), what, fault["type"])


def read_model(shape: type[M] | TypeAdapter[M], data: bytes | str, bounds: Bounds) -> M:
    """Reads JSON within the bounds into a model, or into the type of a TypeAdapter. Raises NotJsonError, and
    InvalidInputError for JSON of another shape."""
    return validated(shape, strict_json.read(data, bounds))


def validated(shape: type[M] | TypeAdapter[M], value: Any, *, strings: bool = False) -> M:
    """Converts parsed JSON to a model; with `strings`, numbers and others are in texts. Raises InvalidInputError."""
    try:
        if isinstance(shape, TypeAdapter):
            return shape.validate_strings(value) if strings else shape.validate_python(value)
        assert issubclass(shape, BaseModel), shape  # its schema is built once
        return cast(M, shape.model_validate_strings(value) if strings else shape.model_validate(value))
    except ValidationError as error:
        raise InvalidInputError(first_fault(error)) from None
    except RecursionError:
        raise NotJsonError("nested too deeply") from None
