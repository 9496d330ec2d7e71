"""JSON read strictly, and the schemas that it is checked against."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import jsonschema
from jsonschema.validators import validator_for
from referencing import Registry

from verifiers.contract.errors import SpecError
from verifiers.contract.text import escaped


class JsonError(ValueError):
    """Not JSON, or JSON that two readers would read differently."""


def read_json(text: str) -> Any:
    """RFC 8259 strictly: no NaN, no name twice in an object. Raises JsonError."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant)
    except RecursionError:
        raise JsonError("nested too deeply") from None
    except JsonError:
        raise
    except ValueError as error:
        raise JsonError(escaped(str(error))) from None


@lru_cache(maxsize=64)
def validator(rules: str) -> Any:
    """The validator of a schema. Nothing is ever fetched: a reference that leaves the schema is refused (SpecError)."""
    try:
        schema = read_json(rules)
    except JsonError as error:
        raise SpecError(f"the JSON schema is not JSON: {error}", hint="Write the schema as JSON text.") from error
    for reference in _references(schema):
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SpecError(
                f"the JSON schema refers to {escaped(str(reference))}, outside itself",
                hint="Put what is referred to under $defs and refer to it with #/$defs/NAME.",
            )
    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (jsonschema.SchemaError, RecursionError) as error:
        raise SpecError(
            f"the JSON schema cannot be used: {escaped(str(error))}", hint="See json-schema.org."
        ) from error
    quick = jsonschema.validators.extend(kind, {"uniqueItems": _unique_items})
    return quick(schema, registry=Registry())


def _unique_items(checker: Any, wanted: bool, value: Any, schema: Any) -> Iterator[Any]:
    """The library compares every two objects, which takes minutes for ten thousand."""
    if wanted and checker.is_type(value, "array"):
        texts = sorted(map(canonical, value))
        if any(one == other for one, other in pairwise(texts)):
            yield jsonschema.ValidationError("an item is there twice")


def canonical(value: Any) -> str:
    """The same text for equal values of JSON, another one for others: 1.0 is 1, and true is no number."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{canonical(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)


def _references(schema: Any) -> list[Any]:
    found, waiting = [], [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += [part[name] for name in ("$ref", "$dynamicRef", "$recursiveRef") if name in part]
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise JsonError("an object has a name twice")
    return content


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads no more than 4,300 digits
        raise JsonError(f"a number of {len(text)} digits is not read") from None


def _constant(name: str) -> Any:
    raise JsonError(f"{name} is no JSON")
