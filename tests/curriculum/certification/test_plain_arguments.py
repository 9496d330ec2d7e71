"""What certification calls a world's tools with: the plainest that a schema allows, and never much of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tables import table

from curriculum.certification.worlds import plain_arguments
from curriculum.worlds.tool_schema import BYTES

HUGE: dict[str, Any] = {"type": "array", "minItems": 10**12}
NESTED: dict[str, Any] = HUGE
for _ in range(7):
    NESTED = {**HUGE, "items": NESTED}


@table(
    ("schema", "plain"),
    [
        ({"type": "string"}, "x"),
        ({"type": "string", "minLength": 3}, "xxx"),
        ({"type": "integer", "minimum": 4}, 4),
        ({"enum": ["a", "b"]}, "a"),
        ({"enum": []}, "x"),
        ({"type": ["string", "null"]}, "x"),
        ({"type": "array", "minItems": 2, "items": {"type": "boolean"}}, [False, False]),
        ({"type": "object", "properties": {"y": {"type": "null"}}, "required": ["y"]}, {"y": None}),
        ({"$ref": "#/$defs/none"}, "x"),
        (True, "x"),
    ],
)
def test_the_plainest_value_of_a_schema(schema: Any, plain: object) -> None:
    assert plain_arguments({"properties": {"x": schema}, "required": ["x"]}) == {"x": plain}


@pytest.mark.parametrize("schema", [HUGE, NESTED, {"type": "string", "minLength": 10**12}])
def test_what_asks_for_more_than_a_call_may_hold_gets_less(schema: dict[str, Any]) -> None:
    found = plain_arguments({"properties": {"x": schema}, "required": ["x"]})
    assert len(json.dumps(found)) < 32 * BYTES
